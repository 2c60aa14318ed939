"""A seccomp profile for one job, with an engine in memory whose job makes the calls that the test says."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.oracle import CommandOracle
from rocmrun.core.privilege_forms import kubernetes_form, profile_form
from rocmrun.core.privilege_report import Found
from rocmrun.core.run import Created, PathStat
from rocmrun.core.search_space import Settings
from rocmrun.core.seccomp_groups import FLOOR
from rocmrun.errors import InputError, SeccompBaseUnknown, UsageError
from rocmrun.usecases.diff_privileges import diff_privileges
from rocmrun.usecases.privilege_gate import CANARY_MEMORY
from rocmrun.usecases.privilege_request import DiffRequest, check_request
from rocmrun.usecases.privilege_statics import stale
from rocmrun.usecases.privilege_trials import Budget
from tests.builders import ENGINE, IMAGE, IMAGE_ID
from tests.fakes import FakeEngine, Script, probe_answer
from tests.unit.usecases.stage import CPU_JOB, PULLED, REF, Stage

ALLOW = "SCMP_ACT_ALLOW"
CALLS = sorted(
    {
        *FLOOR - {"clone3"},
        "setuid",
        "io_setup",
        "io_submit",
        "inotify_init1",
        "mlock",
        "ptrace",
        "rename",
    }
)
BASE: dict[str, Any] = {
    "defaultAction": "SCMP_ACT_ERRNO",
    "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"],
    "syscalls": [
        {"names": CALLS, "action": ALLOW},
        {"names": ["mbind", "get_mempolicy"], "action": ALLOW, "includes": {"caps": ["CAP_SYS_NICE"]}},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
    ],
}  # fmt: skip
UNLOCKED = {"SYS_NICE": {"mbind", "get_mempolicy"}}
WIDE = "".join(
    f'[[privileges]]\ngrant = "{grant}"\nreason = "copied"\n'
    for grant in ("seccomp:unconfined", "rootfs:rw")
)


class Filtered(FakeEngine):
    """An engine in which the job ends with 0 where the filter of its container lets all of *needs* run."""

    def __init__(
        self,
        *needs: str,
        probe_needs: tuple[str, ...] = (),
        ignores_filters: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**{"images": {PULLED: IMAGE, IMAGE_ID: IMAGE, REF: IMAGE}, **options})
        self.needs, self.probe_needs = set(needs), set(probe_needs)
        self.ignores_filters = ignores_filters
        self.idle: list[str] = []

    def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
        config = request["HostConfig"]
        allowed = self.allowed(config)
        runs = "canary" not in str(request.get("Entrypoint"))
        probes = request["OpenStdin"]
        needs = (self.probe_needs if probes else self.needs) | {"execve"}
        starved = probes and config["Memory"] == CANARY_MEMORY
        works = runs and not starved and (allowed is None or needs <= allowed)
        said: list[tuple[int, Any]] = [] if works else [(2, b"mlock: Operation not permitted\n")]
        frames = [(1, probe_answer)] if probes and works else said
        self.scripts["trial"] = Script(frames=frames, exit_code=0 if works else 1)
        made = super().create(request, name, platform)
        if request.get("Entrypoint") in (["sleep"], ["python3"]) and not probes:
            self.idle.append(request["Entrypoint"][0])
        return made

    def allowed(self, config: Mapping[str, Any]) -> set[str] | None:
        """Return the calls that run in a container; None is every call."""
        options = [o.partition("=")[2] for o in config["SecurityOpt"] if o.startswith("seccomp=")]
        if options == ["unconfined"] or (options and self.ignores_filters):
            return None
        if not options:
            unlocked = (UNLOCKED.get(name, set()) for name in config["CapAdd"])
            return set(CALLS).union(*unlocked)
        rules = json.loads(options[0])["syscalls"]
        return {name for rule in rules if rule["action"] == ALLOW for name in rule["names"]}

    def inspect(self, container_id: str) -> dict[str, Any]:
        return {**super().inspect(container_id), "State": {"Pid": 4242}}


class Fickle(Filtered):
    """An engine whose job fails from the first probe that needs more than the job on."""

    def create(self, request: Mapping[str, Any], name: str, platform: str) -> Created:
        probes = request["OpenStdin"] and request["HostConfig"]["Memory"] != CANARY_MEMORY
        allowed = self.allowed(request["HostConfig"])
        if probes and allowed is not None and not self.probe_needs <= allowed:
            self.needs = {"kexec_load"}
        return super().create(request, name, platform)


@pytest.fixture
def base(stage: Stage) -> Path:
    """The base as a file."""
    path = stage.path / "base.json"
    path.write_text(json.dumps(BASE))
    return path


def diff(stage: Stage, engine: FakeEngine, **changes: Any) -> Found:
    values: dict[str, Any] = {
        "ask": stage.ask(),
        "oracle": CommandOracle(),
        "lock_directory": stage.path / "locks",
        "settings": Settings(retries=0, repeats=1),
        "seccomp": stage.path / "job.json",
    }
    return diff_privileges(
        DiffRequest(**(values | changes)), connect=stage.connect(engine), voice=stage.heard.voice
    )


def test_the_one_group_that_is_needed_is_kept(stage: Stage, base: Path) -> None:
    """With its evidence; the floor, what no group has and clone3's ENOSYS stay; it passed ten times."""
    found = diff(stage, Filtered("mlock"), seccomp_base=base)

    made = found.certificate.seccomp
    assert made is not None
    assert (made.status, made.kept) == ("tailored", ("@memlock",))
    assert set(made.removed) == {"@aio", "@inotify", "@debug", "@setuid", "@32-bit"}
    assert made.groups[0].evidence == "mlock: Operation not permitted (EPERM)"
    assert made.one_minimal
    assert made.verification is not None
    assert (made.verification.passes, made.verification.runs) == (10, 10)
    assert made.ungrouped == ("rename",)
    text = json.loads(found.seccomp_text)
    assert set(text["syscalls"][0]["names"]) == {*FLOOR - {"clone3"}, "mlock", "rename"}
    assert text["syscalls"][1:] == [
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}
    ]
    assert text["architectures"] == ["SCMP_ARCH_X86_64"]
    assert not found.lacks_seccomp


