"""diff-privileges on a real engine, with jobs whose needs are known."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.docker import privilege_jobs as job
from tests.docker.derived_images import profile_of
from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.inside import workspace_at
from tests.docker.waiting import read_until
from tests.hosts import FakeNode, make_node
from tests.workspace import Workspace, left_behind

PRIVILEGES = (
    "seccomp:unconfined", "cap:SYS_NICE", "cap:SYS_PTRACE", "cap:NET_RAW", "cap:IPC_LOCK", "nnp:off", "rootfs:rw",
)  # fmt: skip


ROOT_TABLE = job.table("user:root")
WIDE = '[container]\nnetwork = "bridge"\nshm_size = "4GiB"\n' + job.table(*PRIVILEGES)
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
    "outside the caches": Case(steps=(job.OUTSIDE_THE_CACHES,), needs={"tmpfs:/var/tmp"}, as_root={"tmpfs:/var/tmp"}, error="EROFS"),
    "either of two": Case(steps=(job.EITHER_NETWORK_OR_ROOT_FS,), needs={"tmpfs:/var/tmp"}, as_root={"tmpfs:/var/tmp"}, error="EROFS"),
    "nothing": Case(steps=(job.NOTHING,), needs=set(), as_root=set()),
    "one run in five fails": Case(steps=(job.FLAKY, job.OUTSIDE_THE_CACHES), needs={"tmpfs:/var/tmp"}, as_root={"tmpfs:/var/tmp"}, error="EROFS"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Locked profiles: everything, everything as root, the baseline as root."""

    workspace: Workspace
    wide: str
    wide_root: str
    root: str
    small: str
    refused: str

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
        small=locked(job.table("seccomp:unconfined", "rootfs:rw"), "small"),
        refused=locked(
            job.table("user:root", "cap:SYS_ADMIN", "cap:PERFMON", "rootfs:rw"), "refused"
        ),
    )


@pytest.fixture
def bench(engine: docker.DockerClient, shared: Bench) -> Iterator[Bench]:
    yield shared
    assert left_behind(engine, shared.workspace) == []


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


FAST = ("--retries", "0", "--repeats", "2")


def test_what_is_found_is_written_down_and_holds(bench: Bench, tmp_path: Path) -> None:
    """The minimal profile starts the job, its privilege has its evidence, and the certificate is fresh until a knob moves."""
    minimal = bench.workspace.profiles / f"minimal-{bench.workspace.token}.toml"
    certificate = tmp_path / "certificate.json"
    command = ("--", *job.python(job.OUTSIDE_THE_CACHES))

    done = bench.run(
        bench.small, *FAST, "--emit", str(minimal), "--certificate", str(certificate),
        "--form", "kubernetes", *command,
    )  # fmt: skip
    launched = bench.workspace.rocmrun("launch", minimal.stem, "--no-probe")
    fresh = bench.run(bench.small, "--stale", str(certificate))
    named = bench.run("--stale", str(certificate))
    moved = bench.run(bench.small, "--stale", str(certificate), "--shm-size", "3GiB")
    certificate.write_text(
        certificate.read_text().replace(f'"profile": "{bench.small}"', '"profile": "gone"')
    )
    gone = bench.run("--stale", str(certificate))

    assert done.returncode == 1, done.stderr
    assert "tmpfs:/var/tmp (instead of rootfs:rw)  required " in done.stdout
    assert "readOnlyRootFilesystem: true" in done.stdout
    assert 'mountPath: "/var/tmp"' in done.stdout
    assert "is lost when the container ends" in done.stdout
    text = minimal.read_text()
    assert '"/var/tmp" = "16MiB"  # required: ' in text
    assert "Read-only file system" in text
    assert "rootfs:rw" not in text
    assert "unconfined" not in text
    assert launched.returncode == 0, launched.stderr
    tried = json.loads(certificate.read_text())["tmpfs"]
    assert ([place["path"] for place in tried["places"]], tried["left_out"]) == (["/var/tmp"], [])
    assert (fresh.returncode, fresh.stdout) == (0, "nothing that it depends on has changed\n")
    assert (named.returncode, named.stdout) == (0, fresh.stdout)
    assert (gone.returncode, "was made for gone: " in gone.stderr) == (2, True), gone.stderr
    assert moved.returncode == 1
    assert "profile: the job is planned otherwise now" in moved.stdout


