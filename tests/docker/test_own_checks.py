"""A small model, and checks of a profile's own, in the real container of a probe; and its reports."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import docker
import pytest

from tests.docker.inside import workspace_at
from tests.schema import problems
from tests.workspace import Workspace, left_behind

SERVES = """
import json, os, torch
assert "TOKEN" not in os.environ
with open("/data/from-the-check", "w") as file:
    file.write("written")
print("loading \\x1b[31mweights\\x1b[0m")
print(json.dumps({"tokens_per_second": 1.0}))
print(json.dumps({"tokens_per_second": float(torch.ones(8).sum())}))
"""
CHECKS = """
[container]
env_from = ["TOKEN"]
[[mounts]]
source = "{data}"
target = "/data"
mode   = "rw"
[[probe.checks]]
name            = "serves"
file            = "serves.py"
level           = "full"
device          = "each"
expect_output   = "weights"
metrics         = {{ tokens_per_second = {{ min = 8, max = 8 }} }}
writable_mounts = true
[[probe.checks]]
name    = "too_slow"
command = ["echo", '{{"tokens_per_second": 5}}']
metrics = {{ tokens_per_second = {{ min = 6 }} }}
[[probe.checks]]
name    = "hangs"
command = ["sh", "-c", "echo begun; sleep 100 & sleep 100"]
timeout = 1
[[probe.checks]]
name        = "ends_with_3"
command     = ["sh", "-c", "exit 3"]
expect_exit = 3
"""
MODEL = ("load", "short_input", "long_input", "batch", "greedy_decode", "memory_growth")


@dataclass(frozen=True)
class Accepted:
    """One `rocmrun probe --level full --json --report FILE --junit FILE`."""

    done: subprocess.CompletedProcess[str]
    printed: dict[str, Any]
    written: dict[str, Any]
    junit: Xml.Element
    data: Path

    def check(self, group: str, name: str) -> dict[str, Any]:
        """The one check of that name."""
        found: dict[str, Any]
        (found,) = (
            check
            for check in self.printed["probe"]["checks"]
            if (check["group"], check["name"]) == (group, name)
        )
        return found


@pytest.fixture(scope="module")
def accepted(
    engine: docker.DockerClient, demo_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Accepted:
    """All stages on the processor, with checks that pass and checks that fail."""
    workspace = workspace_at(tmp_path_factory.mktemp("own"))
    data = _shared(workspace)
    profile = workspace.profile(demo_image, CHECKS.format(data=data))
    (workspace.profiles / "serves.py").write_text(SERVES, encoding="utf-8")
    report, junit = workspace.path / "report.json", workspace.path / "junit.xml"
    words = ("--level", "full", "--json", "--report", str(report), "--junit", str(junit))
    done = workspace.rocmrun("probe", profile, *words, env={"TOKEN": "hunter2"}, timeout=300)
    assert left_behind(engine, workspace) == []
    return Accepted(
        done=done,
        printed=json.loads(done.stdout),
        written=json.loads(report.read_text()),
        junit=Xml.parse(junit).getroot(),
        data=data,
    )


@pytest.mark.parametrize("name", MODEL)
def test_the_model_computes_what_the_reference_does(accepted: Accepted, name: str) -> None:
    """Each on the cpu, each with the number that decided and where that comes from."""
    check = accepted.check("model", name)

    assert (check["status"], check["device"]) == ("pass", "cpu"), check
    assert name == "load" or (check["threshold"] > 0 and check["threshold_source"])


def test_the_model_is_measured(accepted: Accepted) -> None:
    """Values well inside their bounds and not exactly right, tokens equal, speeds, no growth."""
    decode = accepted.check("model", "greedy_decode")["evidence"]

    for name in ("short_input", "long_input", "batch"):
        assert 0 < accepted.check("model", name)["evidence"]["worst_share_of_bound"] < 0.5
    assert (decode["equal"] + decode["undecided"], decode["repeated"]) == (decode["tokens"], True)
    assert decode["tokens_per_second"] > 0
    # HOME is where the cache is; nothing of the model stays there.
    assert accepted.check("model", "load")["evidence"]["weights_only"] is True


def test_full_has_more_sizes_of_each_collective(accepted: Accepted) -> None:
    """Two real processes over gloo; the other levels have fewer, see test_probe_together.py."""
    for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"):
        check = accepted.check("collectives", name)
        assert (check["status"], check["evidence"]["world"]) == ("pass", 2)
        sizes = [row["bytes"] for row in check["evidence"]["sizes"]]
        assert sizes == [4096, 64 << 10, 1 << 20, 4 << 20]


def test_a_file_runs_once_a_device_and_its_last_number_counts(accepted: Accepted) -> None:
    """It saw no secret, and wrote where its profile lets it."""
    check = accepted.check("own", "serves")

    assert (check["status"], check["device"]) == ("pass", "cpu"), check
    assert check["evidence"]["metrics"] == {"tokens_per_second": 8.0}
    assert check["evidence"]["last_lines"][0] == "loading weights"
    assert (accepted.data / "from-the-check").read_text() == "written"


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("too_slow", "fail", "its metric tokens_per_second is 5, less than 6"),
        ("hangs", "fail", "not finished after 1 s"),
        ("ends_with_3", "pass", ""),
    ],
)
def test_a_command_is_judged(accepted: Accepted, name: str, status: str, reason: str) -> None:
    check = accepted.check("own", name)

    assert (check["status"], check["reason"], check["device"]) == (status, reason, None)


def test_the_reports_say_the_same_and_keep_to_the_schema(
    accepted: Accepted, tmp_path: Path
) -> None:
    """JSON on stdout, JSON in a file, JUnit; and the code is that of a failed probe."""
    failed = {
        (case.get("classname"), case.get("name"))
        for case in accepted.junit.iter("testcase")
        if case.find("failure") is not None
    }

    assert accepted.done.returncode == 9
    assert accepted.written["probe"] == accepted.printed["probe"]
    assert problems(tmp_path, accepted.written, accepted.printed) == ""
    assert {("container", "too_slow"), ("container", "hangs")} <= failed
    assert {"model", "own", "verdict"} <= {suite.get("name") for suite in accepted.junit}
    assert "rocmrun: probe: own: hangs fail: not finished after 1 s\n" in accepted.done.stderr
    assert "hunter2" not in json.dumps(accepted.printed) + accepted.done.stderr


def test_a_launch_waits_for_the_checks_of_its_level(
    engine: docker.DockerClient, workspace: Workspace, demo_image: str
) -> None:
    """A proof counts again until the file is another; mounts are read-only without the word."""
    data = _shared(workspace)
    profile = workspace.profile(
        demo_image,
        f'[[mounts]]\nsource = "{data}"\ntarget = "/data"\nmode = "rw"\n'
        '[[probe.checks]]\nname = "ours"\nfile = "ours.py"\nlevel = "quick"\n',
    )
    file = workspace.profiles / "ours.py"
    file.write_text(
        "try:\n    open('/data/x', 'w')\nexcept OSError as error:\n    assert error.errno == 30\n"
        "else:\n    raise SystemExit('writable')\n"
    )

    first = workspace.rocmrun("launch", profile, "--", "echo", "worked", check=True)
    again = workspace.rocmrun("launch", profile, "--", "echo", "worked", check=True)
    file.write_text("raise SystemExit('the kernel is too slow')\n")
    other = workspace.rocmrun("launch", profile, "--", "echo", "worked")

    assert "probe quick: running" in first.stderr
    assert "not run again" in again.stderr
    assert (other.returncode, other.stdout) == (125, "")
    assert "own: ours: it ended with exit code 1, not 0: the kernel is too slow" in other.stderr, (
        other.stderr
    )
    assert left_behind(engine, workspace) == []


def test_files_that_are_missing_are_named_together(workspace: Workspace, demo_image: str) -> None:
    """Before anything is pulled or started."""
    profile = workspace.profile(
        demo_image,
        '[[probe.checks]]\nname = "one"\nfile = "one.py"\n'
        '[[probe.checks]]\nname = "two"\nfile = "two.py"\n',
    )

    done = workspace.rocmrun("plan", profile, "--json")

    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["slug"]) == (2, "profile-invalid")
    assert [line.rpartition("probe.checks")[2] for line in error["details"]] == [
        f"[0].file: {workspace.profiles}/one.py does not exist",
        f"[1].file: {workspace.profiles}/two.py does not exist",
    ]


def _shared(workspace: Workspace) -> Path:
    """Make a directory that every user may write to."""
    data = workspace.path / "data"
    data.mkdir()
    data.chmod(0o777)
    return data


def test_a_container_that_floods_is_ended_at_once(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """An interpreter that prints the same for ever, with ten minutes to do so."""
    profile = workspace.profile(tiny_image, '[probe]\npython = "yes"\n')

    done = workspace.rocmrun("probe", profile, "--json")

    report = json.loads(done.stdout)["probe"]
    assert (done.returncode, report["status"]) == (9, "broken")
    assert report["reason"] == "the probe's output is not a report: more than 200000 lines"
    assert len(report["noise"]) == 10
    assert left_behind(engine, workspace) == []