def test_the_plan_has_what_was_written_and_says_less_than_the_default(
    stage: Stage, base: Path
) -> None:
    """By value; the profile names the file, the score counts it, the runs are in the certificate."""
    found = diff(stage, Filtered("mlock"), seccomp_base=base)

    assert json.loads(found.plan.seccomp or "") == json.loads(found.seccomp_text)
    assert f"seccomp:{stage.path}/job.json" in {grant.what for grant in found.plan.grants}
    certificate = found.certificate
    assert certificate.exposure["minimal"]["total"] < certificate.exposure["permissive"]["total"]
    runs = [run for run in certificate.runs if run.stage == "seccomp"]
    assert [run.purpose for run in runs[:3]] == ["canary", "gate", "gate"]
    assert all(len(run.request) == 64 for run in runs)
    emitted = profile_form(found.profile, certificate, directory=str(stage.path))
    assert 'grant = "seccomp:./job.json"' in emitted
    assert f"{len(FLOOR) + 1} of" in emitted
    assert 'localhostProfile: "profiles/job.json"' in kubernetes_form(found.plan)


def test_a_filter_without_any_group_passes_ten_times_too(stage: Stage, base: Path) -> None:
    """It refuses the most, and is the likeliest to refuse what a run does only now and then."""
    found = diff(stage, Filtered(), seccomp_base=base)

    made = found.certificate.seccomp
    assert made is not None
    assert (made.kept, made.one_minimal) == ((), True)
    assert made.verification is not None
    assert (made.verification.passes, made.verification.runs) == (10, 10)
    assert "passed 10 of 10 runs" in profile_form(found.profile, found.certificate)


