"""Seccomp profiles made from the engine's own filter, with jobs whose calls are known."""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import docker
import pytest

from rocmrun.core.seccomp_filter import SeccompFilter, Surface, parse_filter
from rocmrun.core.seccomp_groups import floor
from rocmrun.core.seccomp_tailored import tailored
from rocmrun.errors import SeccompBaseUnknown
from rocmrun.system.oci_bundle import read_bundle
from tests.docker import privilege_jobs as job
from tests.docker.waiting import until
from tests.workspace import Workspace

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root may read what an engine hands its runtime"
)

FAST = ("--retries", "0", "--repeats", "1", "--jobs", "2")
NOBODY = 65534
ALLOW = "SCMP_ACT_ALLOW"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
ROOT_TABLE = '[[privileges]]\ngrant = "user:root"\nreason = "the job is root"\n'
# Whether a filter lets them run can be told from their errno: none of these arguments is one that works.
TRIED = {
    "mount": 165, "unshare": 272, "setns": 308, "chroot": 161, "keyctl": 250, "mbind": 237, "kcmp": 312, "bpf": 321,
    "perf_event_open": 298, "userfaultfd": 323, "swapon": 167, "quotactl": 179, "clone3": 435, "io_uring_setup": 425,
    "ptrace": 101, "process_vm_readv": 310, "pidfd_open": 434, "pidfd_getfd": 438, "name_to_handle_at": 303,
    "personality": 135, "inotify_init1": 294, "io_setup": 206, "shmget": 29, "landlock_create_ruleset": 444,
    "pkey_alloc": 330, "sched_setattr": 314, "clock_settime": 227, "socket": 41, "splice": 275, "mlock2": 325,
}  # fmt: skip
TRY = f"""
import ctypes, errno, json, time
libc = ctypes.CDLL(None, use_errno=True)
def outcome(number):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-2)] * 6)
    return errno.errorcode.get(ctypes.get_errno(), "ok")
print(json.dumps({{name: outcome(number) for name, number in {TRIED!r}.items()}}), flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def tried(
    engine: docker.DockerClient, image: str, *options: str, cap_add: Sequence[str] = ()
) -> Iterator[tuple[dict[str, Any], dict[str, str], str, int]]:
    """Yield what the runtime was handed for a container with the baseline's rights, what its calls return, id and pid."""
    container = engine.containers.run(
        image, ["python3", "-c", TRY], detach=True, init=True, user="1000:1000", cap_drop=["ALL"], network_mode="none",
        security_opt=["no-new-privileges:true", *options], cap_add=list(cap_add),
    )  # fmt: skip
    identity = str(container.id)
    try:
        said = until(lambda: container.logs(stderr=False), "calls tried")
        pid = int(engine.api.inspect_container(identity)["State"]["Pid"])
        handed = read_bundle(pid, identity)["linux"]["seccomp"]
        yield handed, json.loads(said), identity, pid
    finally:
        container.remove(force=True)


def parsed(handed: dict[str, Any]) -> SeccompFilter:
    return parse_filter(
        handed, Surface(capabilities=frozenset(), architecture="amd64", kernel="5.0")
    )


# One rule for each condition, which for the baseline's container with SYS_NICE on Linux 4.8 or newer hold in turn.
CONDITIONS: list[dict[str, Any]] = [
    {"names": ["keyctl"], "includes": {"caps": ["CAP_SYS_NICE"]}},
    {"names": ["bpf"], "includes": {"caps": ["CAP_SYS_NICE", "CAP_BPF"]}},
    {"names": ["add_key"], "excludes": {"caps": ["CAP_BPF"]}},
    {"names": ["acct"], "excludes": {"caps": ["CAP_SYS_NICE", "CAP_BPF"]}},
    {"names": ["request_key"], "includes": {"minKernel": "4.8"}},
    {"names": ["swapon"], "includes": {"minKernel": "99.0"}},
    {"names": ["vhangup"], "includes": {"arches": ["amd64", "arm64"]}},
    {"names": ["swapoff"], "excludes": {"arches": ["amd64", "arm64"]}},
]


