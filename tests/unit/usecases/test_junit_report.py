"""--junit FILE: written whatever the end is, and known to be writable before anything runs."""

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from rocmrun.errors import ReportUnwritable, RocmrunError
from tests.fakes import STDOUT, Script
from tests.unit.usecases.stage import CPU_JOB, Stage, an_engine

CHECK = '[[probe.checks]]\nname = "ours"\nfile = "ours.py"\nlevel = "quick"\n'


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage of this test's own."""
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return Stage(path=tmp_path)


def junit(stage: Stage) -> Path:
    return stage.path / "junit.xml"


def test_a_probe_writes_both_reports(stage: Stage) -> None:
    stage.probe(an_engine(), junit=junit(stage), level="quick")

    root = Xml.parse(junit(stage)).getroot()
    assert (root.get("name"), root.get("failures"), root.get("errors")) == (
        "rocmrun probe job", "0", "0"
    )  # fmt: skip
    assert [case.get("name") for case in root.iter("testcase")] == ["torch", "matmul_fp32", "probe"]
    assert stage.report["probe"]["status"] == "pass"


def test_a_flood_is_an_error_in_it(stage: Stage) -> None:
    engine = an_engine(
        scripts={"probe": Script(frames=[(STDOUT, b"x" * (2 << 20))], until_killed=True)}
    )

    record = stage.probe(engine, junit=junit(stage), level="quick")

    error = Xml.parse(junit(stage)).getroot().find(".//error")
    assert record.probe.status == "broken"
    assert error is not None
    assert error.get("message") == "the probe's output is not a report: a line longer than 1 MiB"


def test_a_run_that_was_refused_is_an_error_in_it(stage: Stage) -> None:
    (stage.path / "rocmrun.lock").unlink()

    with pytest.raises(RocmrunError):
        stage.probe(an_engine(), junit=junit(stage))

    error = Xml.parse(junit(stage)).getroot().find(".//error")
    assert error is not None
    assert error.get("type") == "lock-missing"


@pytest.mark.parametrize(
    ("name", "said"), [("-", "--junit takes a file"), ("/no/x", "no directory")]
)
def test_a_file_that_cannot_be_written_is_known_before_the_run(
    stage: Stage, name: str, said: str
) -> None:
    engine = an_engine()

    with pytest.raises(ReportUnwritable, match=said):
        stage.probe(engine, junit=Path(name))

    assert engine.calls == []


def test_checks_of_the_profile_reach_the_probe_with_their_text(stage: Stage) -> None:
    """And a level without them sends none."""
    stage.profile(CPU_JOB + CHECK.replace("quick", "standard"))
    (stage.path / "profiles/ours.py").write_text("print('é')\n", encoding="utf-8")
    one, other = an_engine(), an_engine()

    assert stage.probe(one, level="standard").probe.status == "pass"
    stage.probe(other, level="quick")

    assert rb"print('\u00e9')\n" in one.made("probe").input
    assert b"00e9" not in other.made("probe").input


@pytest.mark.parametrize("size", [0, (1 << 20) + 1])
def test_a_file_that_is_none_is_a_mistake_of_the_profile(stage: Stage, size: int) -> None:
    stage.profile(CPU_JOB + CHECK)
    (stage.path / "profiles/ours.py").write_text("#" * size)

    with pytest.raises(RocmrunError, match="profile job has a mistake") as caught:
        stage.probe(an_engine())

    (detail,) = caught.value.details
    assert detail.startswith("profile job: probe.checks[0].file: ")
    assert detail.endswith("is empty" if size == 0 else "is larger than 1 MiB")


def test_bounds_and_files_come_from_parameters_too(stage: Stage) -> None:
    """A path that --set gives starts where the caller stands; a number may be negative."""
    stage.profile(
        CPU_JOB + '[parameters]\nleast = { help = "a number" }\nchecks = { help = "a directory" }\n'
        '[[probe.checks]]\nname = "ours"\nfile = "${checks}/ours.py"\n'
        'metrics = { loss = { min = "${least}" } }\n'
    )
    (stage.path / "own").mkdir()
    (stage.path / "own/ours.py").write_text("print(1)")
    engine = an_engine()

    stage.probe(
        engine, ask=stage.ask(settings={"least": "-5.5", "checks": "own"}), level="standard"
    )

    settings = json.loads(engine.made("probe").input.partition(b"\n")[0])
    assert [check["metrics"] for check in settings["checks"]] == [{"loss": {"min": -5.5}}]
    assert settings["checks"][0]["source"] == "print(1)"