def test_the_probe_passes_under_the_jobs_filter(stage: Stage, base: Path) -> None:
    """Three runs tell: a launch runs it first, with equal rights."""
    found = diff(stage, Filtered("mlock"), seccomp_base=base)

    made = found.certificate.seccomp
    assert made is not None
    assert made.probe == "passes"
    runs = [run for run in found.certificate.runs if run.stage == "seccomp-probe"]
    assert [run.purpose for run in runs] == ["gate", "gate", "gate"]


def test_what_the_probe_needs_is_kept_too(stage: Stage, base: Path) -> None:
    """Or nothing that was made could be launched; the job is verified anew under the filter that it gets."""
    found = diff(stage, Filtered("mlock", probe_needs=("io_setup",)), seccomp_base=base)

    made = found.certificate.seccomp
    assert made is not None
    assert (made.kept, made.probe) == (("@memlock", "@aio"), "passes")
    assert [(v.group, v.needed_by) for v in made.groups[:2]] == [
        ("@memlock", "job"),
        ("@aio", "probe"),
    ]
    assert [v.verdict for v in made.groups] == ["required"] * 2 + ["removed"] * 4
    assert made.one_minimal
    assert not made.stopped
    assert made.verification is not None
    assert (made.verification.passes, made.verification.runs) == (10, 10)
    last = [run for run in found.certificate.runs if run.stage == "seccomp"][-10:]
    assert {run.items for run in last} == {("@aio", "@memlock")}
    assert {"io_setup", "mlock"} <= set(json.loads(found.seccomp_text)["syscalls"][0]["names"])


def test_a_probe_that_fails_anyway_keeps_no_filter_from_the_job(stage: Stage, base: Path) -> None:
    """An image without torch is launched without a probe."""
    found = diff(stage, Filtered("mlock", probe_needs=("kexec_load",)), seccomp_base=base)

    made = found.certificate.seccomp
    assert made is not None
    assert (made.kept, made.probe) == (("@memlock",), "fails")
    assert made.probe_reason
    assert found.seccomp_text


def test_a_probe_that_is_the_job_is_not_asked_again(stage: Stage, base: Path) -> None:
    """Its own search says what it needs."""
    found = diff(stage, Filtered(probe_needs=("io_setup",)), seccomp_base=base, oracle=None)

    made = found.certificate.seccomp
    assert made is not None
    assert (made.kept, made.probe) == (("@aio",), "job")


@pytest.mark.parametrize("runs", [21, 23, 34])
def test_a_budget_that_ends_with_the_probe_says_so(stage: Stage, base: Path, runs: int) -> None:
    """Before its first pass nothing is known of it; later the filter can be too large, or seen too seldom."""
    engine = Filtered("mlock", probe_needs=("io_setup",))

    found = diff(stage, engine, seccomp_base=base, budget=Budget(runs=runs))

    made = found.certificate.seccomp
    assert made is not None
    assert made.stopped or made.probe == "untested"
    assert "@memlock" in made.kept


@pytest.mark.parametrize("runs", [7, 14, 20, 26, 31, 35, 36, 39])
def test_no_filter_is_written_that_the_job_was_not_run_under(
    stage: Stage, base: Path, runs: int
) -> None:
    """Whenever the budget ends: what is written has passed, as it is."""
    engine = Filtered("mlock", probe_needs=("io_setup",))
    try:
        found = diff(stage, engine, seccomp_base=base, budget=Budget(runs=runs))
    except UsageError:
        return
    made = found.certificate.seccomp
    assert made
    if found.seccomp_text:
        assert made.verification
        assert 0 < made.verification.passes == made.verification.runs
        passed = [
            set(run.items)
            for run in found.certificate.runs
            if run.stage == "seccomp" and run.result.passed
        ]
        assert set(made.kept) in passed


def test_a_job_that_fails_once_the_probe_has_its_calls_keeps_its_own_filter(
    stage: Stage, base: Path
) -> None:
    """A filter under which the job fails is not written because the probe likes it."""
    engine = Fickle("mlock", probe_needs=("io_setup",))

    found = diff(stage, engine, seccomp_base=base)

    made = found.certificate.seccomp
    assert made
    assert (made.kept, made.probe) == (("@memlock",), "untested")
    assert "the job fails at times" in made.probe_reason
    assert made.verification
    assert made.verification.passes == made.verification.runs == 10


