"""Who owns the directories of an image's PATH: read in a container that is never started, where the image has its own."""

import posixpath
from collections.abc import Mapping

from rocmrun.core.image import ImageFacts
from rocmrun.core.run import PathOwner
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.images import looked_into

# Where every distribution has its programs: open to all, or nothing in the image would run.
USUAL = frozenset({
    "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/games", "/usr/local/games",
})  # fmt: skip
_OPEN = frozenset({"/", "/usr", "/usr/local"})
MOST_ENTRIES, MOST_STEPS = 64, 40
_ALL_ENTER = 0o111


def search_path_owners(
    engine: Engine, image: ImageFacts, platform: str
) -> Mapping[str, tuple[PathOwner, ...]]:
    """Return for each entry of *image*'s PATH that is its own the directories on the way, links followed.

    One that does not exist has the way as far as it goes. An image with the usual entries alone is not looked into.
    """
    entries = image.environment.get("PATH", "").split(":")
    own = [
        entry
        for entry in dict.fromkeys(entries)
        if entry.startswith("/") and entry.rstrip("/") not in USUAL
    ]
    if not own:
        return {}
    with looked_into(engine, image, platform) as container:
        looker = _Looker(engine, container)
        return {entry: looker.way(entry) for entry in own[:MOST_ENTRIES]}


class _Looker:
    """Looks each directory up once: entries share most of their way."""

    def __init__(self, engine: Engine, container: str) -> None:
        self._engine, self._container = engine, container
        self._known: dict[str, PathOwner | None] = {}

    def way(self, entry: str) -> tuple[PathOwner, ...]:
        """Return the owners of the directories that lead to *entry*, and its own."""
        found: list[PathOwner] = []
        here, rest = "/", [part for part in entry.split("/") if part]
        for _ in range(MOST_STEPS):
            if not rest:
                break
            here = posixpath.normpath(posixpath.join(here, rest.pop(0)))
            if here in _OPEN:
                continue
            owner = self._owner(here)
            if owner is None:
                break
            if owner.link_target:
                rest = [*(part for part in owner.link_target.split("/") if part), *rest]
                here = "/" if owner.link_target.startswith("/") else posixpath.dirname(here)
                continue
            found.append(owner)
        return tuple(found)

    def _owner(self, path: str) -> PathOwner | None:
        if path not in self._known:
            self._known[path] = self._look(path)
        return self._known[path]

    def _look(self, path: str) -> PathOwner | None:
        stat = self._engine.path_stat(self._container, path)
        if stat is None:
            return None
        mode = stat.mode & 0o777
        if stat.link_target or mode & _ALL_ENTER == _ALL_ENTER:
            # Whoever owns it, everybody may enter; asking for the owner makes the engine mount the image.
            return PathOwner(mode=mode, uid=0, gid=0, link_target=stat.link_target)
        return self._engine.path_owner(self._container, path)
