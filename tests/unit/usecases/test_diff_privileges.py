"""diff-privileges with an engine in memory whose job needs what the test says."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.command_line import Options
from rocmrun.core.oracle import CommandOracle
from rocmrun.core.privilege_forms import WRITTEN, compose_form, kubernetes_form, profile_form
from rocmrun.core.privilege_report import Found
from rocmrun.core.run import Created
from rocmrun.core.search_space import Settings
from rocmrun.errors import (
    EngineFailed,
    EngineUnreachable,
    InputError,
    OracleBlind,
    OracleFails,
    PlanRefused,
    PortTaken,
    ProfileUnwritable,
    UsageError,
)
from rocmrun.usecases.diff_privileges import diff_privileges
from rocmrun.usecases.prepare import load as load_ask
from rocmrun.usecases.privilege_request import DiffRequest, check_emit, check_request
from rocmrun.usecases.privilege_statics import stale, static_difference
from rocmrun.usecases.privilege_trials import Budget
from tests.builders import ENGINE, IMAGE, IMAGE_ID
from tests.fakes import FakeEngine, Script
from tests.hosts import FakeGpu
from tests.unit.usecases.stage import CPU_JOB, GPU_JOB, PULLED, REF, Stage

Config = Mapping[str, Any]
Needs = Callable[[Config], bool]
WIDE = "".join(
    f'[[privileges]]\ngrant = "{grant}"\nreason = "copied"\n'
    for grant in ("rootfs:rw", "seccomp:unconfined", "nnp:off", "cap:SYS_PTRACE", "user:root")
)
ORACLE = CommandOracle()


class Job(FakeEngine):
    """An engine in which the job ends with 0 where *needs* holds of its container, and says why not."""

    def __init__(
        self, needs: Needs, *, refuses: Needs = lambda _: False, blind: bool = False, **options: Any
    ) -> None:
        super().__init__(**{"images": {PULLED: IMAGE, IMAGE_ID: IMAGE, REF: IMAGE}, **options})
        self.needs, self.refuses, self.blind = needs, refuses, blind

    def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
        config = {**request["HostConfig"], "User": request["User"]}
        if self.refuses(config):
            msg = "cannot create the container: unknown capability"
            raise EngineFailed(msg)
        runs = self.blind or "canary" not in str(request.get("Entrypoint"))
        works = runs and self.needs(config)
        said = [] if works else [(2, b"open: Read-only file system\n")]
        self.scripts["trial"] = Script(frames=said, exit_code=0 if works else 1)
        return super().create(request, name, platform)


def writable(config: Config) -> bool:
    return not config["ReadonlyRootfs"]


def anything(_config: Config) -> bool:
    return True


def diff(stage: Stage, engine: FakeEngine, **changes: Any) -> Found:
    values: dict[str, Any] = {
        "ask": stage.ask(),
        "oracle": ORACLE,
        "lock_directory": stage.path / "locks",
        "settings": Settings(retries=1, repeats=2),
    }
    return diff_privileges(
        DiffRequest(**(values | changes)), connect=stage.connect(engine), voice=stage.heard.voice
    )


def test_the_one_privilege_that_is_needed_is_found(stage: Stage) -> None:
    """With its evidence, its errno and who refused; the rest is removable; nothing is left in the engine."""
    stage.profile(CPU_JOB + WIDE)
    engine = Job(writable)

    found = diff(stage, engine)

    certificate = found.certificate
    assert certificate.minimal == ("rootfs:rw",)
    assert certificate.one_minimal
    kept, *others = certificate.verdicts
    assert (
        kept.privilege, kept.verdict, kept.error, kept.cause,
    ) == ("rootfs:rw", "required", "EROFS", "read-only root")  # fmt: skip
    assert kept.evidence == "open: Read-only file system (EROFS)"
    assert "narrower" in kept.warning
    assert {"removable"} == {verdict.verdict for verdict in others}
    assert len(others) == 4
    assert engine.kept == []


def test_runs_carry_labels_of_their_own(stage: Stage) -> None:
    """clean finds them, and nobody takes them for a workload."""
    stage.profile(CPU_JOB + WIDE)
    engine = Job(writable)

    diff(stage, engine)

    labels = [container.labels for container in engine.removed]
    assert {"trial"} == {label["io.rocmrun.role"] for label in labels}
    assert all(label["io.rocmrun.controller"] for label in labels)
    assert {""} == {label["io.rocmrun.detached"] for label in labels}


def test_the_estimate_comes_before_the_first_run(stage: Stage) -> None:
    """How many runs, and how long that may take."""
    stage.profile(CPU_JOB + WIDE)

    diff(stage, Job(writable))

    runs = [index for index, said in enumerate(stage.heard.said) if said.startswith("run ")]
    before = "\n".join(stage.heard.said[: runs[0] - 1])
    assert "5 privileges vary; 4 runs when none is needed" in before
    assert " min if a run takes 5 s" in before


def test_a_job_that_needs_nothing_takes_four_runs(stage: Stage) -> None:
    """The canary, the permissive side twice, the minimal side once."""
    stage.profile(CPU_JOB + WIDE)

    found = diff(stage, Job(anything))

    assert [run.purpose for run in found.certificate.runs] == ["canary", "gate", "gate", "gate"]
    assert not found.certificate.needs_more


def test_an_alternative_is_told_with_what_it_stands_in_for(stage: Stage) -> None:
    """Unconfined is removable, since the rule does what is needed of it."""
    stage.profile(CPU_JOB + WIDE)

    def may_bind_memory(config: Config) -> bool:
        options = config["SecurityOpt"]
        return "SYS_NICE" in config["CapAdd"] or "seccomp=unconfined" in options

    found = diff(stage, Job(may_bind_memory))

    kept = found.certificate.verdicts[0]
    assert (kept.privilege, kept.instead_of) == ("seccomp:+mempolicy", ("seccomp:unconfined",))
    wide = next(v for v in found.certificate.verdicts if v.privilege == "seccomp:unconfined")
    assert wide.evidence.startswith("seccomp:+mempolicy does what the job needs of it")


def test_what_the_engine_refuses_is_untested(stage: Stage) -> None:
    """A capability that it does not know says nothing of the job."""
    stage.profile(CPU_JOB + WIDE)
    engine = Job(writable, refuses=lambda config: "SYS_PTRACE" in config["CapAdd"])

    found = diff(stage, engine)

    assert found.certificate.minimal == ("rootfs:rw",)
    untested = found.certificate.verdicts[-1]
    assert (untested.privilege, untested.verdict) == ("cap:SYS_PTRACE", "untested")
    assert "unknown capability" in untested.evidence


def test_a_port_that_is_taken_ends_the_search(stage: Stage) -> None:
    """It says nothing of a privilege: every container would fail so."""
    stage.profile(CPU_JOB + WIDE)
    taken = PortTaken("cannot start the container: port is already allocated")

    with pytest.raises(PortTaken):
        diff(stage, Job(writable, failures={"start trial": taken}))


def test_an_engine_that_goes_away_leaves_a_search_to_go_on_with(stage: Stage) -> None:
    """What was answered is kept, and the error says how to go on."""
    stage.profile(CPU_JOB + WIDE)

    class Restarted(Job):
        def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
            if len(self.removed) == 6:
                msg = "no Docker engine answers"
                raise EngineUnreachable(msg)
            return super().create(request, name, platform)

    with pytest.raises(EngineUnreachable) as caught:
        diff(stage, Restarted(writable))
    found = diff(stage, Job(writable), resume=True)

    assert "--resume" in str(caught.value.hint)
    assert sum(run.reused for run in found.certificate.runs) >= 3


def test_what_policy_refuses_is_untested(stage: Stage) -> None:
    """SYS_ADMIN with root is in no plan, so in no experiment."""
    stage.profile(CPU_JOB + WIDE + '[[privileges]]\ngrant = "cap:SYS_ADMIN"\nreason = "copied"\n')
    engine = Job(writable)

    found = diff(stage, engine)

    untested = found.certificate.verdicts[-1]
    assert (untested.privilege, untested.verdict) == ("cap:SYS_ADMIN", "untested")
    assert "together with root" in untested.evidence
    assert not any("SYS_ADMIN" in c.request["HostConfig"]["CapAdd"] and c.request["User"] == "0:0" for c in engine.removed)  # fmt: skip


def test_an_oracle_that_sees_nothing_is_refused(stage: Stage) -> None:
    """Whatever happens is fine with it, a missing program too."""
    stage.profile(CPU_JOB + WIDE)

    with pytest.raises(OracleBlind):
        diff(stage, Job(anything, blind=True))


def test_on_a_gpu_the_canary_is_kfd(stage: Stage) -> None:
    """A job that passes without it does not use the GPU, or nobody looks."""
    stage.host(FakeGpu())
    stage.profile(GPU_JOB + WIDE)

    def opens_kfd(config: Config) -> bool:
        return any(device["PathInContainer"] == "/dev/kfd" for device in config["Devices"])

    found = diff(stage, Job(opens_kfd))

    assert (
        found.certificate.runs[0].purpose,
        found.certificate.runs[0].result.verdict,
    ) == ("canary", "fail")
    with pytest.raises(OracleBlind, match="without /dev/kfd"):
        diff(stage, Job(anything))


def test_a_job_that_never_passes_lacks_no_privilege(stage: Stage) -> None:
    """What it said is the diagnosis."""
    stage.profile(CPU_JOB + WIDE)

    ask = stage.ask(options=Options(command=("sh", "-c", "exit 1")))
    with pytest.raises(OracleFails) as caught:
        diff(stage, Job(lambda _: False), ask=ask)

    assert "open: Read-only file system" in caught.value.details
    assert str(caught.value.hint).endswith("--no-probe -- sh -c 'exit 1'")


def test_amds_line_is_compared_for_a_profile_that_asks_for_nothing(stage: Stage) -> None:
    """21 privileges on a host without GPUs; none is needed."""
    found = diff(stage, Job(anything), recipe="amd")

    assert len(found.certificate.verdicts) == 21
    exposure = found.certificate.exposure
    assert exposure["permissive"]["total"] > 6
    assert exposure["minimal"]["total"] < 2


def test_a_minimal_profile_keeps_what_it_has(stage: Stage) -> None:
    """Root on both sides: the rule is no way there, the capability is, and root itself is not searched."""
    stage.profile(CPU_JOB + WIDE)
    root = CPU_JOB + '[[privileges]]\ngrant = "user:root"\nreason = "r"\n'
    (stage.path / "profiles/root.toml").write_text(root)

    def may_bind_memory(config: Config) -> bool:
        return "SYS_NICE" in config["CapAdd"] or "seccomp=unconfined" in config["SecurityOpt"]

    found = diff(stage, Job(may_bind_memory), minimal=stage.ask(profile="root"))

    assert found.certificate.minimal == ("cap:SYS_NICE",)
    assert found.certificate.base == ("user:root",)
    assert found.plan.user == "0:0"


def test_a_search_goes_on_where_it_stopped(stage: Stage) -> None:
    """What a budget cut short is not run again."""
    stage.profile(CPU_JOB + WIDE)

    short = diff(stage, Job(writable), budget=Budget(runs=5))
    whole = diff(stage, Job(writable), resume=True)

    assert short.certificate.stopped
    assert not short.certificate.one_minimal
    assert whole.certificate.minimal == ("rootfs:rw",)
    assert sum(run.reused for run in whole.certificate.runs) == 6
    afresh = diff(stage, Job(writable))
    assert sum(run.reused for run in afresh.certificate.runs) == 0


def test_no_answer_of_another_engine_is_remembered(stage: Stage) -> None:
    """It would stand in a certificate that names the engine of now."""
    stage.profile(CPU_JOB + WIDE)
    diff(stage, Job(writable))

    newer = replace(ENGINE, version="99.9")
    found = diff(stage, Job(writable, facts=newer), resume=True)

    assert found.certificate.engine.version == "99.9"
    assert sum(run.reused for run in found.certificate.runs) == 0
    again = diff(stage, Job(writable, facts=newer), resume=True)
    assert sum(run.reused for run in again.certificate.runs) > 0


def test_a_budget_that_ends_before_a_pass_is_refused(stage: Stage) -> None:
    """Nothing is known then, so that nothing is reported."""
    stage.profile(CPU_JOB + WIDE)

    with pytest.raises(UsageError, match="before the permissive side had passed once"):
        diff(stage, Job(writable), budget=Budget(runs=1), settings=Settings(jobs=4))


def test_parallel_runs_find_the_same(stage: Stage) -> None:
    """Four at a time."""
    stage.profile(CPU_JOB + WIDE)

    found = diff(stage, Job(writable), settings=Settings(jobs=4, retries=1, repeats=2))

    assert found.certificate.minimal == ("rootfs:rw",)


def test_the_probe_is_the_job_where_there_is_no_command(stage: Stage) -> None:
    """Searched at quick and verified at the level asked for; neither image nor profile names a program."""
    stage.profile(CPU_JOB + WIDE)
    nameless = replace(IMAGE, command=())
    images = {PULLED: nameless, IMAGE_ID: nameless, REF: nameless}

    class Probed(Job):
        def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
            created = super().create(request, name, platform)
            small = request["HostConfig"]["Memory"] < 1 << 26
            script = Script(exit_code=137) if small else self.scripts["probe"]
            self.containers_by_id[created.container_id].script = script
            return created

    engine = Probed(anything, images=images)
    found = diff(stage, engine, oracle=None, level="standard")

    assert not found.certificate.needs_more
    runs = [run for run in found.certificate.runs if run.purpose != "canary"]
    assert [run.deep for run in runs] == [False, False, True, False, True]
    assert not any(run.reused for run in runs)
    proved = [c.input for c in engine.removed if len(c.input) and c.exit_code == 0]
    assert [b'"level":"standard"' in sent for sent in proved] == [run.deep for run in runs]
    assert found.certificate.oracle == {"probe": "standard"}
    assert engine.kept == []


def test_the_minimal_profile_is_a_profile(stage: Stage) -> None:
    """It reads back, asks for what was found and for nothing else, and says why."""
    stage.profile(CPU_JOB + WIDE)

    options = Options(command=("sh", "-c", "echo ${HOME}"))
    found = diff(stage, Job(writable), ask=stage.ask(options=options))
    text = profile_form(found.profile, found.certificate)
    stage.profile(text)

    profile = load_ask(stage.ask()).profile
    assert profile.container.command == ("sh", "-c", "echo ${HOME}")
    assert [entry.grant for entry in profile.privileges] == ["rootfs:rw"]
    assert "# required: open: Read-only file system (EROFS)" in text
    assert profile.image.ref == REF


def test_a_kept_privilege_has_the_reason_that_was_found(stage: Stage) -> None:
    """Needed is said of what failed without it alone; a reason that the profile gave stays."""
    recipe = {"recipe": "amd", "ask": stage.ask(options=Options(command=("true",)))}
    stage.profile(CPU_JOB)
    needed = diff(stage, Job(writable), **recipe)
    early = diff(stage, Job(writable), budget=Budget(runs=4), **recipe)
    stage.profile(CPU_JOB + WIDE)
    own = diff(stage, Job(writable))

    texts = [profile_form(found.profile, found.certificate) for found in (needed, early, own)]
    assert 'reason = "needed: without it the job failed' in texts[0]
    assert "needed: without it" not in texts[1]
    assert 'reason = "not shown to be needed: never left out by itself' in texts[1]
    assert "diff-privileges)" not in texts[2]


def test_a_profile_of_ones_own_is_not_written_over(tmp_path: Path) -> None:
    """One that an earlier search wrote is."""
    own, earlier = tmp_path / "own.toml", tmp_path / "earlier.toml"
    own.write_text('description = "by hand"\n')
    earlier.write_text(f"{WRITTEN} on 2026-11-30\n")

    with pytest.raises(ProfileUnwritable, match=r"own\.toml is there"):
        check_emit(own)
    check_emit(earlier)
    check_emit(tmp_path / "new.toml")


def test_the_other_forms_say_the_same_rights(stage: Stage) -> None:
    """A Pod and a compose service with a writable root, no capability and no new privileges."""
    stage.profile(CPU_JOB + WIDE)

    plan = diff(stage, Job(writable)).plan

    pod, service = kubernetes_form(plan), compose_form(plan)
    assert "readOnlyRootFilesystem: false" in pod
    assert "allowPrivilegeEscalation: false" in pod
    assert 'type: "RuntimeDefault"' in pod
    assert "read_only: true" not in service
    assert '- "no-new-privileges:true"' in service


def test_a_certificate_is_stale_when_what_it_holds_for_has_changed(stage: Stage) -> None:
    """The engine's version, and the profile; unchanged it is fresh."""
    stage.profile(CPU_JOB + WIDE)
    engine = Job(writable)
    text = diff(stage, engine).certificate.model_dump_json()
    newer = Job(writable, facts=replace(engine.facts(), version="28.0.0"))

    assert stale(text, "c.json", stage.ask(), None, engine) == ()
    assert stale(text, "c.json", stage.ask(), None, newer) == (
        "engine version: was '20.10.24', is '28.0.0'",
    )
    stage.profile(CPU_JOB)
    assert "the job is planned otherwise now" in stale(text, "c.json", stage.ask(), None, engine)[0]  # fmt: skip
    other = text.replace(f'"profile":"{stage.ask().profile}"', '"profile":"another"')
    with pytest.raises(InputError, match="was made for the profile another") as refused:
        stale(other, "c.json", stage.ask(), None, engine)
    assert refused.value.hint == "rocmrun diff-privileges another --stale c.json"
    with pytest.raises(InputError, match="no certificate"):
        stale("{}", "c.json", stage.ask(), None, engine)
    with pytest.raises(InputError, match="the baseline"):
        stale(text, "c.json", stage.ask(), stage.ask(profile="other"), engine)