def test_a_job_that_fails_with_everything_lacks_no_privilege(bench: Bench) -> None:
    """Its own words are the diagnosis; nothing is searched."""
    done = bench.run(bench.small, "--json", "--retries", "1", "--", *job.python(job.NEVER))

    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["slug"]) == (2, "oracle-fails")
    assert "the data set is corrupt" in error["details"]


def test_an_oracle_that_sees_nothing_is_refused(bench: Bench) -> None:
    """Whatever a missing program ends with is no sign of a job that works."""
    done = bench.run(bench.small, "--json", "--expect-exit", "127", "--", "false")

    assert (done.returncode, json.loads(done.stdout)["error"]["slug"]) == (2, "oracle-blind")


def test_what_policy_and_engine_refuse_is_untested(bench: Bench) -> None:
    """SYS_ADMIN with root is never granted, and this engine may not know PERFMON: neither is called needed."""
    found = bench.found(bench.refused, *FAST, "--", *job.python(job.OUTSIDE_THE_CACHES), code=1)

    verdicts = {verdict["privilege"]: verdict for verdict in found["verdicts"]}
    assert found["minimal"] == ["tmpfs:/var/tmp"]
    assert verdicts["cap:SYS_ADMIN"]["verdict"] == "untested"
    assert "capability SYS_ADMIN together with root" in verdicts["cap:SYS_ADMIN"]["evidence"]
    assert verdicts["cap:PERFMON"]["verdict"] in {"untested", "removable"}
    if verdicts["cap:PERFMON"]["verdict"] == "untested":
        assert "PERFMON" in verdicts["cap:PERFMON"]["evidence"]


def test_a_number_that_falls_short_is_degraded(bench: Bench) -> None:
    """The job ends with 0 either way; the metric tells that it lost something."""
    found = bench.found(
        bench.small, *FAST, "--metric", "speed=40", "--", *job.python(job.METRIC), code=1
    )

    assert found["minimal"] == ["seccomp:+mempolicy"]
    kept = next(v for v in found["verdicts"] if v["privilege"] == "seccomp:+mempolicy")
    assert (kept["verdict"], kept["evidence"]) == ("degraded", "speed is 30, 40 was asked for")
    assert kept["instead_of"] == ["seccomp:unconfined"]


def test_an_interrupted_search_leaves_nothing_and_goes_on(bench: Bench) -> None:
    """Ctrl-C while a container runs; --resume does not run again what was answered."""
    command = ("--", *job.python("import time; time.sleep(0.4)", job.OUTSIDE_THE_CACHES))
    process = bench.workspace.rocmrun.start("diff-privileges", bench.small, *FAST, *command)
    assert process.stderr is not None
    said = read_until(process.stderr, b"run 3 ")
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    process.wait(60)
    if process.stdout:
        process.stdout.close()
    process.stderr.close()

    found = bench.found(bench.small, *FAST, "--resume", *command, code=1)

    assert process.returncode == 130, (said + rest).decode()
    assert b"--resume" in rest
    assert sum(run["reused"] for run in found["runs"]) >= 3
    assert found["minimal"] == ["tmpfs:/var/tmp"]


@pytest.mark.slow
def test_a_budget_ends_with_the_smallest_set_that_passed(bench: Bench) -> None:
    """Six runs are not enough for a proof: the set is sufficient, and says that it is not proven."""
    found = bench.found(
        bench.wide, "--budget", "6", "--", *job.python(job.OUTSIDE_THE_CACHES), code=1
    )

    assert found["stopped"]
    assert not found["one_minimal"]
    assert "rootfs:rw" in found["minimal"]
    assert "untested" in {verdict["verdict"] for verdict in found["verdicts"]}


def test_two_profiles_are_compared_without_a_run(bench: Bench) -> None:
    """What either has alone, with both exposures."""
    found = bench.found(bench.small, bench.root, "--no-run", code=0)

    small, root = found["sides"]
    assert {"rootfs:rw", "seccomp:unconfined", "user:root"}.isdisjoint(found["both"])
    assert {"rootfs:rw", "seccomp:unconfined"} == {grant["what"] for grant in small["only"]}
    assert "user:root" in {grant["what"] for grant in root["only"]}
    assert all(grant["exposes"] for grant in small["only"])
    assert {2.2} == {small["exposure"]["total"], root["exposure"]["total"]}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")
