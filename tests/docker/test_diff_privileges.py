"""diff-privileges on a real engine, with jobs whose needs are known."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import docker
import pytest

from tests.docker import privilege_jobs as job
from tests.docker.inside import workspace_at
from tests.workspace import Workspace, left_behind

PRIVILEGES = (
    "seccomp:unconfined", "cap:SYS_NICE", "cap:SYS_PTRACE", "cap:NET_RAW", "cap:IPC_LOCK", "nnp:off", "rootfs:rw",
)  # fmt: skip
ROOT_TABLE = '[[privileges]]\ngrant = "user:root"\nreason = "the recipe has it"\n'
TABLES = "".join(
    f'[[privileges]]\ngrant = "{grant}"\nreason = "the recipe has it"\n' for grant in PRIVILEGES
)
WIDE = '[container]\nnetwork = "bridge"\nshm_size = "4GiB"\n' + TABLES
SHM_2_GIB = "shm:2147483648"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job, and what it needs beyond the baseline, and beyond the baseline as root.

    None: not asked.
    """

    steps: tuple[str, ...]
    needs: set[str]
    as_root: set[str]
    error: str = ""


# "Measured" means Docker 20.10.24 on kernel 6.18 without Yama; the grants of docs/privileges.md.
KNOWN = {
    "set_mempolicy": Case(steps=(job.SET_MEMPOLICY,), needs={"seccomp:+mempolicy"}, as_root={"cap:SYS_NICE"}, error="EPERM"),
    "mbind": Case(steps=(job.MBIND,), needs={"seccomp:+mempolicy"}, as_root={"cap:SYS_NICE"}, error="EPERM"),
    "kcmp": Case(steps=(job.KCMP,), needs={"seccomp:+pidfd"}, as_root={"cap:SYS_PTRACE"}, error="EPERM"),
    "pidfd_getfd": Case(steps=(job.PIDFD_GETFD,), needs={"seccomp:+pidfd"}, as_root={"cap:SYS_PTRACE"}, error="EPERM"),
    "mbind and kcmp": Case(steps=(job.MBIND, job.KCMP), needs={"seccomp:+mempolicy", "seccomp:+pidfd"},
                           as_root={"cap:SYS_NICE", "cap:SYS_PTRACE"}, error="EPERM"),
    "ptrace of a sibling": Case(steps=(job.PTRACE_SIBLING,), needs=set(), as_root=set()),
    "raw socket": Case(steps=(job.RAW_SOCKET,), needs={"cap:NET_RAW", "user:root"}, as_root={"cap:NET_RAW"}, error="EPERM"),
    "port 80": Case(steps=(job.PORT_80,), needs=set(), as_root=set()),
    "shm of 2 GiB": Case(steps=(job.SHM_2_GIB,), needs={SHM_2_GIB}, as_root={SHM_2_GIB}, error="ENOSPC"),
    "outside the caches": Case(steps=(job.OUTSIDE_THE_CACHES,), needs={"rootfs:rw"}, as_root={"rootfs:rw"}, error="EROFS"),
    "either of two": Case(steps=(job.EITHER_NETWORK_OR_ROOT_FS,), needs={"network:bridge"}, as_root={"network:bridge"}, error="EROFS"),
    "nothing": Case(steps=(job.NOTHING,), needs=set(), as_root=set()),
    "one run in five fails": Case(steps=(job.FLAKY, job.OUTSIDE_THE_CACHES), needs={"rootfs:rw"}, as_root={"rootfs:rw"}, error="EROFS"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Locked profiles: everything, everything as root, the baseline as root."""

    workspace: Workspace
    wide: str
    wide_root: str
    root: str
    own: str

    def run(self, *words: str, **how: Any) -> subprocess.CompletedProcess[str]:
        return self.workspace.rocmrun("diff-privileges", *words, timeout=280, **how)

    def found(self, *words: str, code: int) -> dict[str, Any]:
        at = words.index("--") if "--" in words else len(words)
        done = self.run(*words[:at], "--json", *words[at:])
        assert code == done.returncode, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def shared(python_image: str, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    workspace = workspace_at(tmp_path_factory.mktemp("privileges"))

    def locked(tables: str, name: str) -> str:
        return workspace.profile(python_image, tables, name=name)

    return Bench(
        workspace=workspace,
        wide=locked(WIDE + ROOT_TABLE, "wide"),
        wide_root=locked(WIDE + ROOT_TABLE, "wide-root"),
        root=locked(ROOT_TABLE, "root"),
        own=locked("", "own"),
    )


@pytest.fixture
def bench(engine: docker.DockerClient, shared: Bench) -> Iterator[Bench]:
    yield shared
    left = left_behind(engine, shared.workspace)
    assert left == [], f"left behind in the engine: {', '.join(left)}"


def check(found: dict[str, Any], needs: set[str], error: str) -> None:
    """Exactly the known set, each with a run that failed without it, and its errno."""
    assert needs == set(found["minimal"])
    assert found["one_minimal"]
    verdicts = {verdict["privilege"]: verdict for verdict in found["verdicts"]}
    kept = [v for v in verdicts.values() if v["verdict"] != "removable"]
    assert len(needs) == len(kept)
    assert all(v["verdict"] == "required" and v["evidence"] for v in kept)
    if error and kept:
        assert error in {v["error"] for v in kept}
    assert found["exposure"]["minimal"]["total"] < found["exposure"]["permissive"]["total"]


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_the_known_needs_of_a_user_are_found(bench: Bench, name: str) -> None:
    """From everything, root included, to what the job needs beyond the baseline."""
    case = KNOWN[name]

    found = bench.found(bench.wide, "--", *job.python(*case.steps), code=1 if case.needs else 0)

    check(found, case.needs, case.error)


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_the_known_needs_of_root_are_found(bench: Bench, name: str) -> None:
    """The minimal side is root: a capability is in force there, and a rule is no way."""
    case = KNOWN[name]

    found = bench.found(
        bench.wide_root, bench.root, "--jobs", "4", "--", *job.python(*case.steps), code=1 if case.as_root else 0
    )  # fmt: skip

    check(found, case.as_root, case.error)
