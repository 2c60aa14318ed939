"""What a command wants planned."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rocmrun.core.command_line import Options
from rocmrun.core.host import HostFacts
from rocmrun.errors import PlanRefused
from rocmrun.system.caller import read_caller
from rocmrun.system.profile_search import ProfileSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a command wants planned.

    Attributes:
        profile: Its name or path.
        search: Where profiles are looked for.
        settings: What --set says.
        lockfile: The lock file named on the command line.
        host_root: Read in place of "/".
        host: Facts saved on another machine; nothing is read here then.
        narrow: --gpu selectors; they take away from the profile's selection.
        unlocked: Accept an image that no lock pins.
        pull: Whether an absent image may be fetched.
    """

    profile: str
    search: ProfileSearch
    settings: Mapping[str, str] = field(default_factory=dict)
    lockfile: Path | None = None
    host_root: Path = Path("/")
    host: HostFacts | None = None
    options: Options = field(default_factory=Options)
    narrow: tuple[str, ...] = ()
    interactive: bool = False
    tty: bool = False
    debug: bool = False
    unlocked: bool = False
    pull: bool = True


def refuse_unlocked_in_ci(ask: Ask) -> None:
    """Refuse an image that nobody reviewed where CI is set.

    Raises:
        PlanRefused: it is asked for.
    """
    if ask.unlocked and read_caller().in_ci:
        msg = "--unlocked is refused where CI is set: what runs there must be a reviewed digest"
        raise PlanRefused(msg, hint="commit a lock: rocmrun lock")
