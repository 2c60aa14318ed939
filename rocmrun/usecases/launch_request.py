"""What a launch is asked, and what of it is refused before anything is looked at."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rocmrun.core.plan import PROBE_LEVELS
from rocmrun.core.profile.loaded import LoadedProfile, refuse_overrides
from rocmrun.core.workloads import check_container_name
from rocmrun.errors import UsageError
from rocmrun.system import gpu_locks, terminal
from rocmrun.usecases.ask import Ask, refuse_unlocked_in_ci


def _nobody(_text: str) -> None:
    """Tell nobody: no service manager started us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """What the command line asks of a launch.

    Attributes:
        ask: What to plan.
        name: The container's name; None for one made up.
        probe: Whether to prove the GPUs first.
        level: Probe level; None for the profile's.
        detach: Leave the workload running and return.
        keep: Leave the ended container in place.
        share: Take GPUs that others use.
        wait_seconds: How long to wait for GPUs in use.
        replace: Hand over from the detached workload of that name, or of the profile.
        settle_seconds: How long a successor must have run to be up.
        notify: Tells the service manager that started us, in the words of sd_notify(3).
        report: Where the record of the run goes.
        junit: Where it goes as JUnit XML.
        lock_directory: Where the lock files of GPUs are: one place for every user of the host.
    """

    ask: Ask
    name: str | None = None
    probe: bool = True
    level: str | None = None
    detach: bool = False
    keep: bool = False
    share: bool = False
    wait_seconds: float = 0
    replace: bool = False
    settle_seconds: float = 2.0
    notify: Callable[[str], None] = _nobody
    report: Path | None = None
    junit: Path | None = None
    lock_directory: Path = gpu_locks.DIRECTORY


def check_request(request: LaunchRequest) -> None:
    """Refuse options that contradict each other or mean nothing, before anything is looked at."""
    if request.name is not None:
        check_container_name(request.name)
    if request.replace and not request.detach:
        msg = "--replace hands over between detached workloads: add --detach"
        raise UsageError(msg)
    if request.detach and request.ask.tty:
        msg = "--detach leaves no terminal to attach: drop --tty"
        raise UsageError(msg)
    if request.detach and request.ask.interactive:
        msg = "--detach leaves nobody to feed stdin: drop --interactive"
        raise UsageError(msg)
    if request.ask.tty and request.ask.interactive and not terminal.is_terminal(0):
        # The end of a pipe hangs the container's terminal up, mostly before its last line is read.
        msg = "--tty and --interactive need a terminal, and stdin is none"
        raise UsageError(msg, hint="drop --tty: bytes pass through unchanged then")
    refuse_unlocked_in_ci(request.ask)


def check_policy(request: LaunchRequest, loaded: LoadedProfile) -> None:
    """Refuse options that widen what runs or weaken what is proved, where the profile forbids overrides."""
    ask, probe = request.ask, loaded.profile.probe
    weaker = request.level is not None and PROBE_LEVELS.index(request.level) < PROBE_LEVELS.index(
        probe.level
    )
    asked = {
        "--debug": ask.debug,
        "--unlocked": ask.unlocked,
        "--no-probe": not request.probe,
        f"--probe-level {request.level}": weaker,
        "--share": request.share,
    }
    refuse_overrides(loaded, [option for option, given in asked.items() if given])
