"""The command group and the entry point: one table, one place for failures, and a fast --help."""

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from rocmrun.__main__ import LAUNCH_FAILED, command_of, exit_code, run
from rocmrun.cli.main import COMMANDS
from rocmrun.console.output import Settings, settings
from rocmrun.errors import Interrupted, RocmrunError
from tests.unit.test_errors import CLASSES

ROOT = Path(__file__).parents[3]
PROGRAM = Path(sys.executable).with_name("rocmrun")
HEAVY = ("docker", "requests", "rich", "pydantic", "torch")
# What the doctor, bundles, traces and searches need, and no plan.
OF_OTHERS = (
    "rocmrun.core.diagnosis", "rocmrun.core.running", "rocmrun.core.bundle", "rocmrun.core.known_strings",
    "rocmrun.core.search", "rocmrun.core.seccomp_filter", "rocmrun.core.trace", "rocmrun.core.recording",
)  # fmt: skip


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Options of one run do not reach the next; bugs are written below the test."""
    for name in ("NO_COLOR", "FORCE_COLOR", "ROCMRUN_QUIET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setitem(COMMANDS, "boom", ("tests.unit.cli.boom", "Fail."))
    yield
    for thread in threading.enumerate():
        if thread is not threading.main_thread():
            thread.join(10)  # it imports docker: the next test would meet it half-way
    fresh = Settings()
    settings.color, settings.quiet, settings.verbose = fresh.color, fresh.quiet, fresh.verbose


def commands() -> list[tuple[str, click.Command]]:
    """Return every command and subcommand with the words that name it."""
    found: list[tuple[str, click.Command]] = []
    for name, (module, _) in COMMANDS.items():
        if name != "boom":
            command = importlib.import_module(module).command
            found.append((name, command))
            if isinstance(command, click.Group):
                found += [(f"{name} {child}", each) for child, each in command.commands.items()]
    return found


COMMAND_LIST = tuple(commands())


def error_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the error in the one JSON object on stdout; nothing else may be said."""
    captured = capsys.readouterr()
    assert captured.err == ""
    body = json.loads(captured.out)
    assert (body["v"], body["ok"]) == (1, False)
    error: dict[str, Any] = body["error"]
    return error


@pytest.mark.parametrize(("name", "command"), COMMAND_LIST, ids=[name for name, _ in COMMAND_LIST])
def test_every_command_has_a_summary_help_and_an_example(name: str, command: click.Command) -> None:
    """The table in main says what the command says."""
    if " " not in name:
        assert COMMANDS[name][1] == command.get_short_help_str(limit=200)
    assert command.help
    if not isinstance(command, click.Group):
        assert f"rocmrun {name}" in command.help
        assert "Example" in command.help


@pytest.mark.parametrize("name", [name for name, _ in COMMAND_LIST])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), "-h"]) == 0

    assert f"Usage: rocmrun {name}" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "command"), COMMAND_LIST, ids=[name for name, _ in COMMAND_LIST])
def test_every_option_says_what_it_does(name: str, command: click.Command) -> None:
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{name}: {option.name}"


def test_help_lists_every_command_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0

    text = " ".join(capsys.readouterr().out.split())
    for name, (_, summary) in COMMANDS.items():
        assert f"{name} {summary}" in text
    assert "rocmrun lock demo && rocmrun plan demo && rocmrun launch demo" in text


def imported(arguments: list[str], names: tuple[str, ...]) -> str:
    """Return which of *names* a command imports in a process of its own, and its exit code."""
    script = (
        "import sys\n"
        "from rocmrun.__main__ import run\n"
        f"code = run({arguments!r})\n"
        f"print('imported:', [name for name in {names!r} if name in sys.modules], code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["launch", "--help"], ["plan", "-h"]]
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """It is what people wait for most often."""
    assert imported(arguments, HEAVY) == "imported: [] 0"


def test_a_plan_imports_nothing_that_others_need() -> None:
    """A module that reads a caller or a host is every command's, and so are its imports."""
    assert imported(["plan", "demo", "--offline"], OF_OTHERS) == "imported: [] 0"


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    from rocmrun import __version__

    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rocmrun, version {__version__}\n"


@pytest.mark.parametrize(("typed", "said"), [("lanch", "; did you mean 'launch'?"), ("qqq", "")])
def test_an_unknown_command_names_the_closest(
    typed: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([typed]) == 2

    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        f"error[usage]: no such command '{typed}'{said}",
        "",
        "hint: rocmrun --help",
    ]
    assert captured.out == ""


def test_an_unknown_command_is_shown_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["\x1b]0;title\x07qq\x1b[31mq\x9b"]) == 2

    assert "no such command 'qqq'" in capsys.readouterr().err


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Usage: rocmrun" in capsys.readouterr().err


