"""Checks of a profile's own, run by the real script: judged, bounded, one after the other, and by hand."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.probe.parts.events import Events
from rocmrun.probe.parts.own_settings import complete_own_checks
from rocmrun.probe.parts.own_stage import run_own_checks
from tests.unit.probe.runs import SCRIPT, clean_environment, run_probe

ON_CPU: dict[str, Any] = {"accelerator": "cpu", "level": "quick"}
# What starts a process that would outlive its check, and says which it is.
LEAVES_ONE = "import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']).pid, flush=True)\n"
VISIBLE = (
    "import os\nprint([os.environ.get(n) for n in ('HIP_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES')])"
)
CHECKS: dict[str, dict[str, Any]] = {
    "last_value": {"command": ["printf", r'{"tps": 1}\nchatter\n{"tps": 9}\n[1]\n{"tps"'], "metrics": {"tps": {"min": 9}}},
    "too_many": {"command": ["echo", '{"tps": 7}'], "metrics": {"tps": {"max": 6.5}}},
    "no_metric": {"command": ["echo", '{"other": 7}'], "metrics": {"tps": {}}},
    "on_stderr": {"source": "import sys\nprint('{\"tps\": 7}', file=sys.stderr)", "metrics": {"tps": {}}},
    "no_number": {"command": ["echo", '{"tps": true}'], "metrics": {"tps": {}}},
    "not_finite": {"command": ["echo", '{"tps": NaN}'], "metrics": {"tps": {}}},
    "matches": {"source": "import sys\nprint('it is ready', file=sys.stderr)", "expect_output": "^it .*dy$"},
    "no_match": {"command": ["echo", "no"], "expect_output": "^yes$"},
    "strange_pattern": {"command": ["true"], "expect_output": "("},
    "code": {"command": ["sh", "-c", "echo first; echo last words >&2; exit 4"]},
    "wanted_code": {"command": ["false"], "expect_exit": 1},
    "aborts": {"source": "import os\nos.abort()"},
    "absent": {"command": ["no-such-program"]},
    "floods": {"command": ["cat", "/dev/zero"]},
    "long_line": {"source": "print('x' * 3_000_000 + '{\"tps\": 1}')", "metrics": {"tps": {}}},
    "hangs": {"source": LEAVES_ONE + "import time\ntime.sleep(300)", "timeout": 1},
    "leaves": {"source": LEAVES_ONE},
    "has_a_file": {"source": "import inspect\ndef f(): pass\nprint(inspect.getsource(f))", "expect_output": "^def f"},
    "reads_nothing": {"source": "import sys\nassert sys.stdin.read() == ''"},
}  # fmt: skip


@pytest.fixture(scope="module")
def judged() -> ProbeReport:
    """All of them in one run."""
    checks = [{"name": name, "level": "quick", **check} for name, check in CHECKS.items()]
    return run_probe({"build": "cpu"}, checks=checks, **ON_CPU)


def own(report: ProbeReport, name: str, device: int | str | None = None) -> ProbeCheck:
    check = report.find("own", name, device)
    assert check is not None, [check.label for check in report.checks]
    return check


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("last_value", ""),
        ("too_many", "its metric tps is 7, more than 6.5"),
        ("no_metric", "it printed no metric tps: a JSON object in a line of its standard output"),
        ("on_stderr", "it printed no metric tps: a JSON object in a line of its standard output"),
        ("no_number", "its metric tps is no number: True"),
        ("not_finite", "its metric tps is no number: nan"),
        ("matches", ""),
        ("no_match", "no line of its output matches ^yes$"),
        ("code", "it ended with exit code 4, not 0: last words"),
        ("wanted_code", ""),
        ("aborts", "it was killed by SIGABRT"),
        ("absent", "cannot start no-such-program: No such file or directory"),
        ("floods", "it printed more than 64 MiB"),
        ("long_line", "it printed no metric tps: a JSON object in a line of its standard output"),
        ("hangs", "not finished after 1 s"),
        ("leaves", ""),
        ("has_a_file", ""),
        ("reads_nothing", ""),
    ],
)
def test_a_check_is_judged_by_its_end_and_its_output(
    judged: ProbeReport, name: str, reason: str
) -> None:
    check = own(judged, name)

    assert (check.status, check.reason) == ("fail" if reason else "pass", reason)


def test_a_pattern_that_this_python_does_not_know_is_said(judged: ProbeReport) -> None:
    assert own(judged, "strange_pattern").reason.startswith(
        "expect_output is no regular expression for Python 3."
    )


def test_the_number_that_decided_is_named(judged: ProbeReport) -> None:
    check = own(judged, "too_many")

    assert (check.threshold, check.threshold_source) == (
        6.5, "the profile: metrics.tps.max of check too_many"
    )  # fmt: skip
    assert check.evidence["metrics"] == {"tps": 7}


def test_evidence_is_bounded(judged: ProbeReport) -> None:
    for check in judged.checks:
        assert len(json.dumps(check.evidence)) < 40 * 450 * 6


def running(pid: int) -> bool:
    """Whether a process is there and is no zombie that nobody has buried yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("name", ["hangs", "leaves"])
