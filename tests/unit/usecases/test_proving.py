"""The probe's container: fed, bounded in time and output, judged, and gone afterwards."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.plan import Plan, PlannedImage
from rocmrun.core.run import PathStat
from rocmrun.errors import EngineFailed, ProbeFailed
from rocmrun.usecases.proving import Proof, prove
from tests.builders import DIGEST, IMAGE, plan, probe_output
from tests.fakes import STDERR, STDOUT, FakeEngine, Script
from tests.unit.usecases.stage import Heard

ROLE = {"io.rocmrun.role": "probe"}


def run(engine: FakeEngine, job: Plan | None = None, *, heard: Heard | None = None) -> Proof:
    """Prove the GPUs of a plan and return the proof."""
    return prove(
        engine,
        job or plan(),
        level="standard",
        name="rocmrun-job-probe",
        labels=ROLE,
        voice=(heard or Heard()).voice,
    )


def scripted(**script: Any) -> FakeEngine:
    return FakeEngine(scripts={"probe": Script(**script)})


def test_the_probe_gets_its_settings_and_its_source_and_the_end_of_input() -> None:
    engine = FakeEngine()

    proof = run(engine)

    container = engine.made("probe")
    line, _, source = container.input.partition(b"\n")
    settings = json.loads(line)
    assert (settings["level"], settings["expect"]["uid"]) == ("standard", 1000)
    assert b"PROBE_SETTINGS" in source
    assert (container.input_ended, container.closed) == (True, True)
    assert (container.name, container.platform) == ("rocmrun-job-probe", "linux/amd64")
    assert proof.report.status == "pass"
    assert proof.record["HostConfig"]["CapDrop"] == ["ALL"]
    assert engine.kept == []


def test_checks_are_told_as_they_come_and_chatter_is_detail() -> None:
    heard = Heard()
    output = probe_output()
    cut = len(output) // 2
    frames = [
        (STDERR, b"import"), (STDOUT, output[:cut]), (STDERR, b"ing torch\r\nhalf"),
        (STDOUT, output[cut:]),
    ]  # fmt: skip

    report = run(scripted(frames=frames), heard=heard).report

    assert [check.name for check in heard.checks] == ["torch", "matmul_fp32"]
    assert heard.details == ["importing torch", "half"]
    assert report.stderr_tail == ("importing torch", "half")


def test_a_warning_of_the_probe_is_told_at_once() -> None:
    """Also without --verbose: the host may hang a moment later. An image's own flood of them is not."""
    heard = Heard()
    lines = b"".join(b"probe: warning: number %d\n" % number for number in range(9))

    report = run(scripted(frames=[(STDERR, lines), (STDOUT, probe_output())]), heard=heard).report

    assert heard.warnings == [f"the probe: number {number}" for number in range(5)]
    assert heard.details == [f"probe: warning: number {number}" for number in range(5, 9)]
    assert len(report.stderr_tail) == 9


def test_the_last_words_of_a_probe_that_died_are_kept() -> None:
    """Also without a line end."""
    report = run(scripted(frames=[(STDERR, b"Fatal Python error: x")], exit_code=139)).report

    assert (report.status, report.reason) == (
        "broken",
        "the probe reported nothing (exit code 139)",
    )
    assert report.stderr_tail == ("Fatal Python error: x",)


def test_a_line_without_an_end_is_bounded() -> None:
    frames = [(STDERR, b"x" * 3000)] * 10 + [
        (STDOUT, probe_output(level="standard", accelerator="rocm"))
    ]

    report = run(scripted(frames=frames)).report

    assert report.status == "pass"
    assert all(len(line) <= 4000 for line in report.stderr_tail)


def test_the_verdict_is_the_probes() -> None:
    frames = [(STDOUT, probe_output(status="fail", reason="wrong sum"))]

    report = run(scripted(frames=frames)).report

    assert (report.status, report.reason) == ("fail", "device 0: matmul_fp32: wrong sum")


def test_a_probe_that_does_not_end_is_killed() -> None:
    job = plan({"probe": {"timeout_seconds": 1}})
    engine = scripted(until_killed=True)

    report = run(engine, job).report

    assert engine.made("probe").signals == ["SIGKILL"]
    assert (report.status, report.reason) == (
        "fail", "the probe did not end within 1 s and was killed",
    )  # fmt: skip
    assert engine.kept == []


def test_a_probe_that_the_kernel_killed_says_so() -> None:
    report = run(scripted(exit_code=137, oom_killed=True)).report

    assert report.status == "broken"
    assert report.reason == "the kernel killed the probe: the container's memory limit is too low"


def test_a_probe_that_takes_no_input_is_the_reports_business() -> None:
    """It may have died before it read everything."""
    engine = scripted(deaf=True, exit_code=1, frames=[(STDERR, b"no\n")])

    report = run(engine).report

    assert report.status == "broken"
    assert engine.made("probe").input_ended is False


def test_the_attachment_is_closed_when_the_start_fails() -> None:
    engine = FakeEngine(failures={"start probe": EngineFailed("no")})

    with pytest.raises(EngineFailed):
        run(engine)

    assert engine.made("probe").closed
    assert engine.kept == []


@pytest.mark.parametrize(
    ("stat", "said"),
    [(None, "python3.9: not found"), (PathStat(mode=0o644), "has no execute permission")],
)
def test_an_image_without_the_interpreter_says_how_to_name_it(
    stat: PathStat | None, said: str
) -> None:
    files: dict[str, PathStat | bytes | None] = {
        f"{path}/python3.9": stat for path in ("/usr/local/bin", "/usr/bin", "/bin")
    }

    with pytest.raises(ProbeFailed, match=said) as caught:
        run(FakeEngine(files=files), plan({"probe": {"python": "python3.9"}}))

    assert "[probe] python" in (caught.value.hint or "")


@pytest.mark.parametrize("runtime", ["torch", "hip"])
def test_a_report_must_be_of_the_runtime_that_was_asked_for(runtime: str) -> None:
    """What proves a device is another group of checks for each."""
    job = plan({"probe": {"runtime": runtime}})
    right, wrong = (
        run(scripted(frames=[(STDOUT, probe_output(level="standard", accelerator="rocm", runtime=said))]), job).report
        for said in (runtime, {"torch": "hip", "hip": "torch"}[runtime])
    )  # fmt: skip

    assert (right.status, right.runtime) == ("pass", runtime)
    assert (wrong.status, wrong.reason) == (
        "broken", f"the report is of runtime {wrong.runtime}, {runtime} was asked for",
    )  # fmt: skip


def test_the_probe_runs_in_the_image_that_the_plan_names_for_it() -> None:
    """With the plan's rights, its own PATH, and labels that name what really runs."""
    image = PlannedImage(ref="example.com/probe:1", digest=DIGEST, image_id="sha256:" + "5" * 64)
    profile = {"container": {"env": {"PATH": "/opt/app/bin", "OPEN": "yes"}}}
    found = replace(IMAGE, image_id=str(image.image_id))
    engine = FakeEngine(images={found.image_id: found})

    proof = run(engine, plan(profile, probe_image=image))

    request = engine.made("probe").request
    assert request["Image"] == image.image_id
    assert "OPEN=yes" in request["Env"]
    assert [entry for entry in request["Env"] if entry.startswith("PATH=")] == []
    assert request["Labels"]["io.rocmrun.ref"] == "example.com/probe:1"
    assert proof.record["HostConfig"]["CapDrop"] == ["ALL"]
