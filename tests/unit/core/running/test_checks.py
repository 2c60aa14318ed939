"""The state of a container, the devices that it holds, and what holds its GPUs up."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.running.checks import CONTAINER_CHECKS, container_checks
from rocmrun.core.running.observation import Observation
from tests.unit.core.running.observations import (
    check,
    process,
    record,
    seen,
    sensors,
    use,
    with_sensors,
)

IDLE = sensors(busy_percent=0)
NOTHING = frozenset[str]()


def stopped(**changes: Any) -> Observation:
    whole = seen()
    return replace(whole, samples=(), record=record(**({"pid": 0} | changes)))


@pytest.mark.parametrize(
    ("changes", "result", "evidence", "kind"),
    [
        ({"state": "running", "health": "healthy"}, "ok", "running, healthy", ""),
        ({"state": "running", "restarts": 3}, "warn", "running, started again 3 times", ""),
        ({"state": "paused"}, "warn", "paused", ""),
        ({"state": "running", "health": "unhealthy", "health_output": "refused"}, "blocker", "running, unhealthy: refused", ""),
        ({"state": "running", "health": "unhealthy"}, "blocker", "running, unhealthy", ""),
        ({"state": "created"}, "blocker", "it was created and never started", ""),
        ({"state": "created", "error": "no such device"}, "blocker", "no such device", ""),
        ({"state": "exited", "exit_code": 0}, "warn", "exited, exit code 0", ""),
        ({"state": "removed", "exit_code": None}, "warn", "removed, with its exit code and its log", ""),
        ({"state": "exited", "exit_code": 1}, "blocker", "exited, exit code 1", ""),
        ({"state": "exited", "exit_code": 139}, "blocker", "exited, exit code 139; SIGSEGV: it crashed", ""),
        ({"state": "exited", "exit_code": 137}, "blocker", "exited, exit code 137; SIGKILL: from outside, or by the kernel for want of memory", "oom-cgroup-137"),
        ({"state": "exited", "exit_code": 137, "oom_killed": True}, "blocker", "exited, exit code 137; the kernel killed it at its limit of memory", "oom-cgroup-137"),
        ({"state": "restarting", "exit_code": 127, "restarts": 2, "error": "gone"}, "blocker", "restarting, exit code 127, started again 2 times; its command was not found; gone", ""),
    ],
)  # fmt: skip
def test_how_it_is(changes: dict[str, Any], result: str, evidence: str, kind: str) -> None:
    """One sentence of the engine's record, with what codes mean."""
    found = check(stopped(**changes), "state")

    assert (found.result, found.evidence, found.kind) == (result, evidence, kind)
    assert bool(found.hint) == (result != "ok" and changes["state"] != "removed")


def test_one_that_does_not_run_has_nothing_else_to_look_at() -> None:
    """No check is made up."""
    assert [each.id for each in container_checks(stopped(state="exited", exit_code=0))] == ["state"]


def test_one_that_cannot_be_looked_into_says_why() -> None:
    """An engine on another machine."""
    found = check(replace(stopped(), problem="the engine runs elsewhere"), "devices")

    assert (found.result, found.evidence) == ("unknown", "the engine runs elsewhere")


def test_every_check_is_listed() -> None:
    """In order; the page on the doctor has them."""
    found = [each.id for each in container_checks(seen())]

    assert [each for each in CONTAINER_CHECKS if each in found] == found


def test_a_container_without_gpus() -> None:
    """Nothing is missing; what was given and is not on this host is said."""
    none = replace(seen(gpus=0), record=record(minors=frozenset()))
    gone = replace(seen(gpus=0), record=record(minors=frozenset({131, 130})))
    every = replace(seen(gpus=0), record=record(minors=frozenset(), every_gpu=True))

    assert check(none, "devices").evidence == "it was given no GPU"
    assert check(gone, "devices").result == "unknown"
    assert check(gone, "devices").evidence.startswith("it was given renderD130, renderD131, which")
    assert check(every, "devices").evidence.startswith("it was given every GPU, which")
    assert "bottleneck" not in {each.id for each in container_checks(none)}


def held(*sets: frozenset[str] | None, cpus: float = 0.0, **changes: Any) -> Observation:
    """Return an observation whose processes hold these nodes."""
    late = [process(700 + place, nodes=nodes) for place, nodes in enumerate(sets)]
    uses = (use(), use(cpu_seconds=10 + 10 * cpus, periods=200))
    return seen(processes=(late, late), uses=uses, **changes)


def test_the_nodes_that_its_processes_hold() -> None:
    """By path and number of processes."""
    found = check(held(NOTHING, frozenset({"/dev/kfd", "/dev/dri/renderD128"})), "devices")

    assert (found.result, found.evidence) == ("ok", "1 process with /dev/kfd open; open: renderD128")  # fmt: skip


def test_a_gpu_that_was_given_and_is_not_held() -> None:
    """Two were given, one is in use."""
    found = check(held(frozenset({"/dev/kfd", "/dev/dri/renderD128"}), gpus=2), "devices")

    assert found.result == "warn"
    assert found.evidence == "1 process with /dev/kfd open; open: renderD128; given and not held: renderD129"  # fmt: skip