def granted(found: SeccompFilter) -> list[tuple[str, str, int | None]]:
    """Return what happens to each call, in order: engines differ in how many names they put into one rule."""
    return [(name, rule.action, rule.errno) for rule in found.rules for name in rule.names]


def test_conditions_are_decided_as_the_engine_decides_them(
    engine: docker.DockerClient, python_image: str
) -> None:
    """By capability, kernel and architecture, alone and several at once."""
    with tried(engine, python_image) as (handed, _, _, _):
        own = {**handed, "syscalls": [*handed["syscalls"], *({"action": ALLOW, **c} for c in CONDITIONS)]}  # fmt: skip
    text = json.dumps(own)
    surface = Surface(
        capabilities=frozenset({"SYS_NICE"}), architecture=ARCHITECTURES[os.uname().machine], kernel=os.uname().release,
    )  # fmt: skip

    with tried(engine, python_image, f"seccomp={text}", cap_add=["SYS_NICE"]) as (decided, _, _, _):
        pass

    ours = parse_filter(own, surface)
    assert granted(ours) == granted(parsed(decided))
    assert {"keyctl", "add_key", "request_key", "vhangup"} <= ours.calls
    assert ours.calls.isdisjoint({"bpf", "acct", "swapon", "swapoff"})


def as_nobody(pid: int, container_id: str) -> str:
    """Return what a user who is not root is told of that container."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            read_bundle(pid, container_id)
            told = "read it"
        except SeccompBaseUnknown as error:
            told = f"{error.message}; {error.hint}"
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        told = file.read()
    os.waitpid(child, 0)
    return told


def test_the_engines_own_filter_given_by_value_is_the_same_filter(
    engine: docker.DockerClient, python_image: str
) -> None:
    """The runtime is handed the same rules, and every call that is tried ends as before: EPERM, and ENOSYS for clone3.

    A user who is not root cannot read it, and is told what else to do.
    """
    with tried(engine, python_image) as (handed, outcomes, container_id, pid):
        told = as_nobody(pid, container_id)
    text = json.dumps(parsed(handed).to_json())

    with tried(engine, python_image, f"seccomp={text}") as (by_value, again, _, _):
        pass

    assert by_value == handed
    assert again == outcomes
    assert {"mount": "EPERM", "keyctl": "EPERM", "clone3": "ENOSYS"}.items() <= outcomes.items()
    assert outcomes["inotify_init1"] not in {"EPERM", "ENOSYS"}
    assert told.startswith("only root may read the engine's own seccomp filter")
    assert "sudo, or --seccomp-base FILE" in told


INOTIFY = "call(294, 0)"
IO_SETUP = "context = ctypes.c_long(0); call(206, 1, ctypes.addressof(context))"


def test_a_job_keeps_the_one_group_that_it_uses(python_image: str, workspace: Workspace) -> None:
    """From the whole of the engine's filter; the profile that is written starts the job, and refuses another call."""
    profile = workspace.profile(python_image, name="watcher")
    written, minimal = workspace.profiles / "watcher.json", f"minimal-{workspace.token}"

    done = workspace.rocmrun(
        "diff-privileges", profile, *FAST, "--json", "--seccomp", str(written),
        "--emit", str(workspace.profiles / f"{minimal}.toml"), "--", *job.python(INOTIFY), timeout=200,
    )  # fmt: skip
    launched = workspace.rocmrun("launch", minimal, "--no-probe")
    refused = workspace.rocmrun("launch", minimal, "--no-probe", "--", *job.python(IO_SETUP))

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    made = found["seccomp"]
    assert made["kept"] == ["@inotify"]
    assert made["one_minimal"]
    assert (made["verification"]["passes"], made["verification"]["runs"]) == (10, 10)
    assert made["groups"][0]["error"] == "EPERM"
    assert (made["probe"], "torch" in made["probe_reason"]) == ("fails", True)
    assert made["base"]["source"] == "the engine's own"
    assert made["base"]["engine"] == f"{found['engine']['kind']} {found['engine']['version']}"
    assert made["calls_after"] < 0.6 * made["calls_before"] == 0.6 * made["base"]["calls"]
    canary = next(run for run in found["runs"] if (run["stage"], run["purpose"]) == ("seccomp", "canary"))  # fmt: skip
    assert "operation not permitted" in canary["result"]["line"]
    assert found["exposure"]["minimal"]["total"] < found["exposure"]["permissive"]["total"]
    assert launched.returncode == 0, launched.stderr
    assert "Operation not permitted" in refused.stderr