def test_what_a_check_started_ends_with_it(judged: ProbeReport, name: str) -> None:
    pid = int(own(judged, name).evidence["last_lines"][0])

    end = time.monotonic() + 60
    while running(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not running(pid)


def test_each_gpu_has_one_variable_and_a_gpu_that_failed_is_left_out() -> None:
    """A check of all of them would only say again what the device's own checks say."""
    checks = [
        {"name": "alone", "source": VISIBLE, "level": "quick", "device": "each"},
        {"name": "together", "source": VISIBLE, "level": "quick"},
        {"name": "later", "command": ["true"]},
    ]
    report = run_probe({"devices": 2, "fault": "nan", "device": 1}, level="quick", checks=checks)

    alone = own(report, "alone", 0)
    assert (alone.status, alone.evidence["last_lines"]) == ("pass", ["['0', None]"])
    for check in (own(report, "alone", 1), own(report, "together")):
        assert (check.status, check.reason) == ("skipped", "device 1 failed on its own")
    assert report.find("own", "later") is None
    assert report.stages[-1] == "own"


def test_what_is_under_way_is_an_event_of_its_own() -> None:
    """For whoever watches: an old reader passes over it."""
    settings = {"v": 1, **ON_CPU, "size": 8, "checks": [{"name": "ours", "command": ["true"], "level": "quick"}]}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "import sys\nPROBE_SETTINGS,_,PROBE_SOURCE=sys.stdin.buffer.read().partition(b'\\n')\nexec(PROBE_SOURCE)"],
        input=json.dumps(settings).encode() + b"\n" + SCRIPT.read_bytes(),
        env=clean_environment({"build": "cpu"}), capture_output=True, check=True,
    )  # fmt: skip
    events = [json.loads(line) for line in done.stdout.splitlines()]
    doing = [(e["group"], e["name"], e["device"]) for e in events if e["event"] == "doing"]

    assert ("device", "matmul_fp32", "cpu") in doing
    assert doing[-1] == ("own", "ours", None)


@pytest.mark.parametrize(
    ("checks", "reason"),
    [
        ({}, "checks is no list"),
        ([{}], "checks[0] has no name"),
        ([{"name": "a"}], "checks[0] needs a command or a source, and not both"),
        ([{"name": "a", "command": [1]}], "checks[0] has a command with a word that is no text"),
        ([{"name": "a", "command": ["b"], "tmeout": 1}], "checks[0] has the unknown key tmeout"),
        ([{"name": "a", "command": ["b"], "timeout": "1"}], "checks[0] has a timeout that is no int"),
        ([{"name": "a", "command": ["b"], "level": "all"}], "checks[0] has the level all"),
        ([{"name": "a", "command": ["b"], "metrics": {"x": {"least": 1}}}], "checks[0] has bounds of x"),
        ([{"name": "a", "command": ["b"], "metrics": {"x": {"min": "1"}}}], "checks[0] has a bound of x"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(checks: Any, reason: str) -> None:
    complete, problem = complete_own_checks(checks, "quick")

    assert (complete, problem[: len(reason)]) == ([], reason)


def test_by_hand_checks_come_from_a_file_and_a_table_ends_it(tmp_path: Path) -> None:
    """What is wrong stands first; the last line is the verdict."""
    (tmp_path / "bad.py").write_text("raise SystemExit('no luck')")
    checks = [{"name": "bad", "file": "bad.py", "level": "quick", "device": "each"}]
    (tmp_path / "checks.json").write_text(json.dumps(checks))
    command = [sys.executable, str(SCRIPT), "--accelerator", "cpu", "--size", "8"]
    command += ["--checks", str(tmp_path / "checks.json"), "--stage-timeout", "device=30"]

    done = subprocess.run(
        command,
        env=clean_environment({"build": "cpu"}),
        capture_output=True,
        text=True,
        check=False,
    )

    lines = done.stderr.splitlines()
    begin = lines.index(next(line for line in lines if line.startswith("status ")))
    assert done.returncode == 1
    assert lines[begin + 1].split(maxsplit=3) == [
        "fail", "device", "cpu", "own bad  it ended with exit code 1, not 0: no luck"
    ]  # fmt: skip
    assert any(line.split() == ["device", "matmul_fp32", "pass"] for line in lines[begin:])
    assert lines[-1].startswith("probe: fail (")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--checks", "/no/such/file"], "No such file or directory"),
        (["--stage-timeout", "devices=1"], "devices is no stage"),
        (["--stage-timeout", "device"], "device is not STAGE=SECONDS"),
    ],
)
def test_options_that_make_no_sense_are_refused(words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False
    )

    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_without_a_device_nothing_is_tried() -> None:
    checks = [{"name": "ours", "command": ["true"], "level": "quick"}]

    report = run_probe(torch=False, level="quick", checks=checks)

    assert (own(report, "ours").status, own(report, "ours").reason) == (
        "skipped", "no device was found"
    )  # fmt: skip


def test_a_check_that_came_too_late_has_failed() -> None:
    """Work must not start because there was no time for the check that it waits for."""
    checks, _ = complete_own_checks(
        [{"name": "late", "command": ["true"], "level": "quick"}], "quick"
    )
    events = Failed()

    run_own_checks(
        {"checks": checks, "accelerator": "cpu"},
        events,
        never,
        never,
        {"cpu": True},
        time.monotonic(),
    )

    (failed,) = events.told
    assert (failed["name"], failed["reason"]) == (
        "late", "no time was left for it: the whole probe has timeout_seconds"
    )  # fmt: skip


class Failed(Events):
    """Events that only remember what failed: real ones would take this process's stdout."""

    def __init__(self) -> None:
        self.told = []

    def fail(self, group: str, name: str, reason: str, **fields: Any) -> None:
        self.told.append({"group": group, "name": name, "reason": reason, **fields})


def never(*_arguments: Any) -> NoReturn:
    raise AssertionError
