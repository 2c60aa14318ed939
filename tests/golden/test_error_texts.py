"""What people read when something goes wrong: message, details and hint.

A change here is a change of what people read. Look at it, then: pytest tests/golden --snapshot-update
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from rocmrun.__main__ import run
from rocmrun.console.output import report_error
from rocmrun.core.host_json import host_to_json
from rocmrun.core.run import PathStat
from rocmrun.errors import EngineFailed, RocmrunError
from tests.builders import gpu, host, node, probe_output
from tests.fakes import STDOUT, FakeEngine, Script
from tests.hosts import MI210_X8
from tests.unit.usecases.stage import GPU_JOB, Stage, an_engine

JOB = 'accelerator = "rocm"\n[image]\nref = "example.com/demo:1"\n'
PROFILES = {
    "job": JOB,
    "mistakes": JOB + '[container]\nmemory = "much"\nnetworc = "none"\nports = ["8000:8000"]\n',
    "contradiction": JOB + '[container]\nshm_size = "1GiB"\n[[privileges]]\ngrant = "ipc:host"\nreason = "x"\n',
    "parameter": '[parameters]\nmodel_dir = { help = "directory with the weights" }\n[image]\nref = "x/y:1"\n[[mounts]]\nsource = "${model_dir}"\ntarget = "/m"\n',
    "mounts": JOB + '[[mounts]]\nsource = "/no/such/dir"\ntarget = "/a"\n[[mounts]]\nsource = "/no/other"\ntarget = "/b"\n',
    "policy": JOB + '[[mounts]]\nsource = "/"\ntarget = "/host"\n[[privileges]]\ngrant = "user:root"\nreason = "x"\n[[privileges]]\ngrant = "cap:SYS_ADMIN"\nreason = "x"\n',
    "fixed": JOB + "[policy]\noverrides = false\n",
    "parent": 'accelerator = "cpu"\n',
    "device": JOB + '[[devices]]\npath = "/dev/infiniband/uverbs*"\nreason = "RCCL"\n',
}  # fmt: skip
HOSTS = {
    "host": host(2),
    "empty": host(0),
    "closed": host(1, kfd=node("/dev/kfd", mode=0o600)),
    "root-group": host(1, kfd=node("/dev/kfd", gid=0)),
    "no-render": host([gpu(render_node=None)]),
}
COMMAND_LINES = (
    "plan jobb",
    "plan mistakes",
    "plan contradiction",
    "plan parameter",
    "plan job --set nosuch=1",
    "plan job --set nosuch",
    "plan policy",
    "plan fixed -e A=1",
    "plan parent",
    "plan device",
    "plan job -v /a",
    "plan job -p 8000:8000",
    "plan job --gpu index:7",
    "plan job --gpu cuda:0",
    "plan job --host empty.json",
    "plan job --host closed.json",
    "plan job --host root-group.json",
    "plan job --host no-render.json --gpu index:0",
    "plan job --host none.json",
    "plan job --host broken.json",
    "plann",
    "launch",
)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a directory with the profiles and saved hosts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("DOCKER_HOST", "unix:///none.sock")
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "CI", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "profiles").mkdir()
    for name, text in PROFILES.items():
        (tmp_path / f"profiles/{name}.toml").write_text(text)
    for name, facts in HOSTS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(host_to_json(facts)))
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *places: Path) -> str:
    """Return what stderr holds, without the names of temporary directories."""
    captured = capsys.readouterr()
    assert captured.out == ""
    text = captured.err
    for place in places:
        text = text.replace(str(place), "HERE")
    return text.replace(str(Path(__file__).parents[2]), "ROCMRUN")


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_of_the_command_line(
    line: str, elsewhere: Path, snapshot: SnapshotAssertion, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the exit code."""
    words = line.split()
    if words[0] == "plan":
        words += ["--offline"] + ([] if "--host" in words else ["--host", "host.json"])

    code = run(words)

    assert f"exit code {code}\n{said(capsys, elsewhere)}" == snapshot


def _privileged(record: dict[str, Any]) -> None:
    record["HostConfig"] |= {"Privileged": True, "PidMode": "host"}


def _memlock(record: dict[str, Any]) -> None:
    record["HostConfig"]["Ulimits"].append({"Name": "memlock", "Soft": -1, "Hard": -1})


def _less_memory(record: dict[str, Any]) -> None:
    record["HostConfig"] |= {"Memory": 4096, "MemorySwap": 4096}


BUSY = {
    "Id": "ab12", "Names": ["/trainer"], "State": "running",
    "Labels": {"io.rocmrun.render-minors": "128"},
}  # fmt: skip
NO_SHELL: dict[str, PathStat | bytes | None] = {
    f"{path}/bash": None for path in ("/usr/local/bin", "/usr/bin", "/bin")
}
FAILED = Script(frames=[(STDOUT, probe_output(status="fail", reason="1 of 64 rows is wrong"))])
ENGINES: dict[str, Callable[[], FakeEngine]] = {
    "a weaker container": lambda: an_engine(change={"probe": _privileged}),
    "an ulimit of the site": lambda: an_engine(change={"probe": _memlock}),
    "other rights than the probe had": lambda: an_engine(change={"workload": _less_memory}),
    "a failed probe": lambda: an_engine(scripts={"probe": FAILED}),
    "a probe that died": lambda: an_engine(scripts={"probe": Script(frames=[(2, b"Killed\n")], exit_code=137)}),
    "a dropped limit": lambda: an_engine(warnings=["Your kernel does not support pids limit capabilities or the cgroup is not mounted. PIDs limit discarded."]),
    "a missing command": lambda: an_engine(files=NO_SHELL),
    "a failing engine": lambda: an_engine(failures={"create probe": EngineFailed("cannot create the container: boom")}),
    "a busy GPU": lambda: an_engine(others=[BUSY]),
}  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A launch with everything around it."""
    place = tmp_path / "stage"
    place.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    return Stage(path=place)


@pytest.mark.parametrize("name", ENGINES)
def test_of_a_launch(
    name: str, stage: Stage, snapshot: SnapshotAssertion, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "a busy GPU":
        stage.profile(GPU_JOB)
        stage.host(*MI210_X8[:1])

    with pytest.raises(RocmrunError) as caught:
        stage.launch(ENGINES[name]())

    report_error(caught.value, code=125, as_json=False)
    assert said(capsys, stage.path) == snapshot
