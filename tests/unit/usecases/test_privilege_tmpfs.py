"""diff-privileges finds a tmpfs in the place of a writable root: with an engine in memory whose job writes where the test says."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.host_paths import is_inside
from rocmrun.core.privilege_forms import compose_form, kubernetes_form, profile_form
from rocmrun.core.run import Created, WritableLayer
from rocmrun.core.search_space import Settings
from rocmrun.core.text import MIB
from rocmrun.errors import EngineFailed
from rocmrun.usecases.prepare import load as load_ask
from rocmrun.usecases.privilege_statics import stale
from rocmrun.usecases.privilege_trials import Budget
from tests.fakes import FakeEngine, Script
from tests.unit.usecases.stage import CPU_JOB, Stage
from tests.unit.usecases.test_diff_privileges import Job, diff

ROOTFS = '[[privileges]]\ngrant = "rootfs:rw"\nreason = "copied"\n'
UNCONFINED = '[[privileges]]\ngrant = "seccomp:unconfined"\nreason = "copied"\n'


class Writer(Job):
    """An engine whose job makes *files*, needs what the image has in *reads*, and says which file it could not make.

    Where its root is writable the engine lists the files.
    """

    def __init__(self, *files: str, reads: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(lambda _config: True, **options)
        self.makes, self.reads = files, reads
        self.requests: list[Mapping[str, Any]] = []

    def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
        config = request["HostConfig"]
        self.requests.append(config)
        created = super().create(request, name, platform)
        if "canary" not in str(request.get("Entrypoint")):
            self.containers_by_id[created.container_id].script = self._does(config)
        return created

    def _does(self, config: Mapping[str, Any]) -> Script:
        def hidden(path: str) -> bool:
            return any(is_inside(path, target) for target in config["Tmpfs"])

        for path in self.reads:
            if hidden(path):
                return Script(frames=[(2, f"{path}: No such file\n".encode())], exit_code=1)
        for path in self.makes:
            if config["ReadonlyRootfs"] and not hidden(path):
                said = f"OSError: [Errno 30] Read-only file system: '{path}'\n"
                return Script(frames=[(2, said.encode())], exit_code=1)
        written = [path for path in self.makes if not hidden(path)]
        return Script(
            written=WritableLayer(changes=dict.fromkeys(written, "added"), size_bytes=5 * MIB)
        )


class Unlisted(Writer):
    """An engine that cannot list what a container changed."""

    def written(self, container_id: str) -> WritableLayer:
        msg = f"cannot list what the container has changed: {container_id}"
        raise EngineFailed(msg)


def found_for(stage: Stage, engine: FakeEngine, **changes: Any) -> Any:
    stage.profile(CPU_JOB + ROOTFS)
    return diff(stage, engine, **changes)


def test_a_tmpfs_where_the_job_writes_stands_in_for_a_writable_root(stage: Stage) -> None:
    """It is required, with the line that it failed with; the root is removable; both say what of it there is to know."""
    engine = Writer("/app/state/db", "/app/state/log")

    found = found_for(stage, engine)

    certificate = found.certificate
    assert certificate.minimal == ("tmpfs:/app/state",)
    assert certificate.one_minimal
    kept, root = certificate.verdicts
    assert (kept.privilege, kept.verdict, kept.error, kept.cause) == ("tmpfs:/app/state", "required", "EROFS", "read-only root")  # fmt: skip
    assert kept.evidence.endswith("Read-only file system: '/app/state/db' (EROFS)")
    assert kept.instead_of == ("rootfs:rw",)
    assert "32 MiB of memory at most" in kept.warning
    assert "the engine lists 2 paths changed there; the job said that /app/state/db is read-only" in kept.warning  # fmt: skip
    assert (root.privilege, root.verdict) == ("rootfs:rw", "removable")
    assert root.evidence.startswith("tmpfs:/app/state does what the job needs of it; passed 2 of 2")
    assert kept.severity < root.severity
    assert certificate.exposure["minimal"]["total"] < certificate.exposure["permissive"]["total"]
    assert found.plan.read_only_root
    options = {config["Tmpfs"].get("/app/state") for config in engine.requests} - {None}
    owner = f"uid={found.plan.uid},gid={found.plan.gid}"
    assert options == {f"rw,nosuid,nodev,noexec,size=33554432,mode=1777,{owner}"}
    assert engine.kept == []


def test_two_directories_get_a_tmpfs_each(stage: Stage) -> None:
    """Each is left out by itself, and fails with the line that names it."""
    found = found_for(stage, Writer("/app/state/db", "/var/lib/job/x"))

    assert found.certificate.minimal == ("tmpfs:/app/state", "tmpfs:/var/lib/job")
    evidence = {one.privilege: one.evidence for one in found.certificate.verdicts}
    assert "/app/state/db" in evidence["tmpfs:/app/state"]
    assert "/var/lib/job/x" in evidence["tmpfs:/var/lib/job"]
    said = "\n".join(stage.heard.said)
    assert ": without rootfs:rw, with tmpfs:/app/state, tmpfs:/var/lib/job: pass" in said
    assert ": without rootfs:rw, with tmpfs:/app/state: fail: OSError" in said


def test_what_the_job_writes_for_nothing_gets_none(stage: Stage) -> None:
    """It may write there, and does without: of two that were tried one is left."""

    class Tolerant(Writer):
        def _does(self, config: Mapping[str, Any]) -> Script:
            self.makes = ("/app/state/db",) if config["ReadonlyRootfs"] else ("/app/state/db", "/var/log/x")  # fmt: skip
            return super()._does(config)

    found = found_for(stage, Tolerant())

    assert found.certificate.minimal == ("tmpfs:/app/state",)
    assert [place.path for place in found.certificate.tmpfs.places] == ["/app/state", "/var/log"]


def test_a_file_of_the_image_that_is_needed_keeps_the_writable_root(stage: Stage) -> None:
    """The tmpfs was tried, hides it, and the verdict says so."""
    found = found_for(stage, Writer("/app/conf/live", reads=("/app/conf/default",)))

    kept = found.certificate.verdicts[0]
    assert found.certificate.minimal == ("rootfs:rw",)
    assert found.certificate.tmpfs.outcome == "failed"
    assert "a tmpfs at /app/conf was tried in its place and does not do: /app/conf/default: No such file" in kept.warning  # fmt: skip
    assert "/app/conf" not in {tmpfs.target for tmpfs in found.plan.tmpfs}


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("/state", "/: a directory of the system is never covered"),
        ("/opt/job/state", "/opt/job: the job's program is there"),
    ],
)
def test_where_no_tmpfs_may_lie_none_is_tried(stage: Stage, file: str, why: str) -> None:
    """No run is spent, and the verdict says why."""
    engine = Writer(file)
    stage.profile(CPU_JOB + ROOTFS + '[container]\nentrypoint = ["/opt/job/serve"]\n')

    found = diff(stage, engine)

    assert found.certificate.minimal == ("rootfs:rw",)
    assert found.certificate.tmpfs.outcome == ""
    assert f"no tmpfs was tried in its place ({why})" in found.certificate.verdicts[0].warning
    assert "search" not in {run.purpose for run in found.certificate.runs}


def test_the_jobs_own_words_do_where_the_engine_lists_nothing(stage: Stage) -> None:
    """Each round finds the next path; the first is no matter of chance, so that it is not tried again."""
    engine = Unlisted("/a/x", "/b/x", "/c/x")

    found = found_for(stage, engine)

    assert found.certificate.minimal == ("tmpfs:/a", "tmpfs:/b", "tmpfs:/c")
    assert {place.size_bytes for place in found.certificate.tmpfs.places} == {64 * MIB}
    tried = [run for run in found.certificate.runs if run.purpose == "search"]
    assert [len(run.items) for run in tried[:3]] == [1, 2, 3]
    assert any("cannot list" in detail for detail in stage.heard.details)


def test_rounds_are_bounded(stage: Stage) -> None:
    """A job that names one path after the other is left with its writable root."""
    found = found_for(stage, Unlisted("/a/x", "/b/x", "/c/x", "/d/x"))

    assert found.certificate.minimal == ("rootfs:rw",)
    assert "a tmpfs at /a, /b, /c was tried in its place and does not do" in found.certificate.verdicts[0].warning  # fmt: skip


def test_a_directory_that_the_job_makes_itself_is_covered_from_above_where_that_helps(
    stage: Stage,
) -> None:
    """It will not find it there; the directory around it is tried next."""

    class Makes(Writer):
        def _does(self, config: Mapping[str, Any]) -> Script:
            if "/var/job" in config["Tmpfs"]:
                said = b"FileExistsError: [Errno 17] File exists: '/var/job'\n"
                return Script(frames=[(2, said)], exit_code=1)
            script = super()._does(config)
            changes = {"/var/job": "added", **script.written.changes}
            return replace(script, written=WritableLayer(changes=changes, size_bytes=0))

    found = found_for(stage, Makes("/var/job/x"))

    assert found.certificate.minimal == ("tmpfs:/var",)
    assert found.certificate.tmpfs.places[0].size_bytes == 16 * MIB


def test_either_of_two_is_settled_for_the_milder(stage: Stage) -> None:
    """A job that writes only where its filter is on takes the tmpfs, which is milder than no filter."""

    class Either(Writer):
        def _does(self, config: Mapping[str, Any]) -> Script:
            return (
                Script() if "seccomp=unconfined" in config["SecurityOpt"] else super()._does(config)
            )

    stage.profile(CPU_JOB + ROOTFS + UNCONFINED)

    found = diff(stage, Either("/app/state/db"))

    assert found.certificate.minimal == ("tmpfs:/app/state",)


def test_parallel_runs_find_the_same(stage: Stage) -> None:
    """Four at a time: the tmpfs and the root stand in for each other."""
    stage.profile(CPU_JOB + ROOTFS + UNCONFINED)

    found = diff(stage, Writer("/app/state/db"), settings=Settings(jobs=4, retries=1, repeats=2))

    assert found.certificate.minimal == ("tmpfs:/app/state",)


def test_what_was_seen_is_remembered(stage: Stage) -> None:
    """A search that a budget cut short goes on to the same tmpfs, and says why it had none."""
    short = found_for(stage, Writer("/app/state/db"), budget=Budget(runs=3))
    whole = found_for(stage, Writer("/app/state/db"), resume=True)

    assert short.certificate.stopped
    assert short.certificate.tmpfs.outcome == "stopped"
    assert short.certificate.minimal == ("rootfs:rw",)
    assert short.certificate.verdicts[0].warning.startswith("the budget ended before a tmpfs")
    assert whole.certificate.minimal == ("tmpfs:/app/state",)
    assert sum(run.reused for run in whole.certificate.runs) == 4


def test_the_estimate_counts_what_it_takes(stage: Stage) -> None:
    """At most three rounds of as many tries as a failure takes; said of a writable root alone."""
    found_for(stage, Writer("/app/state/db"))
    said = "\n".join(stage.heard.said)
    stage.profile(CPU_JOB + UNCONFINED)
    diff(stage, Writer())

    assert "a tmpfs is tried in 1 to 6 runs of these" in said
    assert "in place of rootfs:rw a tmpfs is tried where the job writes: /app/state" in said
    assert said.count("tmpfs is tried in") == "\n".join(stage.heard.said).count("tmpfs is tried in")


def test_the_minimal_profile_and_the_other_forms_have_the_tmpfs(stage: Stage) -> None:
    """The profile reads back and passes as the minimal side of a search; each form says that it is memory."""
    found = found_for(stage, Writer("/app/state/db"))
    text = profile_form(found.profile, found.certificate)
    (stage.path / "profiles/minimal.toml").write_text(text)
    stage.profile(CPU_JOB + ROOTFS)

    again = diff(stage, Writer("/app/state/db"), minimal=stage.ask(profile="minimal"))

    profile = load_ask(stage.ask(profile="minimal")).profile
    assert (profile.privileges, str(profile.container.tmpfs["/app/state"].bytes)) == (
        (),
        "33554432",
    )
    assert '"/app/state" = "32MiB"  # required: OSError: [Errno 30] Read-only file system' in text
    assert "# /app/state is in memory: what the job writes there is lost when the container ends" in text  # fmt: skip
    assert again.certificate.minimal == ()
    assert again.certificate.base == ("tmpfs:/app/state",)
    pod, service = kubernetes_form(found.plan), compose_form(found.plan)
    assert "readOnlyRootFilesystem: true" in pod
    assert 'mountPath: "/app/state"' in pod
    assert 'sizeLimit: "32Mi"' in pod
    assert "counts as the container's memory" in pod
    assert '- "/app/state:rw,nosuid,nodev,noexec,size=33554432' in service


def test_a_certificate_with_a_tmpfs_is_fresh_until_something_changes(stage: Stage) -> None:
    """It depends on what every certificate depends on."""
    engine = Writer("/app/state/db")
    text = found_for(stage, engine).certificate.model_dump_json()

    assert stale(text, "c.json", stage.ask(), None, engine) == ()
    stage.profile(CPU_JOB)
    assert len(stale(text, "c.json", stage.ask(), None, engine)) == 1


def test_the_probes_own_checks_write_too(stage: Stage) -> None:
    """Where the probe is the job its container is looked at as a command's is."""
    stage.profile(CPU_JOB + ROOTFS)

    class Probed(Writer):
        def _does(self, config: Mapping[str, Any]) -> Script:
            done = super()._does(config)
            small = config["Memory"] < 64 * MIB
            if small or done.exit_code:
                return replace(done, exit_code=137 if small else 1)
            return replace(self.scripts["probe"], written=done.written)

    found = diff(stage, Probed("/app/state/db"), oracle=None)

    assert found.certificate.minimal == ("tmpfs:/app/state",)
