"""rocmrun diff-privileges: what stands before and after --, and options that are judged before anything runs."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rocmrun.__main__ import run
from rocmrun.cli.diff_privileges import command
from tests.hosts import build_host

PROFILE = (
    'accelerator = "cpu"\n[image]\nref = "example.com/rocm/torch:1"\n[gpus]\nselect = ["none"]\n'
)


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Options that keep to a folder of this test's own, with profiles a and b."""
    for name, tables in (("a", '[[privileges]]\ngrant = "rootfs:rw"\nreason = "r"\n'), ("b", "")):
        (tmp_path / f"{name}.toml").write_text(PROFILE + tables)
    root = build_host(tmp_path / "host")
    return ["--profile-dir", str(tmp_path), "--host-root", str(root)]


def invoke(*args: str) -> Result:
    return CliRunner().invoke(command, args, standalone_mode=False)


def test_a_word_too_many_before_the_dashes_is_no_command(words: list[str]) -> None:
    """The job's command stands after them."""
    result = invoke("a", "b", "python3", *words)

    assert "the job's command stands after --" in str(result.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--metric", "speed"), "is not NAME=MIN"),
        (("--expect-output", "("), "is no regular expression"),
        (("--budget", "soon"), "neither a number of runs nor a time"),
        (("--recipe", "amd", "b"), "--recipe names the permissive side"),
    ],
)
def test_options_are_judged_before_an_engine_is_waited_for(
    words: list[str],
    options: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Usage, exit code 2."""
    *rest, last = options
    minimal = ["b"] if last == "b" else []
    named = rest if minimal else list(options)

    code = run(["diff-privileges", "a", *minimal, *named, *words, "--", "true"])

    assert code == 2
    assert message in capsys.readouterr().err


def test_a_certificate_that_is_not_there_is_said(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """By its name."""
    assert run(["diff-privileges", "a", "--stale", "none.json", *words]) == 2
    assert "certificate none.json does not exist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--emit", "{t}/none/x.toml"), "cannot write the result: {t}/none is no directory"),
        (("--seccomp", "{t}/none/x.json"), "cannot write the result: {t}/none is no directory"),
        (("--certificate", "{t}/a.toml/x"), "cannot write the result: {t}/a.toml is no directory"),
        (("--emit", "{t}/x", "--certificate", "{t}/./x"), "--emit and --certificate name the same file"),
        (("--seccomp", "{t}/link", "--emit", "{t}/x"), "--seccomp and --emit name the same file"),
        (("--seccomp", "{t}/link", "--seccomp-base", "{t}/x"), "--seccomp would write over what"),
    ],
)  # fmt: skip
def test_a_search_does_not_end_in_files_that_cannot_be_written(
    words: list[str],
    options: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is refused before anything is looked at: what took hours would be lost."""
    (tmp_path / "link").symlink_to(tmp_path / "x")
    given = [option.format(t=tmp_path) for option in options]

    assert run(["diff-privileges", "a", *given, *words, "--", "true"]) == 2
    assert message.format(t=tmp_path) in capsys.readouterr().err


def test_without_a_profile_there_is_something_missing(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a certificate names one itself, and only --stale reads it."""
    for options in ([], ["--no-run", "--stale", "c.json"]):
        assert run(["diff-privileges", *options, *words]) == 2
        assert "missing argument 'PROFILE'" in capsys.readouterr().err