def test_two_sides_are_compared_without_a_run(stage: Stage) -> None:
    """What the profile has and its baseline has not."""
    stage.profile(CPU_JOB + WIDE)
    engine = Job(writable)

    difference = static_difference(stage.ask(), None, None, engine)

    only, _ = difference.only
    recipe, _ = static_difference(stage.ask(), None, "amd", engine).only
    assert {g.reason for g in recipe if g.what == "ipc:host"} == {"in AMD's usual docker line"}
    assert {"rootfs:rw", "seccomp:unconfined", "nnp:off", "cap:SYS_PTRACE", "user:root"} == {
        grant.what for grant in only
    }
    assert difference.exposures[0].total > difference.exposures[1].total
    assert not [call for call in engine.calls if call.startswith("start")]


def test_a_budget_is_runs_or_time() -> None:
    """Nothing else."""
    assert Budget(runs=40) == Budget.parse("40")
    assert Budget(seconds=900) == Budget.parse("15m")
    assert Budget(seconds=7200) == Budget.parse("2h")
    with pytest.raises(UsageError):
        Budget.parse("soon")


def test_a_recipe_and_a_minimal_profile_contradict_each_other(stage: Stage) -> None:
    """The recipe is compared with the baseline."""
    with pytest.raises(UsageError):
        check_request(DiffRequest(ask=stage.ask(), minimal=stage.ask(), recipe="amd"))


