"""What a launch says while it runs, on stderr."""

from rocmrun.console.output import detail, emit, hint, say, warn
from rocmrun.console.probe_progress import shown_probe
from rocmrun.console.pull import shown_pull
from rocmrun.core.voice import Voice


def voice() -> Voice:
    """Return the voice of this terminal."""
    return Voice(
        say=say,
        detail=detail,
        warn=warn,
        hint=hint,
        result=emit,
        on_pull=shown_pull,
        on_probe=shown_probe,
    )
