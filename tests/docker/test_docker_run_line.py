"""The `docker run` line of a plan: bash runs it, and the engine records the same container."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import docker
import pytest

from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.inside import UID
from tests.docker.jobs import Jobs
from tests.docker.waiting import exists
from tests.hosts import FakeNode
from tests.workspace import Workspace

COMMAND = ("sleep", "1000")
# What differs between a line to paste and a launch on purpose: who removes it, and where its output goes.
BY_PURPOSE = {"AutoRemove", "LogConfig", "ContainerIDFile", "ConsoleSize"}
COMPARED = (
    "User",
    "Cmd",
    "Entrypoint",
    "WorkingDir",
    "Hostname",
    "Domainname",
    "StopTimeout",
    "Tty",
    "ExposedPorts",
    "Healthcheck",
)

# What the engine's runtime, its init and a shell that sleeps need; unknown names are passed over.
CALLS = """
    access arch_prctl bind brk capget capset chdir clock_gettime clock_nanosleep clone clone3 close
    close_range connect dup dup2 dup3 epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd2 execve
    exit exit_group faccessat faccessat2 fchdir fchmod fchown fcntl fork fstat fstatfs futex
    getcwd getdents64 getegid geteuid getgid getgroups getpgid getpgrp getpid getppid getrandom
    gettid getuid ioctl kill lseek lstat madvise mmap mprotect munmap nanosleep newfstatat open
    openat openat2 pause pipe pipe2 poll ppoll prctl pread64 prlimit64 read readlink readlinkat
    rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait
    sched_getaffinity sched_yield sendmsg recvmsg set_robust_list set_tid_address setgid setgroups
    setpgid setsid setuid sigaltstack socket stat statfs statx tgkill tkill umask uname unlink
    vfork wait4 waitid write writev rseq
"""
RICH = """
[container]
workdir = "/tmp"
entrypoint = ["sh", "-c"]
groups = [4242]
env = {{ QUOTED = "it's \\"so\\"", SPACED = "a  b $HOME `id`", LINES = "one\\ntwo" }}
env_from = ["TOKEN"]
shm_size = "32MiB"
memory = "256MiB"
pids = 99
cpus = 1.5
stop_timeout = 33
tmpfs = {{ "/scratch" = "8MiB" }}

[[mounts]]
source = "{folder}"
target = "/odd"
mode = "rw"

[[mounts]]
type = "volume"
source = "{volume}"
target = "/volume"

[[privileges]]
grant = "cap:NET_RAW"
reason = "a capability"

[[privileges]]
grant = "ulimit:memlock=65536"
reason = "a limit"

[[privileges]]
grant = "sysctl:net.ipv4.ip_unprivileged_port_start=1"
reason = "a kernel setting of the container's own"

