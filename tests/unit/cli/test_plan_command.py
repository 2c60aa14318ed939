"""rocmrun plan, as a person or a script calls it: what only the command line decides."""

import json
from pathlib import Path

import pytest

from rocmrun.__main__ import run
from rocmrun.core.host_json import host_to_json
from tests.builders import host


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A saved host with one GPU."""
    path = tmp_path / "host.json"
    path.write_text(json.dumps({"v": 1, "ok": True, **host_to_json(host())}))
    return str(path)


@pytest.mark.parametrize(("limit", "code"), [("0.9", 0), ("1", 0), ("10", 0), ("0.8", 1), ("0", 1)])
def test_a_budget_that_is_exceeded_is_the_answer_no(
    saved: str, capsys: pytest.CaptureFixture[str], limit: str, code: int
) -> None:
    """Compared as shown, with one decimal; the plan is printed all the same."""
    words = ["plan", "prod-inference", "--offline", "--host", saved, "--max-exposure", limit]

    assert run([*words, "--json"]) == code

    said = capsys.readouterr()
    exposure = json.loads(said.out)["exposure"]
    assert (exposure["total"], exposure["band"]) == (0.9, "tight")
    assert ("is above" in said.err) == bool(code)


def test_the_table_is_sorted_and_names_what_does_not_apply(
    saved: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Largest part first, a plain sentence each."""
    assert run(["plan", "prod-inference", "--offline", "--host", saved]) == 0

    shown = capsys.readouterr().out
    lines = shown[shown.index("Exposure 0.9 of 10, tight") :].splitlines()
    assert lines[1].split() == ["adds", "if", "dropped", "what"]
    parts = [float(line.split()[0]) for line in lines[2:7]]
    assert parts == sorted(parts, reverse=True)
    assert "the engine's seccomp filter" in lines[2]
    assert any("not applicable: user_namespace" in line for line in lines)


def test_a_budget_is_a_number_from_0_to_10(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "demo", "--offline", "--max-exposure", "11"]) == 2
    assert "0<=x<=10" in capsys.readouterr().err
