"""The two streams: stdout is data or the workload's, stderr is ours. Nothing else writes to either.

rich is imported only when something styled is printed: a launch off a terminal never pays for it.
"""

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TextIO

from rocmrun.core.text import printable
from rocmrun.errors import RocmrunError

if TYPE_CHECKING:
    from rich.console import Console

JSON_VERSION = 1
WIDE = 200


@dataclass(slots=True)
class Settings:
    """What the top-level options asked for; set once by the command line."""

    color: Literal["auto", "always", "never"] = "auto"
    quiet: bool = False
    verbose: bool = False


settings = Settings()


def out() -> "Console":
    """Return the console for results (stdout)."""
    return _console(sys.stdout)


def err() -> "Console":
    """Return the console for messages (stderr)."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> "Console":
    from rich.console import Console  # noqa: PLC0415  # 60 ms that most launches do not need

    class PipedConsole(Console):
        """A console that leaves a reader who has gone to the entry point, which ends with 141."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    forced = {"always": True, "never": False}.get(settings.color)
    return PipedConsole(
        file=stream,
        force_terminal=forced,
        no_color=settings.color == "never" or bool(os.environ.get("NO_COLOR")),
        highlight=False,
        markup=False,
        # Off a terminal nobody wraps for us, and a pipe wants whole lines.
        width=None if stream.isatty() else WIDE,
    )


def emit(text: str) -> None:
    """Print one line of result on stdout."""
    sys.stdout.write(text + "\n")


def emit_json(value: Any) -> None:
    """Print exactly one JSON object on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=True) + "\n")


def say(message: str) -> None:
    """Print a message on stderr, unless --quiet."""
    if not settings.quiet:
        _line(f"rocmrun: {printable(message)}")


def detail(message: str) -> None:
    """Print a message on stderr under --verbose."""
    if settings.verbose and not settings.quiet:
        _line(f"rocmrun: {printable(message)}")


def warn(message: str) -> None:
    """Print a warning on stderr, also under --quiet."""
    _line(_styled("warning:", "33") + f" {printable(message)}")


def hint(message: str) -> None:
    """Print what to look at next on stderr, unless --quiet."""
    if not settings.quiet:
        _line(f"{_styled('hint:', '36')} {printable(message)}")


def report_error(error: RocmrunError, *, code: int, as_json: bool) -> None:
    """Print *error* once: a JSON object on stdout under --json, else text and hint on stderr."""
    if as_json:
        emit_json(
            {
                "v": JSON_VERSION,
                "ok": False,
                "error": {
                    "slug": error.slug,
                    "code": code,
                    "message": error.message,
                    "hint": error.hint,
                    "details": list(error.details),
                },
            }
        )
        return
    _line(_styled(f"error[{error.slug}]:", "31;1") + f" {printable(error.message)}")
    for line in error.details:
        _line(f"  {printable(line)}")
    if error.hint:
        _line(f"\n{_styled('hint:', '36')} {printable(error.hint)}")


def _line(text: str) -> None:
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        # Nobody reads our words any more; the work and its exit code still matter.
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115


def _styled(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if _colored(sys.stderr) else text


def _colored(stream: TextIO) -> bool:
    if settings.color != "auto":
        return settings.color == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()
