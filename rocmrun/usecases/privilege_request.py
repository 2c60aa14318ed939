"""What diff-privileges is asked, and what of it is refused before anything runs."""

from dataclasses import dataclass, field
from pathlib import Path

from rocmrun.core.oracle import CommandOracle
from rocmrun.core.privilege_forms import WRITTEN
from rocmrun.core.profile.loaded import LoadedProfile, refuse_overrides
from rocmrun.core.search_space import Settings
from rocmrun.errors import ProfileUnwritable, UsageError
from rocmrun.system import gpu_locks
from rocmrun.system.files import read_text
from rocmrun.usecases.ask import Ask, refuse_unlocked_in_ci
from rocmrun.usecases.privilege_sides import Sides
from rocmrun.usecases.privilege_trials import Budget
from rocmrun.usecases.record_evidence import Recorder
from rocmrun.usecases.secrets import check_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest:
    """What the command line asks of diff-privileges.

    Attributes:
        ask: The profile, with its command.
        minimal: The profile of the minimal side; None for the baseline.
        recipe: "amd" for AMD's usual docker line as the permissive side.
        oracle: What the command must do; None for the probe.
        level: The probe's level when the result is verified; searching is quick.
        timeout_seconds: When a command that has not ended counts as failed.
        resume: Go on with what an interrupted search remembered.
        seccomp: Where a tailored seccomp profile will be written; None makes none.
        seccomp_base: What it is made from; None for the engine's own.
        recorder: Records what the job asks of the kernel before the search; None does not.
    """

    ask: Ask
    minimal: Ask | None = None
    recipe: str | None = None
    oracle: CommandOracle | None = None
    level: str = "quick"
    settings: Settings = field(default_factory=Settings)
    budget: Budget = field(default_factory=Budget)
    timeout_seconds: float = 600
    share: bool = False
    wait_seconds: float = 0
    resume: bool = False
    seccomp: Path | None = None
    seccomp_base: Path | None = None
    recorder: Recorder | None = None
    lock_directory: Path = gpu_locks.DIRECTORY


def check_request(request: DiffRequest) -> None:
    """Refuse options that contradict each other, before anything is looked at."""
    if request.recipe and request.minimal:
        msg = "--recipe names the permissive side; the minimal side is the baseline then"
        raise UsageError(msg, hint="leave out MINIMAL, or --recipe")
    if request.seccomp_base and not request.seccomp:
        msg = "--seccomp-base names what a seccomp profile is made from, and none is asked for"
        raise UsageError(msg, hint="--seccomp FILE")
    base = request.seccomp_base
    if request.seccomp and base and request.seccomp.resolve() == base.resolve():
        msg = "--seccomp would write over what --seccomp-base reads"
        raise UsageError(msg, hint="name another file")
    refuse_unlocked_in_ci(request.ask)


def check_emit(path: Path) -> None:
    """Refuse to write a minimal profile over one that a person wrote, before a search of an hour ends there.

    Raises:
        ProfileUnwritable: it is there, and not from an earlier search.
    """
    text = read_text(path, ProfileUnwritable)
    if text and not text.startswith(WRITTEN):
        msg = f"{path} is there, and no search has written it"
        raise ProfileUnwritable(msg, hint="name another file for --emit")


def check_policy(request: DiffRequest, loaded: LoadedProfile) -> None:
    """Refuse what a profile that forbids overrides may not be run with, and a command whose secrets are not there."""
    ask = request.ask
    asked = {
        f"--recipe {request.recipe}": request.recipe,
        "--debug": ask.debug,
        "--unlocked": ask.unlocked,
        "--share": request.share,
    }
    refuse_overrides(loaded, [option for option, given in asked.items() if given])
    if request.oracle is not None:
        check_secrets(loaded.profile)


def refuse_wider(loaded: LoadedProfile, sides: Sides) -> None:
    """A minimal side with rights that the profile has not is a change of it too."""
    wider = sorted(set(sides.base) - set(sides.asked.items))
    refuse_overrides(loaded, [f"{item}, which the minimal side has" for item in wider])
