"""Directories of an image's PATH are looked up where the image has its own, each once, links followed."""

from dataclasses import replace

from rocmrun.core.run import PathOwner, PathStat
from rocmrun.usecases.search_path import search_path_owners
from tests.builders import IMAGE
from tests.fakes import FakeEngine

DIRECTORY = 1 << 31
CLOSED = PathStat(mode=DIRECTORY | 0o750)


def owners(engine: FakeEngine, path: str) -> dict[str, list[tuple[int, int]]]:
    """Return entry → (mode, gid) of each directory on the way."""
    image = replace(IMAGE, env=(("PATH", path),))
    found = search_path_owners(engine, image, "linux/amd64")
    return {entry: [(part.mode, part.gid) for part in way] for entry, way in found.items()}


def test_the_usual_entries_need_no_look() -> None:
    """No container is made for an image as every distribution has it."""
    engine = FakeEngine()

    assert owners(engine, "/usr/local/sbin:/usr/local/bin:/usr/bin:/bin:relative:") == {}
    assert engine.calls == []


def test_owners_are_asked_for_where_not_everybody_may_enter() -> None:
    """And the container is gone afterwards."""
    engine = FakeEngine(
        files={"/opt/x": CLOSED}, owners={"/opt/x": PathOwner(mode=0o750, uid=0, gid=7)}
    )

    assert owners(engine, "/opt/x/bin:/usr/bin") == {
        "/opt/x/bin": [(0o755, 0), (0o750, 7), (0o755, 0)]
    }
    assert engine.calls == ["create look", "remove look"]
    assert engine.kept == []


def test_links_are_followed_and_what_is_missing_ends_the_way() -> None:
    """Absolute ones from the top, and a loop ends."""
    engine = FakeEngine(
        files={
            "/opt/conda": PathStat(mode=0o777, link_target="/srv/conda"),
            "/srv/conda": CLOSED,
            "/opt/gone": None,
            "/opt/loop": PathStat(mode=0o777, link_target="/opt/loop"),
        },
        owners={"/srv/conda": PathOwner(mode=0o750, uid=0, gid=8)},
    )

    found = owners(engine, "/opt/conda/bin:/opt/gone/bin:/opt/loop/bin")

    assert found["/opt/conda/bin"] == [(0o755, 0), (0o755, 0), (0o750, 8), (0o755, 0)]
    assert found["/opt/gone/bin"] == [(0o755, 0)]
    assert len(found["/opt/loop/bin"]) <= 40
