"""Starting an engine: which are left alone, which options are tried, what is refused.

`docker` and `dockerd` are small programs here; what the set-up does with them is real.
"""

from pathlib import Path

import pytest

from scripts import background, engine
from scripts.commands import SetupError


class Machine:
    """A machine with a pretended Docker: it answers once `flag` exists."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.state = folder / "state"
        self.flag = folder / "answers"
        self.programs = folder / "bin"
        for directory in (
            self.programs,
            self.root / "proc/41",
            self.root / "sys/fs/cgroup/devices",
        ):
            directory.mkdir(parents=True)
        self.runs("init")
        self.program(
            "docker",
            f'case $1 in context) echo "${{CONTEXT:-default}}" ;; version) cat {self.flag} ;; esac',
        )

    def program(self, name: str, body: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def runs(self, name: str) -> None:
        (self.root / "proc/41/cmdline").write_text(f"/usr/sbin/{name}\0--flag\0")

    def dockerd(self, *, needs: str) -> None:
        """Let dockerd start only with an option."""
        self.program(
            "dockerd",
            f'case " $*" in *"{needs}"*) echo 9.9 >{self.flag}; exec sleep 600 ;; esac\n'
            "echo 'failed to start daemon: iptables said no' >&2; exit 1",
        )

    def ensure(self, *, is_root: bool = True) -> None:
        engine.ensure(
            state=self.state, logs=self.state, is_root=is_root, root=self.root, settle_seconds=0
        )

    def stop(self) -> None:
        engine.stop(state=self.state, logs=self.state)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setenv("PATH", str(machine.programs), prepend=":")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return machine


def test_an_engine_that_answers_is_left_alone(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is neither started nor, later, stopped."""
    machine.flag.write_text("28.0\n")
    machine.ensure()
    machine.stop()

    said = capsys.readouterr().out
    assert "Docker 28.0 answers, left as it is" in said
    assert "none was started here, nothing to stop" in said
    assert not machine.state.exists()


@pytest.mark.parametrize(("needs", "way"), [("", 0), ("--iptables=false", 1), ("--bridge=none", 2)])
def test_the_ordinary_start_comes_first(
    machine: Machine, capsys: pytest.CaptureFixture[str], needs: str, way: int
) -> None:
    """Fewer features are asked for only where the ordinary start failed, and the reason is said."""
    machine.dockerd(needs=needs)
    machine.ensure()

    said = capsys.readouterr().out
    assert said.count("iptables said no") == way
    assert f"Docker 9.9 started as `{' '.join(('dockerd', *engine.WAYS[way]))}`" in said
    assert background.running(machine.state / engine.RECORD) is not None

    machine.stop()
    assert "dockerd stopped" in capsys.readouterr().out
    assert background.running(machine.state / engine.RECORD) is None


def test_a_start_that_fails_in_every_way_is_one_error(machine: Machine) -> None:
    """Nothing is left running, and the log is named."""
    machine.dockerd(needs="--never")

    with pytest.raises(SetupError) as caught:
        machine.ensure()

    assert caught.value.hint == f"less {machine.state}/dockerd.log"
    assert background.running(machine.state / engine.RECORD) is None


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("DOCKER_HOST", "tcp://far:2375", "unset DOCKER_HOST"),
        ("CONTEXT", "far", "docker context use default"),
    ],
)
def test_an_engine_elsewhere_is_not_replaced(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str, value: str, hint: str
) -> None:
    """Whoever names another engine gets no engine here instead."""
    machine.dockerd(needs="")
    monkeypatch.setenv(name, value)

    with pytest.raises(SetupError, match=value) as caught:
        machine.ensure()

    assert caught.value.hint == hint
    assert not machine.flag.exists()


def test_only_root_starts_an_engine(machine: Machine) -> None:
    """Others are told the command."""
    machine.dockerd(needs="")

    with pytest.raises(SetupError) as caught:
        machine.ensure(is_root=False)

    assert caught.value.hint == "sudo make demo"
    assert not machine.flag.exists()


def test_a_second_engine_is_never_started(machine: Machine) -> None:
    """One that runs and does not answer here may listen elsewhere; a second could take its bridge."""
    machine.runs("dockerd")
    machine.dockerd(needs="")

    with pytest.raises(SetupError, match="pid 41"):
        machine.ensure()

    assert not machine.flag.exists()


def test_a_pid_file_of_a_killed_engine_is_no_obstacle(machine: Machine) -> None:
    """A number that another process has now is dropped; dockerd would wait for it forever."""
    stale = machine.root / "var/run/docker.pid"
    stale.parent.mkdir(parents=True)
    stale.write_text("41\n")
    machine.dockerd(needs="")
    machine.ensure()

    assert not stale.exists()

    machine.stop()


def test_control_groups_are_mounted_where_nobody_did(machine: Machine) -> None:
    """Without a service manager nothing mounts them, and dockerd does not start without."""
    (machine.root / "sys/fs/cgroup/devices").rmdir()
    mounted = machine.root / "mounted"
    machine.program("cgroupfs-mount", f"touch {mounted}")
    machine.dockerd(needs="")
    machine.ensure()

    assert mounted.exists()

    machine.stop()


def test_the_service_manager_starts_what_is_its_own(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where systemd runs, it starts docker.service, and stops it again only in the same boot."""
    (machine.root / "run/systemd/system").mkdir(parents=True)
    asked = machine.state / "asked"
    machine.program("systemctl", f'echo "$@" >>{asked}; echo 9.9 >{machine.flag}')
    machine.ensure()
    machine.stop()
    machine.stop()

    assert asked.read_text().splitlines() == [
        "start docker.service",
        "stop docker.socket docker.service",
    ]
    assert "none was started here" in capsys.readouterr().out
