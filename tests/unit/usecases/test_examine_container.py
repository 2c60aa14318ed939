"""A container is found by any of its names, looked at for a while, and judged from all that was seen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmrun.console.running_container import examined_as_json, live_line, print_examined
from rocmrun.core.running.observation import Observation
from rocmrun.errors import EngineFailed, WorkloadAmbiguous, WorkloadNotFound
from rocmrun.usecases.examine_container import Examined, Watch, examine_container
from rocmrun.usecases.find_container import find_container
from tests.builders import IMAGE_ID
from tests.fakes import STDERR, STDOUT, FakeEngine, Script
from tests.hosts import FakeGpu, build_host, kfd_gpu_id, write
from tests.running_machines import TICKS, write_group_v2, write_process, write_sensors

PID = 700
RUNNING = {"Status": "running", "Pid": PID, "ExitCode": 0}
EXITED = {"Status": "exited", "Pid": 0, "ExitCode": 137, "OOMKilled": True}


def an_engine(
    *,
    state: dict[str, Any] = RUNNING,
    said: bytes = b"serving\n",
    log: str = "json-file",
    **options: Any,
) -> FakeEngine:
    def change(record: dict[str, Any]) -> None:
        record["State"] = state
        record["HostConfig"]["LogConfig"] = {"Type": log, "Config": {}}

    script = Script(until_killed=True, frames=[(STDOUT, said), (STDERR, b"")])
    return FakeEngine(
        scripts={"workload": script, "": script},
        change={"workload": change, "": change},
        **options,
    )


def started(engine: FakeEngine, name: str = "vllm-1", *, ours: bool = True, minors: str = "128", env: tuple[str, ...] = ()) -> str:  # fmt: skip
    labels = {
        "io.rocmrun.role": "workload", "io.rocmrun.run": "5f3a", "io.rocmrun.profile": "vllm",
        "io.rocmrun.controller": "1:dead", "io.rocmrun.render-minors": minors,
    }  # fmt: skip
    host = {"PidsLimit": 1, "ShmSize": 1, "Ulimits": []}
    request = {
        "Image": IMAGE_ID, "Labels": labels if ours else {}, "HostConfig": host, "Env": list(env),
    }  # fmt: skip
    made = engine.create(request, name, "linux/amd64").container_id
    engine.start(made)
    return made


class Clock:
    """Time that passes only while somebody pauses, and what happens meanwhile."""

    def __init__(self, *, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.time = 100.0
        self._meanwhile = meanwhile

    def now(self) -> float:
        return self.time

    def pause(self, seconds: float) -> None:
        self._meanwhile()
        self.time += seconds


def examined(
    engine: FakeEngine, root: Path, *, clock: Clock | None = None, name: str = "vllm-1", **how: Any
) -> Examined:
    clock = clock or Clock()
    watch = Watch(pause=clock.pause, now=clock.now, **how)
    return examine_container(engine, name, watch=watch, host_root=root, machine_root=root)


def results(found: Examined) -> dict[str, str]:
    return {check.id: check.result for check in found.diagnosis.checks}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A host with one GPU that works."""
    build_host(tmp_path, [FakeGpu(minor=128)], holders={PID: [0]})
    write_sensors(tmp_path, "0000:05:00.0")
    return tmp_path


def runs_on(root: Path, container: str, *, ticks: int = 0, opens: dict[int, str] | None = None, **files: str) -> None:  # fmt: skip
    nodes = {5: "/dev/kfd", 6: "/dev/dri/renderD128"} if opens is None else opens
    write_process(root, PID, container=container, cpu_ticks=ticks, opens=nodes)
    write_group_v2(root, container, pids=[PID], **files)


def test_a_workload_that_works_well(machine: Path) -> None:
    """GPU, nodes, limits and log, from two samples a second apart."""
    engine = an_engine()
    runs_on(machine, started(engine))
    found = examined(engine, machine)

    assert found.seen.seconds == 1.0
    assert len(found.seen.samples) == 2
    assert results(found)["devices"] == "ok"
    assert results(found)["gpu-busy"] == "ok"
    assert results(found)["gpu-sharing"] == "ok"
    assert not found.diagnosis.blocked