@pytest.mark.slow
def test_a_job_with_torch_is_launched_with_its_probe(
    engine: docker.DockerClient, demo_image: str, workspace: Workspace
) -> None:
    """The job needs one group and the probe another: what is emitted starts as a launch starts it, the probe first."""
    with tried(engine, demo_image) as (handed, _, _, _):
        few = tailored(parsed(handed), ["@network-io", "@inotify", "@aio"], floor(no_new_privileges=True))  # fmt: skip
    base = workspace.path / "few.json"
    base.write_text(json.dumps(few.to_json()))
    profile, emitted = workspace.profile(demo_image, name="with-torch"), f"small-{workspace.token}"

    done = workspace.rocmrun(
        "diff-privileges", profile, *FAST, "--json", "--seccomp-base", str(base),
        "--seccomp", str(workspace.profiles / "small.json"), "--emit", str(workspace.profiles / f"{emitted}.toml"),
        "--", *job.python(INOTIFY), timeout=280,
    )  # fmt: skip
    launched = workspace.rocmrun("launch", emitted)

    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)["seccomp"]
    assert (made["kept"], made["probe"]) == (["@inotify", "@network-io"], "passes")
    assert [verdict["needed_by"] for verdict in made["groups"][:2]] == ["job", "probe"]
    assert (made["verification"]["passes"], made["verification"]["runs"]) == (10, 10)
    assert launched.returncode == 0, launched.stderr


def test_root_keeps_the_one_group_that_it_uses(
    engine: docker.DockerClient, python_image: str, workspace: Workspace
) -> None:
    """From a file, here the engine's own filter with three groups left: what was out of it before stays out."""
    with tried(engine, python_image) as (handed, _, _, _):
        few = tailored(parsed(handed), ["@aio", "@xattr", "@sysv-ipc"], floor(no_new_privileges=True))  # fmt: skip
    base = workspace.path / "few.json"
    base.write_text(json.dumps(few.to_json()))
    profile = workspace.profile(python_image, ROOT_TABLE, name="rooted")

    done = workspace.rocmrun(
        "diff-privileges", profile, profile, *FAST, "--json", "--seccomp-base", str(base),
        "--seccomp", str(workspace.path / "rooted.json"), "--", *job.python(IO_SETUP), timeout=200,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)["seccomp"]
    assert made["kept"] == ["@aio"]
    assert {"@xattr", "@sysv-ipc"} == set(made["removed"])
    assert made["base"]["file"] == str(base)
    text = json.loads((workspace.path / "rooted.json").read_text())
    names = {name for rule in text["syscalls"] for name in rule["names"]}
    assert "io_setup" in names
    assert names.isdisjoint({"shmget", "getxattr", "ptrace"})


def test_without_root_the_search_does_not_start(
    engine: docker.DockerClient, python_image: str, workspace: Workspace
) -> None:
    """What cannot be read is said before the first run, with the slug that scripts look for."""
    profile = workspace.profile(python_image)
    proc = workspace.path / "host/proc"
    proc.mkdir(parents=True)

    done = workspace.rocmrun(
        "diff-privileges", profile, "--json", "--seccomp", "job.json", "--host-root", str(proc.parent), "--", "true",
    )  # fmt: skip

    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["slug"]) == (8, "seccomp-base")
    assert "--seccomp-base FILE" in error["hint"]
    assert "run 1" not in done.stderr
    assert not Path(workspace.path / "job.json").exists()