def test_a_rule_that_is_needed_becomes_part_of_the_filter(stage: Stage, base: Path) -> None:
    """What SYS_NICE in the bounding set unlocked is allowed by the filter, and the capability goes."""
    stage.profile(CPU_JOB + WIDE)

    found = diff(stage, Filtered("mbind"), seccomp_base=base)

    made = found.certificate.seccomp
    assert made is not None
    assert found.certificate.minimal == ("seccomp:+mempolicy",)
    assert (made.kept, made.rules) == (("@mempolicy",), ("seccomp:+mempolicy",))
    assert found.plan.cap_add == ()
    assert "mbind" in found.seccomp_text


def test_a_job_that_wants_no_filter_gets_none(stage: Stage, base: Path) -> None:
    """What it needs is found all the same."""
    stage.profile(CPU_JOB + WIDE)

    found = diff(stage, Filtered("keyctl"), seccomp_base=base)

    assert found.certificate.minimal == ("seccomp:unconfined",)
    assert found.certificate.seccomp is not None
    assert found.certificate.seccomp.status == "nothing"
    assert found.lacks_seccomp
    assert any("needs seccomp:unconfined" in said for said in stage.heard.warnings)


def test_an_engine_that_applies_no_filter_is_seen(stage: Stage, base: Path) -> None:
    """Without execve nothing starts: what does is not filtered."""
    found = diff(stage, Filtered(ignores_filters=True), seccomp_base=base)

    assert found.certificate.seccomp is not None
    assert "applies no filter" in found.certificate.seccomp.reason
    assert found.lacks_seccomp


def test_a_base_under_which_the_job_fails_is_no_base(stage: Stage, base: Path) -> None:
    """It may be another engine's."""
    found = diff(stage, Filtered("rename"), seccomp_base=base)
    base.write_text(json.dumps(BASE).replace('"rename"', '"renameat"'))

    other = diff(stage, Filtered("rename"), seccomp_base=base)

    assert found.seccomp_text
    assert other.certificate.seccomp is not None
    assert (
        other.certificate.seccomp.reason
        == "the job fails with the whole filter too when it is given by value"
    )
    assert other.certificate.seccomp.base is not None


def test_a_budget_is_for_both_searches(stage: Stage, base: Path) -> None:
    """Spent before the filter's turn there is no filter; spent in it there is the smallest that passed."""
    stage.profile(CPU_JOB + WIDE)
    before = diff(stage, Filtered("mbind"), seccomp_base=base, budget=Budget(runs=4))
    stage.profile(CPU_JOB)
    early = diff(stage, Filtered("mlock"), seccomp_base=base, budget=Budget(runs=2))
    late = diff(stage, Filtered("mlock"), seccomp_base=base, budget=Budget(runs=8))
    rest = diff(stage, Filtered("mlock"), seccomp_base=base, resume=True)

    assert before.certificate.seccomp is not None
    assert (
        before.certificate.seccomp.reason == "the budget was spent before it was the filter's turn"
    )
    none, some, whole = (found.certificate.seccomp for found in (early, late, rest))
    assert none is not None
    assert some is not None
    assert whole is not None
    assert (none.status, none.reason) == (
        "failed",
        "the budget was spent before the whole filter had passed once",
    )
    assert (some.status, some.stopped, some.one_minimal) == ("tailored", True, False)
    assert "@memlock" in some.kept
    assert "untested" in {verdict.verdict for verdict in some.groups}
    assert whole.one_minimal
    assert any(run.reused for run in rest.certificate.runs if run.stage == "seccomp")


def with_bundle(stage: Stage, seccomp: Any) -> None:
    """Give the stage's host a process 4242 whose parent works in the bundle of the first container."""
    bundle = stage.path / "bundles" / f"{1:064x}"
    bundle.mkdir(parents=True)
    (bundle / "config.json").write_text(json.dumps({"linux": {"seccomp": seccomp}}))
    for pid in (4242, 77):
        (stage.root / f"proc/{pid}").mkdir(parents=True)
    (stage.root / "proc/4242/status").write_text("Name:\tinit\nPPid:\t77\n")
    (stage.root / "proc/77/cwd").symlink_to(bundle)
    (stage.root / "proc/77/cmdline").write_text("containerd-shim\0-namespace\0moby\0")


