"""Launch, step by step on a fake engine: the order, what is left behind, and what is told to whom."""

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.plan import canonical_json
from rocmrun.core.run import PathStat
from rocmrun.errors import (
    CommandNotFound,
    ContainerMismatch,
    EngineFailed,
    EngineUnreachable,
    EngineUnsuitable,
    GpuBusy,
    Interrupted,
    LimitDropped,
    LockMissing,
    OutputUnwritable,
    PlanRefused,
    ProbeFailed,
    ProfileNotFound,
    ReportUnwritable,
    UsageError,
)
from rocmrun.usecases.launch import launch
from tests.builders import ENGINE, probe_output
from tests.fakes import STDERR, STDOUT, FakeEngine, Script, probe_answer
from tests.hosts import MI210_X8
from tests.unit.usecases.stage import CPU_JOB, GPU_JOB, REF, Stage, an_engine

PROBED = [
    "create probe", "inspect probe", "attach probe", "start probe", "wait probe", "remove probe",
]  # fmt: skip
WORKED = [
    "create workload", "inspect workload", "attach workload", "start workload", "wait workload",
    "remove workload",
]  # fmt: skip
FAILED_PROBE = Script(frames=[(STDOUT, probe_output(status="fail", reason="wrong sum"))])


def test_the_probe_runs_and_is_gone_before_the_workload_is_made(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each container is inspected before it starts."""
    work = Script(frames=[(STDOUT, b"out\n"), (STDERR, b"err\n")], exit_code=3)
    engine = an_engine(scripts={"workload": work})

    code = stage.launch(engine)

    assert code == 3
    assert engine.calls == ["facts", *PROBED, *WORKED]
    assert engine.kept == []
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("out\n", "err\n")


def test_the_report_holds_what_ran(stage: Stage) -> None:
    stage.launch(an_engine(scripts={"workload": Script(exit_code=3)}))

    report = stage.report
    assert (report["profile"], report["exit_code"], report["error"]) == ("job", 3, None)
    assert (report["probe_outcome"], report["torch_version"]) == ("passed", "2.13.0")
    assert report["image_digest"].startswith("sha256:7f")
    assert report["started_at"] <= report["ended_at"]
    assert {grant["what"] for grant in report["grants"]} >= {"tmpfs-exec:/tmp"}


@pytest.mark.parametrize("call", ["facts", *PROBED[:-1], *WORKED[:-1]])
def test_nothing_is_left_behind_wherever_the_engine_fails(stage: Stage, call: str) -> None:
    """And the report says what happened."""
    engine = an_engine(failures={call: EngineFailed(f"no {call}", hint="try again")})

    with pytest.raises(EngineFailed, match=call):
        stage.launch(engine)

    assert engine.kept == []
    error = stage.report["error"]
    assert (error["slug"], error["code"], error["message"]) == ("engine-failed", 6, f"no {call}")
    assert error["hint"] == "try again"


def test_a_workload_that_nobody_needs_to_see_starts_nothing_twice(stage: Stage) -> None:
    engine = an_engine(failures={"start workload": EngineFailed("no")})

    with pytest.raises(EngineFailed):
        stage.launch(engine)

    assert engine.calls.count("start workload") == 1
    assert "wait workload" not in engine.calls


def _privileged(record: dict[str, Any]) -> None:
    record["HostConfig"]["Privileged"] = True


def _memlock(record: dict[str, Any]) -> None:
    record["HostConfig"]["Ulimits"].append({"Name": "memlock", "Soft": -1, "Hard": -1})


@pytest.mark.parametrize("role", ["probe", "workload"])
def test_a_container_that_is_weaker_than_asked_for_is_never_started(
    stage: Stage, role: str
) -> None:
    engine = an_engine(change={role: _privileged})

    with pytest.raises(ContainerMismatch) as caught:
        stage.launch(engine)

    assert caught.value.details == ("HostConfig.Privileged: asked for False, engine recorded True",)
    assert f"start {role}" not in engine.calls
    assert engine.kept == []
    assert stage.report["error"]["slug"] == "container-mismatch"
    assert stage.report["error"]["details"] == list(caught.value.details)


def test_an_ulimit_of_the_site_is_refused_with_the_grant_that_accepts_it(stage: Stage) -> None:
    with pytest.raises(ContainerMismatch) as caught:
        stage.launch(an_engine(change={"probe": _memlock}))

    assert '"ulimit:memlock=-1:-1"' in (caught.value.hint or "")


def _less_memory(record: dict[str, Any]) -> None:
    record["HostConfig"]["Memory"] //= 2


def test_a_stricter_container_is_accepted(stage: Stage) -> None:
    assert stage.launch(an_engine(change={"probe": _less_memory, "workload": _less_memory})) == 0


def test_a_workload_with_other_rights_than_the_probe_had_is_refused(stage: Stage) -> None:
    """Even stricter ones: the proof was for another container."""
    engine = an_engine(change={"workload": _less_memory})

    with pytest.raises(ContainerMismatch, match="other rights than the probe had") as caught:
        stage.launch(engine)

    assert caught.value.details[0].startswith("Memory: the probe had ")
    assert "start workload" not in engine.calls
    assert engine.kept == []


def test_no_work_starts_after_a_probe_that_failed(stage: Stage) -> None:
    engine = an_engine(scripts={"probe": FAILED_PROBE})

    with pytest.raises(ProbeFailed, match="wrong sum"):
        stage.launch(engine)

    assert engine.calls == ["facts", *PROBED]
    assert [check.status for check in stage.heard.checks] == ["pass", "fail"]
    report = stage.report
    assert (report["probe_outcome"], report["error"]["slug"], report["exit_code"]) == (
        "failed", "probe-failed", None,
    )  # fmt: skip


def test_without_a_probe_that_is_said_aloud(stage: Stage) -> None:
    engine = an_engine()

    assert stage.launch(engine, probe=False) == 0

    assert engine.calls == ["facts", *WORKED]
    assert any("not probed" in warning for warning in stage.heard.warnings)
    assert (stage.report["probe_outcome"], stage.report["probe_reason"]) == ("none", "--no-probe")


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"probe": False}, "--no-probe"),
        ({"share": True}, "--share"),
        ({"level": "quick"}, "--probe-level quick"),
        ({"debug": True}, "--debug"),
        ({"unlocked": True}, "--unlocked"),
    ],
)
def test_a_profile_may_forbid_to_weaken_its_proof(
    stage: Stage, asked: dict[str, Any], named: str
) -> None:
    """No engine is asked; more proof than the profile wants is always welcome."""
    strict = '[probe]\nlevel = "standard"\n[policy]\noverrides = false\n'
    stage.profile(CPU_JOB + strict)

    ask = stage.ask(**{name: asked.pop(name) for name in ("debug", "unlocked") if name in asked})

    with pytest.raises(PlanRefused) as caught:
        stage.launch(an_engine(), ask=ask, **asked)

    assert caught.value.details == (f"asked for: {named}",)
    assert stage.connected == 0


def test_a_probe_that_passed_counts_until_the_next_boot(stage: Stage) -> None:
    stage.launch(an_engine())
    engine = an_engine()

    assert stage.launch(engine) == 0

    assert engine.calls == ["facts", *WORKED]
    assert any("not run again (reuse = boot)" in text for text in stage.heard.said)
    assert stage.report["probe_outcome"] == "reused"
    assert "since this boot" in stage.report["probe_reason"]
    assert stage.report["torch_version"] == "2.13.0"


@pytest.mark.parametrize(
    "tables", ['[probe]\nreuse = "never"\n', '[container]\nshm_size = "3GiB"\n']
)
def test_a_probe_runs_again_where_it_never_counts_or_was_for_other_rights(
    stage: Stage, tables: str
) -> None:
    stage.launch(an_engine())
    stage.profile(CPU_JOB + tables)
    engine = an_engine()

    stage.launch(engine)

    assert engine.calls == ["facts", *PROBED, *WORKED]


def test_a_probe_runs_again_after_the_engine_was_upgraded(stage: Stage) -> None:
    """What held the probe's container need not hold the next one."""
    stage.launch(an_engine())
    engine = an_engine(facts=replace(ENGINE, components=("runc 1.3.0",)))

    stage.launch(engine)

    assert engine.calls == ["facts", *PROBED, *WORKED]


EROFS = Script(frames=[(STDERR, b"sh: can't create /app/db: Read-only file system\n")], exit_code=1)


def test_a_workload_that_fails_for_a_known_reason_is_told_where_to_read(stage: Stage) -> None:
    """After its own words, which are not changed."""
    assert stage.launch(an_engine(scripts={"workload": EROFS})) == 1

    (hint,) = stage.heard.hints
    assert hint.startswith("likely cause: ")
    assert hint.endswith(": rocmrun explain readonly-rootfs")


def test_what_the_plan_knows_of_a_failure_is_said_in_place_of_a_page(stage: Stage) -> None:
    """A mount that is read-only is no matter of the image's tree."""
    mount = '[[mounts]]\ntype = "volume"\nsource = "app"\ntarget = "/app"\n'
    stage.profile(CPU_JOB + mount)

    assert stage.launch(an_engine(scripts={"workload": EROFS})) == 1

    (hint,) = stage.heard.hints
    assert hint == '/app is mounted read-only: mode = "rw" where the profile mounts app'


@pytest.mark.parametrize(
    ("script", "asked"),
    [
        (replace(EROFS, exit_code=0), {}),
        (EROFS, {"tty": True}),
        (Script(frames=[(STDERR, b"AssertionError: 3 != 4\n")], exit_code=1), {}),
        (Script(exit_code=3), {}),
        (
            replace(
                EROFS, until_killed=True, on_start=lambda: os.kill(os.getpid(), signal.SIGTERM)
            ),
            {},
        ),
    ],
    ids=["success", "terminal", "unknown", "silent", "stopped"],
)
def test_no_cause_is_named_where_none_is_sure(
    stage: Stage, script: Script, asked: dict[str, Any]
) -> None:
    """Nor of what went well, of a terminal's screen, or of what was asked to end."""
    stage.launch(an_engine(scripts={"workload": script}), ask=stage.ask(**asked))

    assert stage.heard.hints == []


@pytest.mark.parametrize("noticed", [True, False])
def test_a_kill_is_blamed_on_memory_where_the_engine_saw_it(stage: Stage, *, noticed: bool) -> None:
    """Else somebody may have sent the signal."""
    stage.launch(an_engine(scripts={"workload": Script(exit_code=137, oom_killed=noticed)}))

    assert [hint.rpartition(" ")[2] for hint in stage.heard.hints] == ["oom-cgroup-137"] * noticed


def test_a_probe_of_another_level_is_another_probe(stage: Stage) -> None:
    stage.launch(an_engine())
    engine = an_engine()

    stage.launch(engine, level="full")

    assert "create probe" in engine.calls
    settings = json.loads(engine.made("probe").input.partition(b"\n")[0])
    assert settings["level"] == "full"


def test_a_kept_proof_that_cannot_be_read_proves_nothing(stage: Stage) -> None:
    stage.launch(an_engine())
    (record,) = (stage.path / "state/rocmrun/proofs").iterdir()
    record.write_text("{")
    engine = an_engine()

    stage.launch(engine)

    assert "create probe" in engine.calls


def test_a_proof_that_cannot_be_kept_is_no_failure(stage: Stage) -> None:
    (stage.path / "state").write_text("a file where a directory is needed")

    assert stage.launch(an_engine()) == 0


def test_a_secret_reaches_the_workload_and_nothing_else(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    stage.profile(CPU_JOB + '[container]\nenv_from = ["HF_TOKEN"]\n')
    engine = an_engine()

    stage.launch(engine)

    assert "HF_TOKEN=hf_secret" in engine.made("workload").request["Env"]
    probe = engine.made("probe")
    assert "hf_secret" not in canonical_json(dict(probe.request)) + probe.input.decode()
    assert "hf_secret" not in canonical_json(engine.made("workload").labels)
    kept = stage.report_path.read_text() + "".join(
        path.read_text() for path in (stage.path / "state").rglob("*.json")
    )
    assert "hf_secret" not in kept + stage.heard.words
    assert "env-from:HF_TOKEN" in kept


def test_a_detached_workload_is_left_running_and_named(stage: Stage) -> None:
    engine = an_engine(scripts={"workload": Script(until_killed=True)})

    assert stage.launch(engine, detach=True, name="server") == 0

    (left,) = engine.kept
    assert (left.name, left.status, left.role) == ("server", "running", "workload")
    assert stage.heard.results == ["server"]
    assert left.labels["io.rocmrun.detached"] == "1"
    assert left.request["HostConfig"]["LogConfig"]["Type"] == "json-file"
    assert engine.calls == ["facts", *PROBED, *WORKED[:2], "start workload"]
    assert stage.report["exit_code"] is None
    assert stage.report["ended_at"]


def test_a_name_that_no_engine_takes_is_refused_before_the_probe(stage: Stage) -> None:
    engine = an_engine()

    with pytest.raises(UsageError, match="no name for a container"):
        stage.launch(engine, name="two words")
    assert engine.calls == []


def test_a_detached_workload_that_cannot_start_is_not_left(stage: Stage) -> None:
    engine = an_engine(failures={"start workload": EngineFailed("no")})

    with pytest.raises(EngineFailed):
        stage.launch(engine, detach=True)

    assert engine.kept == []


def test_a_kept_workload_stays_when_it_has_ended(stage: Stage) -> None:
    engine = an_engine()

    stage.launch(engine, keep=True)

    (left,) = engine.kept
    assert (left.status, left.labels["io.rocmrun.keep"]) == ("exited", "1")
    assert left.request["HostConfig"]["LogConfig"]["Type"] == "json-file"


def test_containers_are_named_and_labelled_for_those_who_look_for_them(stage: Stage) -> None:
    engine = an_engine()

    stage.launch(engine)

    probe, workload = engine.made("probe"), engine.made("workload")
    assert probe.name == f"{workload.name}-probe"
    assert workload.name.startswith("rocmrun-job-")
    assert probe.labels["io.rocmrun.run"] == workload.labels["io.rocmrun.run"]
    assert workload.labels["io.rocmrun.controller"].startswith(f"{os.getpid()}:")
    assert workload.labels["io.rocmrun.plan"] == stage.report["plan_hash"]
    assert workload.platform == "linux/amd64"


def test_profile_lock_and_image_are_named(stage: Stage) -> None:
    stage.launch(an_engine())

    words = "\n".join(stage.heard.said)
    assert str(stage.path / "profiles/job.toml") in words
    assert str(stage.path / "rocmrun.lock") in words
    assert f"image {REF} @ sha256:7f" in words


def test_an_image_that_no_lock_pins_is_not_started(stage: Stage) -> None:
    stage.lock()
    engine = an_engine()

    with pytest.raises(LockMissing):
        stage.launch(engine)

    assert engine.kept == []
    assert "create probe" not in engine.calls
    assert stage.report["error"]["slug"] == "lock-missing"
    assert stage.report["profile"] == "job"


def test_an_image_that_no_lock_pins_is_started_where_that_is_asked_for_loudly(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.lock()

    assert stage.launch(an_engine(), ask=stage.ask(unlocked=True)) == 0
    assert any("is not locked" in warning for warning in stage.heard.warnings)

    monkeypatch.setenv("CI", "true")
    engine = an_engine()
    with pytest.raises(PlanRefused, match="CI is set"):
        stage.launch(engine, ask=stage.ask(unlocked=True))
    assert engine.calls == []


@pytest.mark.parametrize("option", ["tty", "interactive"])
def test_detached_means_that_nobody_is_there(stage: Stage, option: str) -> None:
    engine = an_engine()

    with pytest.raises(UsageError, match=f"drop --{option}"):
        stage.launch(engine, detach=True, ask=stage.ask(**{option: True}))

    assert (engine.calls, stage.connected) == ([], 0)


def test_a_terminal_for_input_needs_one(stage: Stage) -> None:
    """The tests' own stdin is none."""
    with pytest.raises(UsageError, match="need a terminal"):
        stage.launch(an_engine(), ask=stage.ask(tty=True, interactive=True))

    assert stage.connected == 0


@pytest.mark.parametrize("name", [".", "no/such/r.json", "rocmrun.lock/r.json", "/proc/r.json"])
def test_a_report_that_cannot_be_written_is_known_before_the_run(stage: Stage, name: str) -> None:
    engine = an_engine()

    with pytest.raises(ReportUnwritable):
        stage.launch(engine, report=stage.path / name)

    assert (engine.calls, stage.connected) == ([], 0)


def test_trying_the_report_leaves_nothing(stage: Stage) -> None:
    before = sorted(stage.path.iterdir())

    with pytest.raises(ReportUnwritable):
        stage.launch(an_engine(), report=stage.path)

    assert sorted(stage.path.iterdir()) == before


def test_a_launch_without_a_report_writes_none(stage: Stage) -> None:
    stage.launch(an_engine(), report=None)
    with pytest.raises(ProfileNotFound):
        stage.launch(an_engine(), report=None, ask=stage.ask(profile="nosuch"))

    assert not stage.report_path.exists()


def test_an_engine_that_does_not_answer_is_in_the_report(stage: Stage) -> None:
    def connect() -> FakeEngine:
        msg = "no container engine answers"
        raise EngineUnreachable(msg)

    with pytest.raises(EngineUnreachable):
        launch(stage.request(), connect=connect, voice=stage.heard.voice)

    assert stage.report["error"]["slug"] == "engine-unreachable"


def test_a_profile_is_judged_before_an_engine_is_waited_for(stage: Stage) -> None:
    with pytest.raises(ProfileNotFound):
        stage.launch(an_engine(), ask=stage.ask(profile="nosuch"))

    assert stage.connected == 0


def test_an_unsuitable_engine_is_refused_before_anything_is_made(stage: Stage) -> None:
    engine = an_engine(facts=replace(ENGINE, default_runtime="kata"))

    with pytest.raises(EngineUnsuitable):
        stage.launch(engine)

    assert engine.calls == ["facts"]


def test_what_is_odd_about_an_engine_is_a_warning(stage: Stage) -> None:
    options = ("name=seccomp,profile=/etc/docker/site.json",)

    stage.launch(an_engine(facts=replace(ENGINE, security_options=options)))

    assert any("/etc/docker/site.json" in warning for warning in stage.heard.warnings)


def test_a_limit_that_the_kernel_cannot_keep_stops_the_launch(stage: Stage) -> None:
    """It is the host that is not ready (8), whatever the engine then recorded."""
    text = "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded."  # fmt: skip

    def drop(record: dict[str, Any]) -> None:
        record["HostConfig"]["Memory"] = record["HostConfig"]["MemorySwap"] = 0

    engine = an_engine(warnings=(text,), change={"probe": drop})

    with pytest.raises(LimitDropped) as caught:
        stage.launch(engine)

    assert caught.value.details == (text,)
    assert (caught.value.exit_code, engine.kept) == (8, [])


def test_a_kernel_that_counts_no_swap_is_a_warning(stage: Stage) -> None:
    text = "Your kernel does not support swap limit capabilities or the cgroup is not mounted. Memory limited without swap."  # fmt: skip

    def unlimited_swap(record: dict[str, Any]) -> None:
        record["HostConfig"]["MemorySwap"] = -1

    change = {"probe": unlimited_swap, "workload": unlimited_swap}
    assert stage.launch(an_engine(warnings=(text,), change=change)) == 0
    assert f"engine: {text}" in stage.heard.warnings

    with pytest.raises(ContainerMismatch):
        stage.launch(an_engine(change=change), level="standard")


def test_a_command_that_is_not_in_the_image_is_known_before_it_starts(stage: Stage) -> None:
    files = {f"{path}/bash": None for path in ("/usr/local/bin", "/usr/bin", "/bin")}
    engine = an_engine(files=files)

    with pytest.raises(CommandNotFound, match="bash: not found in example"):
        stage.launch(engine, probe=False)

    assert engine.calls == ["facts", *WORKED[:2], "remove workload"]


def test_an_image_without_python_cannot_be_probed(stage: Stage) -> None:
    files: dict[str, PathStat | bytes | None] = {
        f"{path}/python3": None for path in ("/usr/local/bin", "/usr/bin", "/bin")
    }
    engine = an_engine(files=files)

    with pytest.raises(ProbeFailed, match="the probe needs Python, and python3: not found"):
        stage.launch(engine)

    assert "start probe" not in engine.calls
    assert engine.kept == []


@pytest.mark.parametrize(
    ("oom_killed", "said"), [(True, "the kernel killed the workload"), (False, "if nobody did it")]
)
def test_a_workload_that_was_killed_says_so(stage: Stage, said: str, *, oom_killed: bool) -> None:
    work = Script(exit_code=137, oom_killed=oom_killed)

    assert stage.launch(an_engine(scripts={"workload": work})) == 137

    assert any(said in warning for warning in stage.heard.warnings)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_workload_ends_the_launch_and_cleans_up(
    stage: Stage, number: signal.Signals
) -> None:
    stop = Script(until_killed=True, on_start=lambda: os.kill(os.getpid(), number))
    engine = an_engine(scripts={"probe": stop})
    before = signal.getsignal(number)

    with pytest.raises(Interrupted) as caught:
        stage.launch(engine)

    assert caught.value.signal_number == number
    assert engine.kept == []
    assert "create workload" not in engine.calls
    assert stage.report["error"]["slug"] == "interrupted"
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT"])
def test_a_signal_reaches_the_workload(stage: Stage, name: str) -> None:
    number = signal.Signals[name]
    work = Script(until_killed=True, exit_code=7, on_start=lambda: os.kill(os.getpid(), number))
    engine = an_engine(scripts={"workload": work})

    assert stage.launch(engine, probe=False) == 7

    assert engine.made("workload").signals == [name]


def test_a_second_interrupt_kills(stage: Stage) -> None:
    engine = an_engine()

    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    engine.scripts["workload"] = Script(
        until_killed=True, on_start=twice, ignores=frozenset({"SIGINT"})
    )

    assert stage.launch(engine, probe=False) == 137

    assert engine.made("workload").signals == ["SIGINT", "SIGKILL"]
    assert not [text for text in stage.heard.warnings if "killed" in text]
    assert "killing the container" in stage.heard.said


def test_input_is_passed_on_where_that_is_asked_for(stage: Stage) -> None:
    ask = replace(stage.ask(), interactive=True)
    engine = an_engine()

    stage.launch(engine, ask=ask, probe=False)

    request = engine.made("workload").request
    assert (request["OpenStdin"], request["StdinOnce"]) == (True, True)


def test_a_terminal_gets_its_size(stage: Stage) -> None:
    engine = an_engine()

    stage.launch(engine, ask=replace(stage.ask(), tty=True), probe=False)

    assert len(engine.made("workload").sizes) == 1
    assert engine.made("workload").request["Tty"] is True


def test_the_gpus_of_a_run_are_labelled_and_kept_to_it(stage: Stage) -> None:
    stage.profile(GPU_JOB)
    stage.host(*MI210_X8[:2])
    probe = Script(frames=[(STDOUT, probe_output(accelerator="rocm", devices=2))])
    engine = an_engine(scripts={"probe": probe, "workload": Script(until_killed=True)})

    stage.launch(engine, detach=True)

    (left,) = engine.kept
    assert left.labels["io.rocmrun.render-minors"] == "128,129"
    assert sorted(path.name for path in (stage.path / "locks").iterdir()) == [
        "renderD128.lock", "renderD129.lock",
    ]  # fmt: skip
    with pytest.raises(GpuBusy) as caught:
        stage.launch(engine)
    assert f"container {left.name}" in caught.value.details[0]
    assert stage.report["error"]["slug"] == "gpu-busy"


@pytest.mark.parametrize("changes", [{"share": True}, {}])
def test_gpus_may_be_shared(stage: Stage, changes: dict[str, Any]) -> None:
    """By --share, or where the profile does not want them for itself."""
    stage.profile(GPU_JOB + ("" if changes else "[gpus]\nexclusive = false\n"))
    stage.host(*MI210_X8[:1])
    probe = Script(frames=[(STDOUT, probe_output(accelerator="rocm", devices=2))])
    engine = an_engine(scripts={"probe": probe, "workload": Script(until_killed=True)})
    stage.launch(engine, detach=True, **changes)
    engine.scripts["workload"] = Script()

    assert stage.launch(engine, **changes) == 0

    assert not (stage.path / "locks").exists()


def test_the_cache_is_made_for_the_user_inside(stage: Stage) -> None:
    engine = an_engine()

    stage.launch(engine)

    (mount,) = engine.made("workload").request["HostConfig"]["Mounts"]
    found = Path(mount["Source"]).stat()
    parts = Path(mount["Source"]).relative_to(stage.path / "cache/rocmrun").parts
    assert (parts[0][:4], *parts[1:3]) == ("job-", "7f7f7f7f7f7f", "cpu")
    written = stage.path / "cache/rocmrun" / parts[0] / ".profile"
    assert written.read_text() == str(stage.path / "profiles/job.toml")
    assert f"{found.st_uid}" == engine.made("workload").request["User"].split(":")[0]
    assert found.st_mode & 0o777 == 0o700


def test_the_cache_is_there_when_somebody_cleaned_while_the_probe_ran(stage: Stage) -> None:
    def clean() -> None:
        shutil.rmtree(stage.path / "cache")

    probe = Script(frames=[(STDOUT, probe_answer)], on_start=clean)
    engine = an_engine(scripts={"probe": probe})

    stage.launch(engine)

    (mount,) = engine.made("workload").request["HostConfig"]["Mounts"]
    assert Path(mount["Source"]).is_dir()


def test_a_probe_alone_runs_always_afresh(stage: Stage) -> None:
    stage.probe(an_engine())
    engine = an_engine()

    record = stage.probe(engine, level="standard")

    assert engine.calls == ["facts", *PROBED]
    assert (record.probe_outcome, record.error) == ("passed", None)
    assert stage.report["probe_outcome"] == "passed"


def test_a_probe_alone_that_fails_is_a_result(stage: Stage) -> None:
    record = stage.probe(an_engine(scripts={"probe": FAILED_PROBE}))

    assert record.probe_outcome == "failed"
    assert stage.report["probe"]["status"] == "fail"


def test_output_that_nobody_takes_stops_the_workload(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    """A full disk behind stdout, say."""
    saved = os.dup(1)
    full = os.open("/dev/full", os.O_WRONLY)
    work = Script(frames=[(STDOUT, b"x")], until_killed=True)
    engine = an_engine(scripts={"workload": work})
    try:
        os.dup2(full, 1)
        with pytest.raises(OutputUnwritable):
            stage.launch(engine, probe=False)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(full)

    assert "stop workload" in engine.calls
    assert engine.kept == []


def test_a_reader_that_has_gone_ends_the_workload_as_a_shell_would(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    saved = os.dup(1)
    work = Script(frames=[(STDOUT, b"x")], until_killed=True)
    engine = an_engine(scripts={"workload": work})
    os.close(reader)
    try:
        os.dup2(writer, 1)
        code = stage.launch(engine, probe=False)
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(writer)

    assert code == 141
    assert "stop workload" in engine.calls
    assert engine.kept == []