def test_watching_takes_a_sample_each_interval_and_tells_each(machine: Path) -> None:
    """And judges what changed: here the quota throttles, and the GPU idles beside it."""
    engine = an_engine()
    container = started(engine)
    runs_on(machine, container, cpu_max="10000 100000")
    write_sensors(machine, "0000:05:00.0", gpu_busy_percent="0")
    told: list[Observation] = []
    steps = iter(range(1, 100))

    def meanwhile() -> None:
        step = next(steps)
        stat = f"usage_usec {step * 100000}\nnr_periods {10 * step}\nnr_throttled {9 * step}\nthrottled_usec 1"
        runs_on(machine, container, ticks=step * TICKS // 10, cpu_max="10000 100000", cpu_stat=stat)

    found = examined(engine, machine, clock=Clock(meanwhile=meanwhile), seconds=5.0, interval=0.5, on_sample=told.append)  # fmt: skip

    assert [len(each.samples) for each in told] == list(range(1, 12))
    assert found.seen.seconds == 5.0
    bottleneck = next(check for check in found.diagnosis.checks if check.id == "bottleneck")
    assert "(0 % in 11 samples) while the CPU quota stops the container in 90 %" in bottleneck.evidence  # fmt: skip
    assert live_line(told[-1], 5) == "5 of 5 s, GPU 0 0 %, 0.2 CPUs, 1 GiB of memory, Ctrl-C ends it"  # fmt: skip


def test_ctrl_c_ends_the_watching_with_what_was_seen(machine: Path) -> None:
    """It is judged like any other."""
    engine = an_engine()
    runs_on(machine, started(engine))
    pauses = iter([None, None, KeyboardInterrupt])

    def meanwhile() -> None:
        if problem := next(pauses):
            raise problem

    found = examined(engine, machine, clock=Clock(meanwhile=meanwhile), seconds=60.0)

    assert (found.seen.interrupted, len(found.seen.samples)) == (True, 3)
    assert results(found)["gpu-busy"] == "ok"
    assert examined_as_json(found)["looked"] == {"samples": 3, "kept": 3, "seconds": 2.0, "interrupted": True, "problem": None}  # fmt: skip


def test_one_that_ends_while_it_is_watched(machine: Path) -> None:
    """What was seen until then is judged beside how it ended."""
    engine = an_engine()
    container = started(engine)
    runs_on(machine, container)
    steps = iter(range(100))

    def meanwhile() -> None:
        if next(steps) == 2:
            (machine / f"proc/{PID}/stat").unlink()
            engine.containers_by_id[container].record["State"] = EXITED

    found = examined(engine, machine, clock=Clock(meanwhile=meanwhile), seconds=60.0)
    assert (len(found.seen.samples), found.diagnosis.checks[0].kind) == (3, "oom-cgroup-137")
    assert results(found)["gpu-busy"] == "ok"


def test_one_that_is_removed_while_it_is_watched(machine: Path) -> None:
    """Nobody can ask it for its code any more."""
    engine = an_engine()
    container = started(engine)
    runs_on(machine, container)

    def meanwhile() -> None:
        (machine / f"proc/{PID}/stat").unlink(missing_ok=True)
        engine.remove(container)

    found = examined(engine, machine, clock=Clock(meanwhile=meanwhile), seconds=60.0)
    assert found.diagnosis.checks[0].evidence == "removed, with its exit code and its log"
    assert found.diagnosis.checks[0].result == "warn"


def test_work_on_the_cpu(machine: Path) -> None:
    """The GPU was given, and nobody holds it while a CPU is busy."""
    engine = an_engine()
    container = started(engine)
    runs_on(machine, container, opens={})

    def meanwhile() -> None:
        runs_on(machine, container, ticks=TICKS, opens={}, cpu_stat="usage_usec 1000000")

    found = examined(engine, machine, clock=Clock(meanwhile=meanwhile))

    devices = next(check for check in found.diagnosis.checks if check.id == "devices")
    assert (devices.result, devices.kind) == ("warn", "cpu-fallback")


def test_whoever_else_is_on_the_gpu_is_named(machine: Path) -> None:
    """With the container that it is in, where it is in one."""
    engine = an_engine()
    runs_on(machine, started(engine))
    other = started(engine, "llama", ours=False)
    write_process(machine, 900, container=other)
    for pid in (900, 901):
        write(machine / f"sys/class/kfd/kfd/proc/{pid}/vram_{kfd_gpu_id(0)}", "4096\n")

    sharing = next(c for c in examined(engine, machine).diagnosis.checks if c.id == "gpu-sharing")
    assert sharing.evidence == "GPU 0: process 900 in container llama, process 901 use it as well"


def test_what_it_printed_goes_through_the_rules_and_the_marks(machine: Path) -> None:
    """Findings as for --log, and what operators tell of speed."""
    said = b"MIOpen(HIP): Warning [SQLiteBase] Missing system database file: gfx1030_40.kdb\ntorch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB\n"
    engine = an_engine(said=said)
    runs_on(machine, started(engine, env=("TORCH_LOGS=recompiles",)))
    found = examined(engine, machine)

    assert "oom-vram" in {finding.kind.slug for finding in found.diagnosis.findings}
    told = [check.evidence for check in found.diagnosis.checks if check.id == "operator-logs"]
    assert any("no compiled kernels" in each for each in told)
    assert any("TORCH_LOGS=recompiles" in each for each in told)


@pytest.mark.parametrize(
    ("options", "evidence"),
    [
        ({"log": "none"}, "none is turned on; its log cannot be read: what it prints goes to whoever started it, and is kept nowhere"),
        ({"failures": {"logs follow=False workload": EngineFailed("cannot read the log: this driver keeps none")}}, "none is turned on; its log cannot be read: cannot read the log: this driver keeps none"),
    ],
)  # fmt: skip
def test_a_log_that_cannot_be_read_is_unknown(
    machine: Path, options: dict[str, Any], evidence: str
) -> None:
    """The rest is judged all the same."""
    engine = an_engine(**options)
    runs_on(machine, started(engine))
    found = examined(engine, machine)

    (logs,) = [check for check in found.diagnosis.checks if check.id == "operator-logs"]
    assert (logs.result, logs.evidence) == ("unknown", evidence)
    assert results(found)["gpu-busy"] == "ok"


def test_one_that_has_ended(machine: Path) -> None:
    """Its state and its log are what is left."""
    engine = an_engine(state=EXITED)
    started(engine)
    found = examined(engine, machine)

    assert list(results(found)) == ["state", "operator-logs"]
    assert found.diagnosis.blocked
    assert examined_as_json(found)["container"]["exit_code"] == 137


def test_an_engine_on_another_machine_is_not_believed(machine: Path) -> None:
    """A process of that number is here, and is another."""
    engine = an_engine()
    started(engine)
    write_process(machine, PID, container="cd" * 32)
    found = examined(engine, machine)

    assert results(found)["devices"] == "unknown"
    assert "the engine runs elsewhere" in found.seen.problem


def test_it_is_found_by_name_id_profile_and_run() -> None:
    """A container's own name comes before a profile's."""
    engine = an_engine()
    ours = started(engine)
    foreign = started(engine, "llama", ours=False)

    for name in ("vllm-1", ours, "vllm", "5f3a"):
        assert find_container(engine, name) == (ours, True)
    assert find_container(engine, "llama") == (foreign, False)
    with pytest.raises(WorkloadAmbiguous):
        find_container(engine, ours[:12])


def test_the_start_of_an_id_that_is_one_containers_is_enough() -> None:
    """As `docker ps` shows it."""
    summary = {"Id": "beef" * 16, "Names": ["/llama"], "Labels": {}, "State": "running", "ImageID": "sha256:5"}  # fmt: skip
    engine = an_engine(others=[summary])

    assert find_container(engine, "beefbeefbeef") == ("beef" * 16, False)


def test_a_name_that_is_near_is_named() -> None:
    """Of containers, and of profiles."""
    engine = an_engine()
    started(engine)

    with pytest.raises(WorkloadNotFound) as missing:
        find_container(engine, "vlm-1")
    assert missing.value.details == ("there is vllm-1", "there is vllm")
    assert "rocmrun ps --all" in (missing.value.hint or "")


def test_several_workloads_of_a_profile_are_not_guessed_at() -> None:
    """They are listed, as for the other commands."""
    engine = an_engine()
    started(engine)
    started(engine, "vllm-2")

    with pytest.raises(WorkloadAmbiguous):
        find_container(engine, "vllm")


def test_what_is_printed(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Measured values, processes, checks; the same as JSON."""
    from rocmrun.console.output import out

    engine = an_engine()
    runs_on(machine, started(engine))
    found = examined(engine, machine)
    print_examined(out(), found)
    text, value = capsys.readouterr().out, examined_as_json(found)

    assert text.startswith("container vllm-1 (profile vllm): 2 samples in 1.0 s\n")
    assert "GPU 0 busy (%)" in text
    assert "700 python3" in text
    assert "/dev/dri/renderD128, /dev/kfd" in text
    assert value["ok"] is True
    assert value["container"]["profile"] == "vllm"
    assert value["gpus"][0]["pci_address"] == "0000:05:00.0"
    assert {row["what"] for row in value["measured"]} >= {"busy", "clock", "memory"}
    assert value["processes"][0]["nodes"] == ["/dev/dri/renderD128", "/dev/kfd"]


def test_the_number_of_a_container_that_has_ended_is_anothers(machine: Path) -> None:
    """Its group is empty then: whoever has its number now is not looked at."""
    engine = an_engine()
    container = started(engine)
    runs_on(machine, container)

    def meanwhile() -> None:
        write_process(machine, PID, container="cd34" * 16, name="sshd")
        write_group_v2(machine, container)

    found = examined(engine, machine, clock=Clock(meanwhile=meanwhile))

    assert [len(sample.processes) for sample in found.seen.samples] == [1]
    assert not [rate for rate in found.seen.rates if rate.process.name == "sshd"]


def test_a_container_that_is_started_again_meanwhile_is_no_healthy_one(machine: Path) -> None:
    """Each sample finds processes; the engine's record tells at the end what happened between them."""
    engine = an_engine()
    container = started(engine)
    runs_on(machine, container)

    def meanwhile() -> None:
        engine.containers_by_id[container].record["RestartCount"] = 3

    found = examined(engine, machine, clock=Clock(meanwhile=meanwhile))

    state = next(check for check in found.diagnosis.checks if check.id == "state")
    assert (state.result, state.evidence) == ("warn", "running, started again 3 times")