def test_the_engines_own_filter_is_read_from_what_it_handed_the_runtime(stage: Stage) -> None:
    """Of a container with the job's rights that waits; it is started once for equal rights, and removed."""
    with_bundle(stage, {**BASE, "syscalls": BASE["syscalls"][:1]})
    engine = Filtered("mlock")

    found = diff(stage, engine)

    made = found.certificate.seccomp
    assert made is not None
    assert made.base is not None
    assert (made.base.source, made.base.file) == ("the engine's own", "")
    assert made.base.engine.startswith("docker ")
    assert made.kept == ("@memlock",)
    assert engine.idle == ["sleep"]
    assert engine.kept == []


def test_an_image_without_sleep_waits_in_python(stage: Stage) -> None:
    """And one with neither cannot wait."""
    with_bundle(stage, BASE)
    (stage.path / "bundles" / f"{1:064x}").rename(stage.path / "bundles" / f"{2:064x}")
    (stage.root / "proc/77/cwd").unlink()
    (stage.root / "proc/77/cwd").symlink_to(stage.path / "bundles" / f"{2:064x}")
    directories = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
    no_sleep: dict[str, PathStat | bytes | None] = {f"{where}/sleep": None for where in directories}
    neither = {**no_sleep, **{f"{where}/python3": None for where in directories}}

    engine = Filtered(files=no_sleep)
    diff(stage, engine)
    with pytest.raises(SeccompBaseUnknown, match="neither sleep nor python3"):
        diff(stage, Filtered(files=neither))

    assert engine.idle == ["sleep", "python3"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda root: (root / "proc/4242/status").unlink(), "not among this host's"),
        (lambda root: (root / "proc/4242/status").write_text("PPid:\t1\n"), "No such file or directory"),
        (lambda root: (root / "proc/77/cwd/config.json").write_text("{"), "cannot read"),
        (lambda root: (root / "proc/77/cwd/config.json").write_text("[]"), "no JSON object"),
        (lambda root: (root / "proc/77/cwd/config.json").write_text("{}"), "gives this container no seccomp filter"),
    ],
)  # fmt: skip
def test_what_keeps_the_engines_filter_from_being_read_is_said_before_any_search(
    stage: Stage, spoil: Any, said: str
) -> None:
    """With the other way as its hint; nothing but the waiting container was started."""
    with_bundle(stage, BASE)
    spoil(stage.root)
    engine = Filtered()

    with pytest.raises(SeccompBaseUnknown, match=said) as caught:
        diff(stage, engine)

    assert "--seccomp-base" in str(caught.value.hint)
    assert engine.calls.count("start trial") == 1
    assert engine.kept == []


def test_a_parent_that_works_elsewhere_is_no_shim(stage: Stage) -> None:
    """Its configuration would be another container's."""
    with_bundle(stage, BASE)
    (stage.root / "proc/77/cwd").unlink()
    (stage.root / "proc/77/cwd").symlink_to(stage.path)

    with pytest.raises(SeccompBaseUnknown, match="which is not its bundle"):
        diff(stage, Filtered())
    (stage.root / "proc/77/cmdline").write_text("conmon\0-b\0/var/lib/another\0")
    with pytest.raises(SeccompBaseUnknown, match="which is not its bundle"):
        diff(stage, Filtered())


def test_a_monitor_works_where_its_engine_does_and_was_told_the_bundle(stage: Stage) -> None:
    """Podman's, conmon: by -b."""
    with_bundle(stage, {**BASE, "syscalls": BASE["syscalls"][:1]})
    bundle = f"bundles/{1:064x}"
    (stage.root / "proc/77/cwd").unlink()
    (stage.root / "proc/77/cwd").symlink_to(stage.path)
    (stage.root / "proc/77/cmdline").write_text(f"conmon\0-c\0x\0-b\0/{bundle}\0-p\0/y\0")
    (stage.root / "bundles").symlink_to(stage.path / "bundles")

    made = diff(stage, Filtered("mlock")).certificate.seccomp

    assert made is not None
    assert made.base is not None
    assert made.base.source == "the engine's own"