def test_a_node_is_needed_with_its_group_and_no_more(
    engine: docker.DockerClient, python_image: str, workspace: Workspace
) -> None:
    """A node that a group opens, asked for with mknod: rw is kept, the other node goes, and without kfd nothing passes."""
    minors = render_minors(1)
    root = gpu_host(
        workspace.path / "host", minors, kfd=FakeNode(gid=4711), render=FakeNode(gid=4712)
    )
    for name in ("uverbs0", "uverbs1"):
        make_node(root / "dev/infiniband" / name, FakeNode(gid=4713))
    devices = (
        '[[devices]]\npath = "/dev/infiniband/uverbs*"\nreason = "RDMA"\npermissions = "rwm"\n'
    )
    profile = workspace.profile(python_image, devices, accelerator="rocm", select="all")
    opening = (
        "for node in ('/dev/kfd', '/dev/infiniband/uverbs0'): os.close(os.open(node, os.O_RDWR))"
    )

    done = workspace.rocmrun(
        "diff-privileges", profile, *FAST, "--json", "--host-root", str(root), "--", *job.python(opening)
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["minimal"] == ["device:/dev/infiniband/uverbs0:rw"]
    assert "without /dev/kfd: fail" in done.stderr
    assert "ENOENT" in {verdict["error"] for verdict in found["verdicts"]}


@pytest.mark.slow
def test_a_setuid_helper_needs_new_privileges_and_nothing_else(
    engine: docker.DockerClient, python_image: str, workspace: Workspace
) -> None:
    """A helper of root reads a file of root: no capability is needed, since root owns it."""
    container = engine.containers.run(
        python_image,
        ["sh", "-c", "cp /bin/cat /usr/local/bin/helper && chmod 4755 /usr/local/bin/helper "
         "&& echo known > /etc/secret && chmod 600 /etc/secret"],
        detach=True,
    )  # fmt: skip
    repository = f"localhost/rocmrun-test/{workspace.token}"
    try:
        container.wait()
        image = container.commit(repository, "1", changes=['CMD ["true"]'])
    finally:
        container.remove(force=True)
    try:
        profile = profile_of(workspace, (f"{repository}:1", str(image.id)), WIDE + ROOT_TABLE)
        done = workspace.rocmrun(
            "diff-privileges", profile, "--json", "--expect-output", "known", "--", "/usr/local/bin/helper", "/etc/secret",
            timeout=280,
        )  # fmt: skip
    finally:
        engine.images.remove(f"{repository}:1", force=True)

    assert done.returncode == 1, done.stderr
    check(json.loads(done.stdout), {"nnp:off"}, "EACCES")


@pytest.mark.slow
def test_locked_memory_needs_the_limit_where_the_engine_can_raise_it(
    engine: docker.DockerClient, bench: Bench
) -> None:
    """The limit is milder than the capability; an engine that cannot raise it leaves the capability."""
    raises = _can_raise_memlock(engine, bench)
    wanted = {"ulimit:memlock=-1"} if raises else {"cap:IPC_LOCK"}

    found = bench.found(bench.wide_root, bench.root, "--", *job.python(job.MEMLOCK_16_MIB), code=1)

    check(found, wanted, "ENOMEM")


def _can_raise_memlock(engine: docker.DockerClient, bench: Bench) -> bool:
    image = json.loads(bench.workspace.rocmrun("plan", bench.root, "--json").stdout)
    reference = image["plan"]["image"]["image_id"]
    limit = docker.types.Ulimit(name="memlock", soft=-1, hard=-1)
    try:
        engine.containers.run(reference, ["true"], ulimits=[limit], remove=True)
    except docker.errors.APIError:
        return False
    return True


@pytest.mark.slow
def test_the_probe_needs_nothing_of_amds_usual_line(demo_image: str, workspace: Workspace) -> None:
    """On the CPU: root, unconfined, the host's ipc and all capabilities can go, and the result is verified deeper."""
    profile = workspace.profile(demo_image)

    done = workspace.rocmrun(
        "diff-privileges", profile, "--recipe", "amd", "--level", "standard", "--json", timeout=280
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["minimal"] == []
    assert {"removable"} == {verdict["verdict"] for verdict in found["verdicts"]}
    assert found["exposure"]["permissive"]["total"] > 6
    assert found["exposure"]["minimal"]["total"] < 1
    assert {False, True} == {run["deep"] for run in found["runs"]}