def test_a_wrong_option_is_one_json_object_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["clean", "--nosuch", "--json"]) == 2

    error = error_of(capsys)
    assert (error["slug"], error["code"]) == ("usage", 2)
    assert error["message"] == "no such option '--nosuch'"
    assert error["hint"] == "rocmrun clean --help"


def test_a_group_without_a_command_shows_its_help_and_json_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Help is no failure to be read by people; a script gets its object."""
    assert run(["profiles"]) == 2
    assert "Usage: rocmrun profiles" in capsys.readouterr().err

    assert run(["profiles", "--json"]) == 2
    assert error_of(capsys)["slug"] == "usage"


@pytest.mark.parametrize(
    ("arguments", "details", "hint"),
    [
        (["lock", "--jobs", "many"], [], "rocmrun lock --help"),
        (["logs"], ["Usage: rocmrun logs [OPTIONS] NAME"], "rocmrun logs --help"),
        (["launch", "x", "--privileged"], ["docker's --privileged: never"], "go after --"),
        (["launch", "x", "--port", "1"], [], "go after --"),
        (["profiles", "shw"], [], "rocmrun profiles --help"),
    ],
)
def test_a_mistake_on_the_command_line_is_told_as_every_failure(
    arguments: list[str], details: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slug, a sentence in our style, and where to read on."""
    run(arguments)

    captured = capsys.readouterr()
    first, *between, blank, last = captured.err.splitlines()
    assert captured.out == ""
    assert first.startswith("error[usage]: ")
    assert first.removeprefix("error[usage]: ")[0].islower()
    assert not first.endswith(".")
    assert len(between) == len(details)
    assert all(
        line.startswith(f"  {detail}") for line, detail in zip(between, details, strict=True)
    )
    assert blank == ""
    assert last.startswith("hint: ")
    assert hint in last


def test_json_after_the_dashes_is_the_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["launch", "nosuch", "--", "--json"]) == LAUNCH_FAILED

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error[profile-not-found]" in captured.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ""),
        (["launch", "demo"], "launch"),
        (["-v", "--color", "never", "--traceback", "-q", "launch", "demo"], "launch"),
        (["--color=never", "plan", "launch"], "plan"),
        (["plan", "launch"], "plan"),
        (["--color"], ""),
    ],
)
def test_the_command_is_told_from_its_arguments(arguments: list[str], expected: str) -> None:
    assert command_of(arguments) == expected


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_launch_ends_with_125_for_all_that_is_not_the_workloads(
    error: type[RocmrunError],
) -> None:
    """126, 127 and interrupts are as a shell has them."""
    found = error("x")

    kept = found.exit_code in {126, 127, 130}
    assert exit_code(found, launching=True) == (found.exit_code if kept else 125)
    assert exit_code(found, launching=False) == found.exit_code


@pytest.mark.parametrize("number", [1, 2, 15])
def test_an_interruption_ends_as_its_signal_would(number: int) -> None:
    error = Interrupted("x", signal_number=number)

    assert exit_code(error, launching=True) == 128 + number
    assert exit_code(error, launching=False) == 128 + number


def test_a_command_returns_its_own_code() -> None:
    assert run(["boom", "42"]) == 42
    assert run(["boom", "0"]) == 0


def test_a_failure_is_told_with_slug_details_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "nosuch", "--offline"]) == 2

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == 'error[profile-not-found]: there is no profile "nosuch"'
    assert lines[1].startswith("  looked in ")
    assert lines[-2:] == ["", "hint: see them all: rocmrun profiles list"]


def test_a_failure_is_one_json_object_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", "nosuch", "--offline", "--json"]) == 2

    error = error_of(capsys)
    assert (error["slug"], error["code"]) == ("profile-not-found", 2)
    assert error["hint"] == "see them all: rocmrun profiles list"
    assert error["details"]


