"""The entry point: runs the command line and turns every failure into one message and one exit code."""

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from rocmrun.errors import EngineFailed, Interrupted, OutputUnwritable, RocmrunError, UsageError
from rocmrun.system import signals

if TYPE_CHECKING:
    from click import ClickException

LAUNCH_FAILED = 125
# Commands that return the workload's own code: their own failures need another.
RELAYING = frozenset({"launch", "wait"})
RELAYED = frozenset({126, 127, 130, 143})
BUG = 70


def main() -> NoReturn:
    """Run the command line and exit."""
    signals.interrupt_with_care()
    occupy_standard_streams()
    # Looking for pydantic's plugins reads the metadata of every installed package, and none of them
    # may change what a profile or a lock means.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): end as a shell reports SIGPIPE.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except OSError as error:
        code = _report_unwritable(error)
    except KeyboardInterrupt:
        # Before there was a command, or while its last words were written.
        code = 130
    # Threads that still wait for the engine must not keep a finished command alive.
    sys.stderr.flush()
    os._exit(code)


def occupy_standard_streams() -> None:
    """Put /dev/null where stdin, stdout or stderr is closed: the next file or socket would take its number."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is the one that is missing.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115  # for the whole run
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115  # for the whole run
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        # What containers print may have letters that a terminal of another encoding has not.
        sys.stdout.reconfigure(errors="backslashreplace")


def run(arguments: Sequence[str]) -> int:
    """Run the command line *arguments* and return the exit code."""
    import click

    from rocmrun.cli.main import cli

    stdout = sys.stdout
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    command = command_of(own)
    as_json, launching = "--json" in own, command in RELAYING
    try:
        result = cli.main(args=list(arguments), prog_name="rocmrun", standalone_mode=False)
    except RocmrunError as error:
        if "--traceback" in own:
            _print_traceback()
        return _failed(error, launching=launching, as_json=as_json)
    except click.ClickException as error:
        return _misused(error, command=command, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return _failed(Interrupted("interrupted"), launching=launching, as_json=as_json)
    except BrokenPipeError:
        raise
    except SystemExit as stop:
        # click hides that the reader of our output has gone: it wraps stdout and ends with 1.
        if sys.stdout is stdout:
            raise
        sys.stdout = stdout
        raise BrokenPipeError from stop
    except Exception as error:  # noqa: BLE001  # what is not ours, nor the machine's, is a bug
        return _unexpected(error, arguments=own, launching=launching)
    return result if isinstance(result, int) else 0


def _failed(error: RocmrunError, *, launching: bool, as_json: bool) -> int:
    from rocmrun.console.output import report_error

    code = exit_code(error, launching=launching)
    if isinstance(error, EngineFailed):
        from rocmrun.usecases.doctor import add_cause

        add_cause(error)
    report_error(error, code=code, as_json=as_json)
    return code


def _misused(error: "ClickException", *, command: str, as_json: bool) -> int:
    """Say what is wrong with the command line; a command that nothing was asked of shows its help."""
    from click.exceptions import NoArgsIsHelpError

    from rocmrun.cli.misuse import usage_error

    if isinstance(error, NoArgsIsHelpError):
        error.show()
        return error.exit_code
    return _failed(usage_error(error, command), launching=command in RELAYING, as_json=as_json)


def _unexpected(error: Exception, *, arguments: Sequence[str], launching: bool) -> int:
    """Tell what no part of us raised on purpose."""
    as_json = "--json" in arguments
    if isinstance(error, FileNotFoundError) and not _in_a_directory():
        gone = UsageError("the current directory no longer exists", hint="cd to one that does")
        return _failed(gone, launching=launching, as_json=as_json)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return _report_unwritable(error)
    return _report_bug(error, as_json=as_json, show="--traceback" in arguments)


def _report_unwritable(error: OSError) -> int:
    """Say on stderr that a result could not be written, and drop what is still to be written."""
    from rocmrun.console.output import report_error

    unwritable = OutputUnwritable(f"the result could not be written: {error.strerror}")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    report_error(unwritable, code=unwritable.exit_code, as_json=False)
    return unwritable.exit_code


def _in_a_directory() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  # Path.cwd() is the same call
    except FileNotFoundError:
        return False
    return True


def command_of(arguments: Sequence[str]) -> str:
    """Return the command among *arguments*: the first word that is no option of ours, nor the value of one."""
    words = iter(arguments)
    for word in words:
        if word == "--color":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def exit_code(error: RocmrunError, *, launching: bool) -> int:
    """Return the code for *error*: what relays a workload's code says 125 for its own failures, as `docker run` does."""
    if isinstance(error, Interrupted):
        return 128 + error.signal_number
    if launching and error.exit_code not in RELAYED:
        return LAUNCH_FAILED
    return error.exit_code


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()


def _report_bug(error: Exception, *, as_json: bool, show: bool) -> int:
    """Say one short line, keep the traceback in a file, and return 70."""
    import tempfile
    import traceback
    from pathlib import Path

    from rocmrun.console.output import report_error

    text = "".join(traceback.format_exception(error))
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rocmrun"
    try:
        state.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="bug-", suffix=".txt", dir=state)
    except OSError:
        handle, name = tempfile.mkstemp(prefix="rocmrun-bug-", suffix=".txt")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    if show:
        sys.stderr.write(text)
    bug = RocmrunError(
        f"{type(error).__name__}: {error}",
        hint=f"this is a bug in rocmrun; the traceback is in {name}, please report it",
    )
    bug.slug = "bug"  # type: ignore[misc]  # the one failure without a class of its own
    report_error(bug, code=BUG, as_json=as_json)
    return BUG


if __name__ == "__main__":
    main()
