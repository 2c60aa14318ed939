"""The probe in real containers: what it proves, what it refuses, and when it is not run again."""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import NotFound

from rocmrun.core.rights import unequal_rights
from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.inside import GID, UID, workspace_at
from tests.docker.jobs import Jobs
from tests.docker.waiting import started, until
from tests.hosts import FakeNode
from tests.workspace import Workspace, left_behind

SECRET = "hunter2-of-the-probe"


@dataclass(frozen=True)
class Probed:
    """One `rocmrun probe --json --report FILE`."""

    code: int
    printed: dict[str, Any]
    report: dict[str, Any]

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
def passed(
    engine: docker.DockerClient, demo_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Probed:
    """The quick probe of an image that has what its profile promises."""
    workspace = workspace_at(tmp_path_factory.mktemp("probe"))
    profile = workspace.profile(demo_image)
    report = workspace.path / "report.json"
    done = workspace.rocmrun(
        "probe", profile, "--level", "quick", "--json", "--report", str(report)
    )
    assert left_behind(engine, workspace) == []
    return Probed(done.returncode, json.loads(done.stdout), json.loads(report.read_text()))


def test_a_good_image_passes(passed: Probed) -> None:
    """Exit code, JSON and report say the same."""
    assert (passed.code, passed.printed["ok"], passed.printed["probe"]["status"]) == (
        0,
        True,
        "pass",
    )
    assert passed.report["probe_outcome"] == "passed"
    assert passed.report["probe"] == passed.printed["probe"]
    assert passed.report["torch_version"].startswith("2.")
    assert passed.report["image_digest"].startswith("sha256:")


def test_it_saw_the_rights_that_were_planned(passed: Probed) -> None:
    """From inside the container: user, capabilities, seccomp, the read-only image."""
    user, capabilities = (
        passed.check("environment", "user"),
        passed.check("environment", "capabilities"),
    )

    assert (user["status"], user["evidence"]["uid"], user["evidence"]["gid"]) == (
        "pass",
        UID,
        GID,
    )
    assert {capabilities["evidence"][name] for name in ("CapEff", "CapBnd")} == {"0" * 16}
    for name in ("no_new_privileges", "seccomp", "root_filesystem", "temporary_directory"):
        assert passed.check("environment", name)["status"] == "pass"


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_it_multiplied_in_every_precision(passed: Probed, precision: str) -> None:
    """Against a reference, not only without an error."""
    check = passed.check("device", f"matmul_{precision}")

    assert (check["status"], check["device"], check["evidence"]["wrong"]) == ("pass", "cpu", 0)
    assert 0 < check["evidence"]["worst_share_of_bound"] < 1


def test_an_image_without_python_says_so(
    engine: docker.DockerClient, jobs: Jobs, tmp_path: Path
) -> None:
    """9 for `probe`, 125 for `launch`: the same words, and no work started."""
    report = tmp_path / "report.json"
    probed = jobs.rocmrun("probe", jobs.tiny, "--json")
    launched = jobs.rocmrun("launch", jobs.tiny, "--report", str(report), "--", "echo", "worked")
    words = "the probe needs Python, and python3: not found in 127.0.0.1:5055/rocmrun/tiny:1"

    assert (probed.returncode, launched.returncode) == (9, 125)
    assert json.loads(probed.stdout)["error"]["message"] == words
    assert f"error[probe-failed]: {words}" in launched.stderr
    assert launched.stdout == ""
    assert json.loads(report.read_text())["error"]["slug"] == "probe-failed"
    assert left_behind(engine, jobs.workspace) == []


def test_a_python_without_torch_fails_with_that_reason(jobs: Jobs, tmp_path: Path) -> None:
    """The report holds the check that failed; the workload never ran."""
    report = tmp_path / "report.json"
    probed = jobs.rocmrun("probe", jobs.python)
    launched = jobs.rocmrun("launch", jobs.python, "--report", str(report), "--", "echo", "worked")
    record = json.loads(report.read_text())

    assert (probed.returncode, launched.returncode, launched.stdout) == (9, 125, "")
    assert "has no torch" in probed.stdout
    assert "error[probe-failed]: the probe failed: build: torch: " in launched.stderr
    assert "rocmrun explain missing-torch" in launched.stderr
    assert (record["probe_outcome"], record["exit_code"]) == ("failed", None)
    assert record["error"]["slug"] == "probe-failed"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")
def test_a_build_for_the_processor_is_no_rocm(workspace: Workspace, demo_image: str) -> None:
    """The nodes open, torch imports, and still the promise of `accelerator` is not kept."""
    node = FakeNode(gid=4711)
    root = gpu_host(workspace.path / "host", render_minors(1), kfd=node, render=node)
    profile = workspace.profile(demo_image, accelerator="rocm", select="all")
    done = workspace.rocmrun("probe", profile, "--host-root", str(root), "--json")
    probed = Probed(done.returncode, json.loads(done.stdout), {})
    built = probed.check("build", "accelerator")

    assert (probed.code, probed.printed["ok"]) == (9, False)
    assert probed.check("environment", "open:/dev/kfd")["status"] == "pass"
    assert built["status"] == "fail"
    assert "this is a CPU build of torch" in built["reason"]
    assert "rocm was promised" in built["reason"]


def test_an_interpreter_that_is_no_python_proves_nothing(
    workspace: Workspace, tiny_image: str
) -> None:
    """Whatever it prints; what it says is shown without its control characters."""
    profile = workspace.profile(tiny_image, '[probe]\npython = "echo"\n')
    done = workspace.rocmrun("launch", profile, "--", "true")

    assert done.returncode == 125
    assert "error[probe-failed]: " in done.stderr
    assert "\x1b" not in done.stderr


def test_a_probe_that_takes_too_long_is_ended(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """A script in the interpreter's place that never ends."""
    forever = workspace.path / "forever"
    forever.mkdir()
    (forever / "python3").write_text("#!/bin/sh\nsleep 1000\n")
    (forever / "python3").chmod(0o755)
    profile = workspace.profile(
        tiny_image,
        f'[probe]\npython = "/forever/python3"\ntimeout_seconds = 3\n'
        f'[[mounts]]\nsource = "{forever}"\ntarget = "/forever"\n',
    )
    done = workspace.rocmrun("launch", profile, "--", "true")

    assert done.returncode == 125
    assert "the probe did not end within 3 s and was killed" in done.stderr


def test_a_probe_that_passed_counts_until_the_next_boot(
    workspace: Workspace, demo_image: str
) -> None:
    """Shown as such; another command keeps it, another right does not, and `never` is never."""
    profile = workspace.profile(demo_image)
    never = workspace.profile(demo_image, '[probe]\nreuse = "never"\n', name="never")
    run = workspace.rocmrun
    report = workspace.path / "report.json"
    first = run("launch", profile, "--", "true", check=True)
    second = run("launch", profile, "--report", str(report), "--", "echo", "x", check=True)
    record = json.loads(report.read_text())
    wider = run("launch", profile, "--shm-size", "3g", "--", "true", check=True)
    run("launch", never, "--", "true", check=True)
    again = run("launch", never, "--", "true", check=True)

    assert "probe quick: running in a container with the same rights" in first.stderr
    assert "probe quick: pass, " in first.stderr
    assert "since this boot, not run again (reuse = boot)" in second.stderr
    assert second.stdout == "x\n"
    assert (record["probe_outcome"], record["probe"]["status"]) == ("reused", "pass")
    assert "probe quick: running" in wider.stderr
    assert "probe quick: running" in again.stderr


def test_probe_and_workload_have_the_same_rights(
    engine: docker.DockerClient, workspace: Workspace, demo_image: str
) -> None:
    """As the engine recorded both; the probe has no secret, no cache, and writes to no mount."""
    data = workspace.path / "data"
    data.mkdir()
    data.chmod(0o777)
    profile = workspace.profile(
        demo_image,
        f'[container]\nenv_from = ["TOKEN"]\nenv = {{ OPEN = "yes" }}\n'
        f'[[mounts]]\nsource = "{data}"\ntarget = "/data"\nmode = "rw"\n',
    )
    name = f"rocmrun-test-rights-{workspace.token}"
    words = ("launch", profile, "--keep", "--name", name, "--", "true")
    with started(workspace.rocmrun, *words, env={"TOKEN": SECRET}) as process:
        probe = until(lambda: _probe_of(engine, profile), "a probe container")
        assert process.wait(timeout=280) == 0
    workload = engine.api.inspect_container(name)
    engine.api.remove_container(name, v=True)

    assert unequal_rights(probe, workload, cache="/home/rocmrun") == ()
    assert f"TOKEN={SECRET}" in workload["Config"]["Env"]
    assert SECRET not in json.dumps(probe)
    assert "OPEN=yes" in probe["Config"]["Env"]
    assert {mount["Destination"]: mount["RW"] for mount in probe["Mounts"]} == {
        "/data": False,
    }
    assert "/home/rocmrun" in probe["HostConfig"]["Tmpfs"]
    assert {mount["Destination"]: mount["RW"] for mount in workload["Mounts"]} == {
        "/data": True,
        "/home/rocmrun": True,
    }


def _probe_of(engine: docker.DockerClient, profile: str) -> dict[str, Any] | None:
    labels = ["io.rocmrun.role=probe", f"io.rocmrun.profile={profile}"]
    for container in engine.api.containers(all=True, filters={"label": labels}):
        # The engine lists a new container a moment before it finds it by its id.
        with contextlib.suppress(NotFound):
            record: dict[str, Any] = engine.api.inspect_container(container["Id"])
            return record
    return None