[[privileges]]
grant = "seccomp:{seccomp}"
reason = "a filter by value"
"""


@pytest.fixture
def names(engine: docker.DockerClient, jobs: Jobs) -> Iterator[tuple[str, str]]:
    """Names for rocmrun's container and docker's; both are removed."""
    pair = jobs.new_name("ours"), jobs.new_name("theirs")
    yield pair
    for name in pair:
        if exists(engine, name):
            engine.api.remove_container(name, force=True, v=True)


def both(
    engine: docker.DockerClient,
    workspace: Workspace,
    words: tuple[str, ...],
    names: tuple[str, str],
    env: Mapping[str, str] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Start a profile with rocmrun, and the line of its plan with bash; return both records."""
    ours, theirs = names
    run = workspace.rocmrun
    run("launch", "--no-probe", "--detach", "--name", ours, *words, env=env, check=True)
    line: str = json.loads(run("plan", "--json", *words, env=env, check=True).stdout)["docker_run"]
    assert line.startswith("docker run --rm ")
    named = line.replace("docker run --rm ", f"docker run --rm --detach --name {theirs} ", 1)
    done = subprocess.run(
        ["bash", "-c", named],
        env=run.environment(env),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return engine.api.inspect_container(ours), engine.api.inspect_container(theirs)


def normal(value: Any) -> Any:
    """Fold together what means nothing: null, empty and false; lists whose order the engine chooses."""
    if isinstance(value, dict):
        return {
            key: normal(item) for key, item in value.items() if normal(item) is not None
        } or None
    if isinstance(value, list):
        return sorted((normal(item) for item in value), key=repr) or None
    return value or None


def host_config(record: dict[str, Any]) -> dict[str, Any]:
    # Newer command lines send CAP_NET_RAW for NET_RAW.
    added = record["HostConfig"]["CapAdd"] or ()
    record["HostConfig"]["CapAdd"] = [name.removeprefix("CAP_") for name in added]
    # The text of one file: the command line sends it as it stands there, a plan with its keys sorted.
    record["HostConfig"]["SecurityOpt"] = [
        json.loads(filter_) if filter_.startswith("{") else option
        for option in record["HostConfig"]["SecurityOpt"] or ()
        for filter_ in [option.removeprefix("seccomp=")]
    ]
    return {
        name: folded
        for name, value in record["HostConfig"].items()
        if name not in BY_PURPOSE and (folded := normal(value)) is not None
    }


def assert_equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert host_config(ours) == host_config(theirs)
    for name in COMPARED:
        assert normal(ours["Config"].get(name)) == normal(theirs["Config"].get(name)), name
    environments = [
        dict(entry.partition("=")[::2] for entry in record["Config"]["Env"])
        for record in (ours, theirs)
    ]
    assert environments[0] == environments[1]
    assert ours["Image"] == theirs["Image"]
    assert (ours["Path"], ours["Args"]) == (theirs["Path"], theirs["Args"])
    mounts = [
        {
            mount["Destination"]: (
                mount["Type"],
                mount["Source"],
                mount["RW"],
                mount["Propagation"],
            )
            for mount in record["Mounts"]
        }
        for record in (ours, theirs)
    ]
    assert mounts[0] == mounts[1]


def test_a_profile_that_asks_for_nothing(
    engine: docker.DockerClient, jobs: Jobs, names: tuple[str, str]
) -> None:
    """The baseline can be said on docker's command line, and comes out the same."""
    ours, theirs = both(engine, jobs.workspace, (jobs.tiny, "--", *COMMAND), names)

    assert_equal(ours, theirs)


def test_a_profile_that_asks_for_much(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str, names: tuple[str, str]
) -> None:
    """Words that a shell would take apart, a path with a comma, and a seccomp profile of its own."""
    folder = workspace.path / "with, comma and 'quote'"
    folder.mkdir()
    folder.chmod(0o777)
    seccomp = workspace.path / "seccomp.json"
    allowed = {"names": CALLS.split(), "action": "SCMP_ACT_ALLOW"}
    seccomp.write_text(json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [allowed]}))
    volume = f"{names[0]}-volume"
    engine.api.create_volume(volume)
    try:
        profile = workspace.profile(
            tiny_image, RICH.format(folder=folder, volume=volume, seccomp=seccomp)
        )
        words = (profile, "--", " ".join(COMMAND))
        ours, theirs = both(engine, workspace, words, names, env={"TOKEN": "of the caller"})

        # One word fits behind --entrypoint; the rest stands in front of the command.
        assert ours["Config"].pop("Entrypoint") == ["sh", "-c"]
        assert theirs["Config"].pop("Entrypoint") == ["sh"]
        assert theirs["Config"].pop("Cmd") == ["-c", *ours["Config"].pop("Cmd")]
        assert_equal(ours, theirs)
        assert "TOKEN=of the caller" in theirs["Config"]["Env"]
    finally:
        for name in names:
            if exists(engine, name):
                engine.api.remove_container(name, force=True, v=True)
        engine.api.remove_volume(volume)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")
def test_a_profile_with_gpus(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str, names: tuple[str, str]
) -> None:
    """Nodes and the numbers of their groups."""
    root = gpu_host(
        workspace.path / "host", render_minors(2), kfd=FakeNode(gid=4711), render=FakeNode(gid=4712)
    )
    profile = workspace.profile(tiny_image, accelerator="rocm", select="all")
    words = (profile, "--host-root", str(root), "--", *COMMAND)
    ours, theirs = both(engine, workspace, words, names)

    assert len(theirs["HostConfig"]["Devices"]) == 3
    assert theirs["HostConfig"]["GroupAdd"] == ["4711", "4712"]
    assert_equal(ours, theirs)


def test_the_line_works_as_it_stands(jobs: Jobs) -> None:
    """Pasted, it runs the command and leaves nothing."""
    jobs.launch(jobs.tiny, "--", "true", check=True)  # makes the cache directory
    words = ("plan", jobs.tiny, "--json", "--", "sh", "-c", 'echo "$0 $USER $(id -u)"', "it's")
    line = json.loads(jobs.rocmrun(*words, check=True).stdout)["docker_run"]
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, f"it's rocmrun {UID}\n", "")