def test_work_on_the_cpu_is_told_from_work_that_has_not_begun() -> None:
    """No node is held in both; busy CPUs are the difference."""
    falls_back = check(held(NOTHING, cpus=1.0), "devices")
    waits = check(held(NOTHING, cpus=0.05), "devices")
    foreign = check(replace(held(NOTHING), record=record(profile="")), "devices")

    assert (falls_back.result, falls_back.kind) == ("warn", "cpu-fallback")
    assert "while 1.0 CPUs are busy: the work runs on the CPU" in falls_back.evidence
    assert falls_back.hint == "rocmrun probe vllm-serve"
    assert (waits.result, waits.kind) == ("unknown", "")
    assert foreign.hint == ""


def test_work_on_a_machine_that_is_full() -> None:
    """It gets little of a CPU, and had work whenever it was looked at."""
    early = [process(nodes=NOTHING, runnable=True), process(701, nodes=NOTHING)]
    late = [process(nodes=NOTHING, runnable=True), process(701, nodes=NOTHING, runnable=True)]
    full = seen(last=IDLE, processes=(early, late), uses=(use(), use(cpu_seconds=10.5, periods=200)))  # fmt: skip

    assert check(full, "devices").kind == "cpu-fallback"
    assert "while process 700 (python3) has work for a CPU all the time: the work" in check(full, "devices").evidence  # fmt: skip
    assert check(full, "bottleneck").evidence == (
        "the GPU idles (0 % in 2 samples) while process 700 (python3) has work for a CPU all the time, "
        "and gets little of one: other work on this machine takes them"
    )
    assert replace(full, samples=()).wanting is None


def test_descriptors_that_may_not_be_seen() -> None:
    """Root sees them; KFD's list tells everybody of memory and queues."""
    hidden = check(held(None), "devices")
    listed = check(held(None, None, kfd_pids=frozenset({700, 701, 9})), "devices")

    assert (hidden.result, hidden.hint) == ("unknown", "sudo rocmrun doctor --container vllm")
    assert (listed.result, listed.evidence) == ("ok", "KFD lists 2 processes of it with memory or a queue")  # fmt: skip


def test_an_idle_gpu_beside_a_full_cpu() -> None:
    """The process is named."""
    late = [process(cpu_seconds=20.0), process(701, cpu_seconds=10.5, name="worker")]
    early = [process(), process(701, name="worker")]
    found = check(seen(first=IDLE, last=IDLE, processes=(early, late)), "bottleneck")

    assert found.result == "warn"
    assert found.evidence == (
        "the GPU idles (0 % in 2 samples) while one CPU is at 100 % for process 700 (python3): "
        "data that is prepared there, compilation, or work on the CPU"
    )
    assert found.hint == "py-spy dump --pid 700"


def test_an_idle_gpu_beside_many_cpus() -> None:
    """In one process, or in all of them together."""
    one = seen(last=IDLE, processes=([process()], [process(cpu_seconds=50.0)]))
    many = [process(700 + place, cpu_seconds=15.0) for place in range(4)]
    all_together = seen(
        last=IDLE,
        processes=([replace(each, cpu_seconds=10.0) for each in many], many),
        uses=(use(), use(cpu_seconds=30.0, periods=200)),
    )

    assert "process 700 (python3) keeps 4.0 CPUs busy" in check(one, "bottleneck").evidence
    assert check(all_together, "bottleneck").evidence.endswith("while 2.0 CPUs are busy")


def test_an_idle_gpu_under_a_quota() -> None:
    """The quota comes first: a CPU that is full is what it makes of one."""
    uses = (use(cpu_limit=0.1), use(cpu_limit=0.1, periods=200, throttled=63, cpu_seconds=11.0))
    found = check(seen(last=IDLE, uses=uses), "bottleneck")

    assert (found.result, found.kind) == ("warn", "cpu-quota-throttling")
    assert "while the CPU quota stops the container in 63 % of its periods" in found.evidence


def test_where_nothing_works_something_is_waited_for() -> None:
    """A server without requests is well."""
    uses = (use(), use(cpu_seconds=10.5, periods=200))
    found = check(seen(last=IDLE, uses=uses), "bottleneck")

    assert found.result == "ok"
    assert "and so do the CPUs: it waits for requests" in found.evidence


def test_one_gpu_of_several_that_idles() -> None:
    """Work is not spread."""
    found = check(seen(gpus=2, last=[sensors(), IDLE]), "bottleneck")

    assert (found.result, found.evidence) == ("warn", "GPU 1 idles while another is 97 % busy")


def test_gpus_at_work_are_held_up_by_nothing() -> None:
    """And of those whose use cannot be read nothing is said."""
    assert check(seen(), "bottleneck").evidence == "the GPUs are at work"
    unread = container_checks(with_sensors(busy_percent=None))
    assert "bottleneck" not in {each.id for each in unread}


def test_samples_without_time_between_them_have_no_rates() -> None:
    """Ctrl-C may come before the second."""
    one = seen()
    first = replace(one, samples=one.samples[:1])

    assert (first.cpus, first.rates, first.throttled_percent) == (None, (), None)
    assert replace(one, samples=()).seconds == 0
    assert replace(one, samples=()).grown(lambda each: each.cpu_seconds) is None
    assert check(first, "cpu-quota").result == "ok"