def test_a_profile_that_forbids_overrides_is_run_with_no_wider_rights(stage: Stage) -> None:
    """Neither under AMD's line nor with a minimal side that has more; with fewer it may be run."""
    stage.profile(CPU_JOB + WIDE + "[policy]\noverrides = false\n")
    wider = CPU_JOB + '[[privileges]]\ngrant = "pid:host"\nreason = "r"\n'
    (stage.path / "profiles/wider.toml").write_text(wider)

    with pytest.raises(PlanRefused) as recipe:
        diff(stage, Job(writable), recipe="amd")
    with pytest.raises(PlanRefused) as minimal:
        diff(stage, Job(writable), minimal=stage.ask(profile="wider"))
    found = diff(stage, Job(writable))

    assert recipe.value.details == ("asked for: --recipe amd",)
    assert minimal.value.details == ("asked for: pid:host, which the minimal side has",)
    assert found.certificate.minimal == ("rootfs:rw",)


def test_an_unlocked_image_is_refused_in_ci(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As launch refuses it."""
    monkeypatch.setenv("CI", "1")

    with pytest.raises(PlanRefused, match="CI"):
        check_request(DiffRequest(ask=stage.ask(unlocked=True)))


def test_a_minimal_profile_needs_none_of_the_jobs_parameters(stage: Stage) -> None:
    """--set is for the job; what --emit writes has no parameters left."""
    parameter = '[parameters.name]\nhelp = "a name"\n[container]\nenv = { NAME = "${name}" }\n'
    stage.profile(CPU_JOB + parameter + WIDE)
    (stage.path / "profiles/minimal.toml").write_text(
        CPU_JOB + '[[privileges]]\ngrant = "rootfs:rw"\nreason = "r"\n'
    )
    settings = {"name": "x"}

    found = diff(
        stage,
        Job(writable),
        ask=stage.ask(settings=settings),
        minimal=stage.ask(profile="minimal", settings=settings),
    )

    assert found.certificate.minimal == ()


def test_each_run_gets_the_jobs_secrets_and_leaves_none(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of its own for each container; the digest of a request does not depend on where it is."""
    monkeypatch.setenv("TOKEN", "hush")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(stage.path / "run"))
    (stage.path / "run").mkdir(mode=0o700)
    stage.profile(CPU_JOB + WIDE + '[[secrets]]\nname = "token"\nsource = "env:TOKEN"\n')
    engine = Job(writable)

    found = diff(stage, engine)

    sources = [
        mount["Source"]
        for container in engine.removed
        for mount in container.request["HostConfig"]["Mounts"]
        if mount["Target"].endswith("/token")
    ]
    assert len(engine.removed) == len(set(sources))
    assert not [path for path in (stage.path / "run").rglob("*") if path.is_file()]
    gate = {run.request for run in found.certificate.runs if len(run.items) == 5}
    assert len(gate) == 2  # the canary's and the permissive side's
    assert "hush" not in found.certificate.model_dump_json()


def test_the_certificate_holds_every_run(stage: Stage) -> None:
    """With the digest of its request; equal containers have equal digests."""
    stage.profile(CPU_JOB + WIDE)

    runs = json.loads(diff(stage, Job(writable)).certificate.model_dump_json())["runs"]

    by_items: dict[tuple[str, ...], set[str]] = {}
    for run in runs[1:]:
        by_items.setdefault(tuple(run["items"]), set()).add(run["request"])
    assert all(len(requests) == 1 for requests in by_items.values())