@pytest.mark.parametrize("how", ["interrupt", "abort"])
def test_an_interruption_from_the_keyboard_is_130(
    how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["boom", how]) == 130
    assert "error[interrupted]: interrupted" in capsys.readouterr().err


def test_a_bug_is_a_short_line_and_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["boom", "bug"]) == 70

    error = capsys.readouterr().err
    (file,) = (tmp_path / "state/rocmrun").glob("bug-*.txt")
    assert "error[bug]: ZeroDivisionError: as asked, without JSON" in error
    assert str(file) in error
    assert "Traceback" not in error
    assert "Traceback" in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_a_bug_is_told_in_json_and_shown_whole_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["boom", "bug", "--json"]) == 70
    error = error_of(capsys)
    assert (error["slug"], error["code"]) == ("bug", 70)

    assert run(["--traceback", "boom", "bug"]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_bug_is_kept_somewhere_when_the_state_directory_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))

    assert run(["boom", "bug"]) == 70

    kept = capsys.readouterr().err.partition("the traceback is in ")[2].partition(",")[0]
    assert "ZeroDivisionError" in Path(kept).read_text()
    Path(kept).unlink()


def test_a_traceback_of_a_failure_is_shown_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["--traceback", "plan", "nosuch", "--offline"]) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["pipe", "epipe"])
def test_a_broken_pipe_is_left_to_the_entry_point(how: str) -> None:
    """click has a way of its own with the one that the kernel reports."""
    with pytest.raises(BrokenPipeError):
        run(["boom", how])


def test_a_directory_that_is_gone_is_no_bug_of_ours(tmp_path: Path) -> None:
    """Profiles and locks are looked for in it, so that there is nothing to do but say so."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"rmdir {gone}; exec {PROGRAM} plan demo --offline"

    done = subprocess.run(
        ["sh", "-c", script], cwd=gone, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "error[usage]: the current directory no longer exists" in done.stderr


def test_a_reader_that_has_gone_is_no_error_of_ours() -> None:
    """`rocmrun … | head` ends as a shell reports SIGPIPE, and says nothing."""
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [PROGRAM, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error_of_ours(closed: str) -> None:
    """What is opened next must not take their numbers."""
    script = (
        "import os; from rocmrun.__main__ import occupy_standard_streams as occupy; occupy();"
        "os._exit(os.open('/dev/null', os.O_RDONLY))"
    )

    for command in (f"{PROGRAM} --version", f"{PROGRAM} plan nosuch --offline"):
        code = subprocess.run(["sh", "-c", f"{command} {closed}"], check=False, capture_output=True)
        assert code.returncode == (0 if "version" in command else 2)
    done = subprocess.run(["sh", "-c", f'{sys.executable} -c "{script}" {closed}'], check=False)
    assert done.returncode > 2


@pytest.mark.parametrize(
    ("options", "environment", "colored"),
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": "1", "TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals_and_for_who_asks(
    options: list[str],
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    colored: bool,
) -> None:
    """The words are the same: meaning never rests on colour."""
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    run([*options, "plan", "nosuch", "--offline"])

    error = capsys.readouterr().err
    assert ("\x1b[" in error) == colored
    assert "error[profile-not-found]:" in error


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["completion", shell]) == 0

    script = capsys.readouterr().out
    assert "_ROCMRUN_COMPLETE" in script
    assert "rocmrun" in script


def test_a_shell_that_has_no_completion_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "tcsh"]) == 2
    assert "tcsh" in capsys.readouterr().err


def test_letters_that_a_terminal_has_not_are_shown_by_number(tmp_path: Path) -> None:
    """Of a log in Japanese on a terminal of another encoding, and of a file's name that is no text."""
    log = tmp_path / "log.txt"
    log.write_text("日本 HIP error: invalid device function\n", encoding="utf-8")
    odd = os.fsencode(tmp_path) + b"/\xff.txt"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}

    shown = subprocess.run([PROGRAM, "doctor", "--log", log], env=environment, capture_output=True, check=False)  # fmt: skip
    named = subprocess.run([PROGRAM, "doctor", "--log", odd], env=environment, capture_output=True, check=False)  # fmt: skip

    assert shown.returncode == 1
    assert rb"\u65e5\u672c HIP error" in shown.stdout
    assert named.returncode == 2
    assert b"cannot be read" in named.stderr
