"""What a launch says while it runs, on stderr."""

from rocmrun.console.output import detail, emit, say, warn
from rocmrun.console.pull import shown_pull
from rocmrun.core.report import ProbeCheck
from rocmrun.core.voice import Voice


def voice() -> Voice:
    """Return the voice of this terminal."""
    return Voice(
        say=say, detail=detail, warn=warn, result=emit, on_pull=shown_pull, on_check=_check
    )


def _check(check: ProbeCheck) -> None:
    """Failures are told at once, everything else under --verbose."""
    line = f"probe: {check.label} {check.status}" + (f": {check.reason}" if check.reason else "")
    (say if check.status in {"fail", "degraded"} else detail)(line)