def test_a_profile_of_the_sites_is_read_where_the_engine_names_it(stage: Stage, base: Path) -> None:
    """It needs no root."""
    options = (f"name=seccomp,profile={base}",)

    found = diff(stage, Filtered("mlock", facts=replace(ENGINE, security_options=options)))

    assert found.certificate.seccomp is not None
    assert found.certificate.seccomp.base is not None
    assert found.certificate.seccomp.base.file == str(base)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist"),
        ("{", "is not JSON"),
        ('{"defaultAction": "SCMP_ACT_ALLOW"}', "lets every system call run by default"),
        ('{"defaultAction": "SCMP_ACT_ERRNO", "unless": 1}', "says unless, which is not known here"),
    ],
)  # fmt: skip
def test_a_base_that_is_no_seccomp_profile_is_refused(
    stage: Stage, base: Path, text: str | None, said: str
) -> None:
    """Before anything runs, with the file's name."""
    base.unlink() if text is None else base.write_text(text)
    engine = Filtered()

    with pytest.raises(InputError, match=said) as caught:
        diff(stage, engine, seccomp_base=base)

    assert "base.json" in caught.value.message
    assert not [call for call in engine.calls if call.startswith("start")]


def test_a_minimal_side_without_a_filter_has_none_to_tailor(stage: Stage) -> None:
    """And no container waits for one to be read."""
    opened = CPU_JOB + '[[privileges]]\ngrant = "seccomp:unconfined"\nreason = "r"\n'
    (stage.path / "profiles/open.toml").write_text(opened)
    engine = Filtered("mlock")

    found = diff(stage, engine, minimal=stage.ask(profile="open"))

    assert found.certificate.seccomp is not None
    assert found.certificate.seccomp.status == "nothing"
    assert engine.idle == []


def test_a_base_is_not_written_over(stage: Stage, base: Path) -> None:
    """It is what the next search starts from."""
    with pytest.raises(UsageError, match="write over"):
        check_request(DiffRequest(ask=stage.ask(), seccomp=base, seccomp_base=base))


def test_a_base_is_for_a_profile_that_is_asked_for(stage: Stage, base: Path) -> None:
    """By itself it says nothing."""
    with pytest.raises(UsageError, match="--seccomp-base"):
        check_request(DiffRequest(ask=stage.ask(), seccomp_base=base))


def test_a_certificate_is_stale_when_a_filter_is(stage: Stage, base: Path) -> None:
    """The one that it was made from, and the one that was made."""
    found = diff(stage, Filtered("mlock"), seccomp_base=base)
    certificate = found.certificate.model_dump_json()
    written = stage.path / "job.json"
    written.write_text(found.seccomp_text)

    def changes() -> tuple[str, ...]:
        return stale(certificate, "certificate.json", stage.ask(), None, Filtered())

    fresh = changes()
    written.write_text(found.seccomp_text + "\n")
    base.unlink()

    assert fresh == ()
    assert changes() == (
        f"seccomp profile {written}: has changed",
        f"seccomp profile {base}: is no longer there",
    )


def test_what_is_quoted_from_a_certificate_is_one_plain_line(stage: Stage, base: Path) -> None:
    """Somebody may have edited it, with what a terminal obeys, or a name that no file has."""
    found = diff(stage, Filtered("mlock"), seccomp_base=base)

    def changes(name: str) -> tuple[str, ...]:
        values = json.loads(found.certificate.model_dump_json())
        values["seccomp"]["file"] = name
        return stale(json.dumps(values), "c.json", stage.ask(), None, Filtered())

    assert changes("no\n\x1b[31mfile") == ("seccomp profile no file: is no longer there",)
    with pytest.raises(InputError, match="no file has such a name"):
        changes("no\0file")
