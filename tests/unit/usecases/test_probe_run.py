"""Whatever a probe's container prints and for how long: bounded, and ended once it can be no report."""

import json
from typing import Any

import pytest

from rocmrun.core.report.model import Doing, ProbeReport
from rocmrun.core.report.parser import MAX_TOTAL_BYTES
from rocmrun.usecases.probe_run import MOST_RELAYED_LINES
from rocmrun.usecases.proving import prove
from tests.builders import plan, probe_output
from tests.fakes import STDERR, STDOUT, FakeEngine, Script
from tests.unit.usecases.stage import Heard

START = b'{"v":1,"event":"start","level":"quick","accelerator":"rocm"}\n'


def scripted(*frames: tuple[int, bytes], **script: Any) -> FakeEngine:
    return FakeEngine(scripts={"probe": Script(frames=frames, **script)})


def report_of(engine: FakeEngine, heard: Heard | None = None) -> ProbeReport:
    """Prove a plan with a long time limit, and return what came of it."""
    return prove(
        engine,
        plan({"probe": {"timeout_seconds": 600}}),
        level="quick",
        name="probe",
        labels={"io.rocmrun.role": "probe"},
        voice=(heard or Heard()).voice,
    ).report


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ([START, *[b"x" * 65536] * 20], "a line longer than 1 MiB"),
        ([START, *[b"\n" * 60000] * 4], "more than 200000 lines"),
        ([b'{"v":7,"event":"start"}\n'], "protocol version 7; this rocmrun reads 1"),
        ([START, START], "more than one report in one stream"),
        ([b'{"v":1,"event":"end"}\n'], "a end event before the start"),
        ([START, b'{"v":1,"event":"check"}\n'], "a check without the fields that one has"),
    ],
)
def test_what_can_be_no_report_is_ended_at_once(frames: list[bytes], reason: str) -> None:
    """The script would go on until it is killed; the time limit is ten minutes."""
    engine = scripted(*((STDOUT, frame) for frame in frames), until_killed=True)

    report = report_of(engine)

    assert engine.made("probe").signals == ["SIGKILL"]
    assert (report.status, report.reason) == (
        "broken", f"the probe's output is not a report: {reason}"
    )  # fmt: skip
    assert engine.kept == []


def test_endless_chatter_on_standard_error_is_ended() -> None:
    piece = b"warning\n" * 131072
    engine = scripted(*[(STDERR, piece)] * (MAX_TOTAL_BYTES // len(piece) + 1), until_killed=True)
    heard = Heard()

    report = report_of(engine, heard)

    assert engine.made("probe").signals == ["SIGKILL"]
    assert report.reason.endswith("more than 64 MiB on standard error")
    assert len(report.stderr_tail) == 40
    assert len(heard.details) == MOST_RELAYED_LINES + 1
    assert "no more are shown" in heard.details[-1]


def test_a_flood_that_the_memory_limit_ended_is_a_flood() -> None:
    """What was wrong first is what is said."""
    engine = scripted((STDOUT, START + START), until_killed=True, oom_killed=True)

    assert "more than one report" in report_of(engine).reason


def test_chatter_within_bounds_changes_nothing() -> None:
    engine = scripted(
        (STDERR, b"warning\n" * 20000), (STDOUT, probe_output(accelerator="rocm", devices=2))
    )

    assert report_of(engine).status == "pass"
    assert engine.made("probe").signals == []


def test_what_is_under_way_is_told_and_is_part_of_no_report() -> None:
    doing = {"v": 1, "event": "doing", "group": "device", "name": "copy\x1b[2J", "device": 0}
    strange = [{**doing, "name": 5}, {**doing, "device": []}, {**doing, "group": None}]
    output = probe_output(accelerator="rocm", devices=2)
    first, _, rest = output.partition(b"\n")
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in (doing, *strange))
    heard = Heard()

    report = report_of(scripted((STDOUT, first + b"\n" + lines + rest)), heard)

    assert heard.doings == [Doing(group="device", name="copy", device=0)]
    assert (report.status, report.noise_lines, len(report.checks)) == ("pass", 0, 3)
