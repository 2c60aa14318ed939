"""cosign as a process. The stand-ins here are shell scripts; the real program is in tests/docker/test_signatures.py."""

from pathlib import Path

import pytest

from rocmrun.errors import SignatureUnverified
from rocmrun.system.cosign import run_cosign


def stand_in(tmp_path: Path, script: str) -> str:
    path = tmp_path / "cosign"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_what_it_says_and_how_it_ended(tmp_path: Path) -> None:
    program = stand_in(tmp_path, 'echo "$@"; echo "$K" >&2; cat; exit 12')

    done = run_cosign(("verify", "x"), {"K": "key"}, 10, program=program)

    assert (done.stdout, done.stderr, done.returncode) == ("verify x\n", "key\n", 12)


def test_the_callers_environment_stays(tmp_path: Path) -> None:
    """Logins, proxies and trust roots are found there."""
    program = stand_in(tmp_path, 'echo "$PATH"')

    assert run_cosign((), {}, 10, program=program).stdout.strip()


def test_odd_bytes_are_no_crash(tmp_path: Path) -> None:
    program = stand_in(tmp_path, r"printf '\377\n'")

    assert run_cosign((), {}, 10, program=program).stdout == "\ufffd\n"


@pytest.mark.parametrize(
    ("script", "timeout", "expected"),
    [
        (None, 10.0, "x must be signed, and cosign is not installed"),
        ("exec sleep 60", 0.2, "x must be signed, and cosign did not end within 0.2 s"),
    ],
)
def test_no_answer_is_no_verification(
    tmp_path: Path, script: str | None, timeout: float, expected: str
) -> None:
    program = str(tmp_path / "absent") if script is None else stand_in(tmp_path, script)

    with pytest.raises(SignatureUnverified) as caught:
        run_cosign(("verify", "x"), {}, timeout, program=program)

    assert expected == caught.value.message


def test_what_cannot_be_executed_says_why(tmp_path: Path) -> None:
    program = tmp_path / "cosign"
    program.write_text("no program")
    program.chmod(0o755)

    with pytest.raises(SignatureUnverified, match="cannot be started: Exec format error"):
        run_cosign(("verify", "x"), {}, 10, program=str(program))
