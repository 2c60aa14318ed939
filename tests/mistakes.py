"""The mistakes of docs/troubleshooting.md: each with its profile, its command line and what people then read."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocmrun.core.host_json import host_to_json
from rocmrun.system.profile_search import shipped_directory
from scripts.docs.session import mi300x_host

PAGE = Path(__file__).parents[1] / "docs" / "troubleshooting.md"
HOME, WORK = "/home/you", "/home/you/jobs"
SHIPPED = "/usr/lib/rocmrun/profiles"
_ENGINE = "<!-- engine -->"
_FENCED = re.compile(r"^```(toml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"\A# profiles/([\w-]+)\.toml\n")
# What goes on is told on other days in other words.
_CHATTER = ("rocmrun: ", "warning: ")


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One section.

    Attributes:
        profiles: Name → text of the profiles that it shows.
        words: The command line after `rocmrun`.
        shown: What is printed then, in /home/you/jobs.
        needs_engine: Whether only an engine can tell.
    """

    title: str
    profiles: dict[str, str]
    words: tuple[str, ...]
    shown: str
    needs_engine: bool

    def stand(self, place: Path, adapt: Callable[[str], str] = lambda text: text) -> Path:
        """Make the folder of the page below *place*, its profile "serve" changed by *adapt*; return it."""
        work = place / "you" / "jobs"
        (work / "models" / "qwen3").mkdir(parents=True)
        (work / "profiles").mkdir()
        saved = {"v": 1, "ok": True, **host_to_json(mi300x_host())}
        (work / "host.json").write_text(json.dumps(saved), encoding="utf-8")
        for name, text in {**serve(), **self.profiles}.items():
            body = adapt(text) if name == "serve" else text
            (work / "profiles" / f"{name}.toml").write_text(body, encoding="utf-8")
        return work

    def read(self, printed: str, place: Path) -> str:
        """Return what was *printed* as the page shows it."""
        lines = [line for line in printed.splitlines() if not line.startswith(_CHATTER)]
        # The size of /tmp is a share of the machine's memory.
        text = re.sub(r"/tmp \([^)]*\)", "/tmp (16 GiB)", "\n".join(lines).strip("\n"))
        return text.replace(str(shipped_directory()), SHIPPED).replace(str(place / "you"), HOME)


def serve() -> dict[str, str]:
    """Return the profile that all sections share."""
    before, *_ = _sections()
    return _profiles(before)


def mistakes(*, needs_engine: bool) -> tuple[Mistake, ...]:
    """Return the sections that need an engine, or those that do not."""
    _, *sections = _sections()
    found = tuple(map(_mistake, sections))
    return tuple(mistake for mistake in found if mistake.needs_engine == needs_engine)


def _sections() -> list[str]:
    return re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _mistake(section: str) -> Mistake:
    (block,) = (body for kind, body in _FENCED.findall(section) if kind == "text")
    command, _, shown = block.partition("\n")
    return Mistake(
        title=section.partition("\n")[0],
        profiles=_profiles(section),
        words=tuple(shlex.split(command.removeprefix("$ "))[1:]),
        shown=shown.rstrip("\n"),
        needs_engine=_ENGINE in section,
    )


def _profiles(section: str) -> dict[str, str]:
    found = {}
    for kind, body in _FENCED.findall(section):
        if kind == "toml" and (name := _NAMED.match(body)):
            found[name[1]] = body[name.end() :]
    return found
