"""Several devices together: what each collective must give, who is blamed, and how the ranks reach each other."""

import importlib.util
import json
import os
from types import SimpleNamespace
from typing import Any

import pytest

from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.probe.parts.checks import Reporter
from rocmrun.probe.parts.collective_operations import (
    COLLECTIVES,
    Collective,
    bandwidth,
    collective_names,
    message_elements,
)
from rocmrun.probe.parts.collectives import run_collective
from rocmrun.probe.parts.peer_copies import check_peer_copies, known_hang, reason_not_to_copy
from rocmrun.probe.parts.processes import Outcome
from rocmrun.probe.parts.together import (
    EXPECTED_BUS_BANDWIDTH,
    Judge,
    judge_bus_bandwidth,
    transport_check,
)
from rocmrun.probe.parts.transports import TransportLog
from tests.unit.probe import nccl_lines
from tests.unit.probe.runs import STUB, TIMEOUTS, run_probe

ALL = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]
MIB = 1 << 20


def together(level: str = "standard", devices: int = 2, **scene: Any) -> ProbeReport:
    """Probe healthy devices with one fault among their ranks."""
    return run_probe(
        {"build": "cuda", "devices": devices, **scene}, accelerator="cuda", level=level
    )


def collective(report: ProbeReport, name: str) -> ProbeCheck:
    check = report.find("collectives", name)
    assert check is not None, [c.label for c in report.checks]
    return check


def statuses(report: ProbeReport) -> dict[str, str]:
    return {check.name: check.status for check in report.checks if check.group == "collectives"}


@pytest.fixture(scope="module")
def healthy() -> ProbeReport:
    """Three devices: shares are no halves, and the last rank is not the second."""
    return together(devices=3, says=nccl_lines.RCCL_PEER_ACCESS)


def test_all_five_give_the_right_values(healthy: ProbeReport) -> None:
    """And nothing else is tried below full."""
    assert statuses(healthy) == {**dict.fromkeys(ALL, "pass"), "transport": "pass"}
    for name in ALL:
        ranks = collective(healthy, name).evidence["ranks"]
        assert [(rank["rank"], rank["wrong"]) for rank in ranks] == [(0, 0), (1, 0), (2, 0)]


def test_the_bandwidth_says_by_whose_definition(healthy: ProbeReport) -> None:
    evidence = collective(healthy, "all_to_all").evidence
    (row,) = evidence["sizes"]

    assert row["bytes"] == 252  # the largest multiple of three values in 256 bytes
    assert row["seconds"] > 0
    assert "rccl-tests" in evidence["bandwidth_source"]


def test_the_transport_of_each_rank_is_kept(healthy: ProbeReport) -> None:
    for rank in collective(healthy, "transport").evidence["ranks"]:
        assert rank["channels"] == {"P2P/IPC": 2}
        assert rank["lines"] == ["0 -> 1 via P2P/IPC"]


def test_a_wrong_value_is_found_in_each_collective() -> None:
    """One in each, made by the last rank; it keeps the ranks in step, so the next one runs."""
    report = together(fault="wrong_sum", during="each")

    wrong = {
        name: [rank["wrong"] for rank in collective(report, name).evidence["ranks"]] for name in ALL
    }
    assert wrong == {
        "all_reduce": [1, 1],
        "all_gather": [1, 1],
        "reduce_scatter": [1, 0],
        "broadcast": [1, 1],
        "all_to_all": [1, 0],
    }
    assert collective(report, "all_gather").reason == "rank 0: 1 of 64 values are wrong on rank 0"
    assert {statuses(report)[name] for name in ALL} == {"fail"}


def test_a_rank_that_dies_half_way_leaves_what_was_proved() -> None:
    report = together(fault="rank_dies", device=1, during="reduce_scatter")

    check = collective(report, "reduce_scatter")
    assert check.reason == "rank 1: the process was killed by SIGKILL (in reduce_scatter)"
    assert "NCCL WARN the last words of this rank" in check.evidence["ranks"][1]["last_lines"]
    assert check.evidence["ranks"][1]["warnings"] == ["the last words of this rank"]
    assert check.seconds < TIMEOUTS["collectives"]
    seen = statuses(report)
    assert [seen[name] for name in ALL] == ["pass", "pass", "fail", "skipped", "skipped"]
    assert collective(report, "all_to_all").reason == "the ranks did not come out of reduce_scatter"


def test_a_rank_that_raises_frees_the_others() -> None:
    """Even in the last collective, where it has nothing more to tell."""
    report = together(
        fault="rank_raises", device=0, during="all_to_all", message="NCCL error: invalid usage"
    )

    check = collective(report, "all_to_all")
    assert check.reason == "rank 0: RuntimeError: NCCL error: invalid usage"
    assert check.seconds < TIMEOUTS["collectives"]


def outcome(name: str, ended: str = "done", reason: str = "", *done: str) -> Outcome:
    """Return how a rank ended in *name*, after it had passed those that are *done*."""
    made = Outcome()
    made.ended, made.reason = ended, reason
    made.doing = None if ended == "done" else ("collectives", name)
    for passed in (*done, *([name] if ended == "done" else [])):
        check = {"name": passed, "status": "pass", "seconds": 0.1, "evidence": {"in_step": True}}
        made.checks.append(check)
    return made


def judged(name: str, *outcomes: Outcome, lines: tuple[str, ...] = ()) -> dict[str, Any]:
    logs = [TransportLog() for _ in outcomes]
    for line in lines:
        logs[-1].take(line)
    return Judge(list(outcomes), logs, "nccl").collective(name)


def test_ranks_that_never_come_back_are_all_named() -> None:
    """Who hangs and who waits look the same from outside."""
    late = outcome("broadcast", "timeout", "not finished after 3 s", "all_gather")

    assert judged("all_gather", late, late)["status"] == "pass"
    assert judged("broadcast", late, late)["reason"] == (
        "ranks 0, 1: not finished after 3 s (in broadcast)"
    )


def test_a_rank_that_lags_behind_is_the_one_that_hangs() -> None:
    """The other finished this one and waits in the next."""
    late = outcome("broadcast", "timeout", "not finished after 3 s")
    waits = outcome("all_to_all", "timeout", "not finished after 3 s", "broadcast")

    assert judged("broadcast", waits, late)["reason"].startswith("rank 1: not finished")


def test_those_that_waited_are_not_to_blame() -> None:
    waited = outcome("all_reduce", "stopped", "waited for another rank that had failed")
    died = outcome("all_reduce", "died", "the process was killed by SIGKILL")

    check = judged("all_reduce", waited, died)
    assert check["reason"] == "rank 1: the process was killed by SIGKILL (in all_reduce)"
    assert check["evidence"]["ranks"][0]["reason"].startswith("waited for another rank")


def test_a_rank_that_does_not_end_is_a_failure() -> None:
    """Everything was right, and then the process group could not be closed."""
    stuck = outcome("destroy_process_group", "died", "the process was killed by SIGABRT", *ALL)
    judge = Judge([outcome("all_to_all"), stuck], [TransportLog(), TransportLog()], "nccl")

    assert judge.collective("all_to_all")["status"] == "pass"
    assert judge.teardown()["reason"] == (
        "rank 1: the process was killed by SIGABRT (in destroy_process_group)"
    )


def test_a_shared_memory_that_is_too_small_is_the_reason() -> None:
    """torch says "unhandled system error"; the library's own lines say what was too small."""
    error = outcome("all_reduce", "died", "NCCL error: unhandled system error")
    check = judged("all_reduce", error, error, lines=nccl_lines.SHARED_MEMORY_IS_FULL)

    assert check["reason"].startswith("rank 0: /dev/shm holds ")
    assert "MiB, too little for the ranks' shared memory" in check["reason"]
    assert check["reason"].endswith("unhandled system error (in all_reduce)")


def test_a_bus_error_is_a_shared_memory_that_is_full() -> None:
    killed = outcome("all_reduce", "died", "the process was killed by SIGBUS")

    assert "too little for the ranks' shared memory" in judged("all_reduce", killed)["reason"]


def test_last_lines_of_very_many_ranks_fit_into_one_report_line() -> None:
    """A report line may be 1 MiB long."""
    ranks = []
    for _ in range(64):
        died = outcome("all_reduce", "died", "the process was killed by SIGKILL")
        died.evidence["last_lines"] = ["\x1b" * 400] * 40
        ranks.append(died)

    assert len(json.dumps(judged("all_reduce", *ranks))) < 1 << 20


def test_sockets_between_gpus_of_one_machine_are_degraded() -> None:
    logs = [TransportLog(), TransportLog()]
    for line in nccl_lines.OLD_SOCKETS:
        logs[1].take(line)

    check = transport_check(logs)
    assert check["status"] == "degraded"
    assert check["reason"].startswith("rank 1: over sockets, since neither peer access")
    assert check["evidence"]["version"] == "NCCL version 2.7.8+cuda10.1"
    assert transport_check([TransportLog()])["status"] == "skipped"


def raising(message: str) -> Collective:
    def make(*_: Any) -> Any:
        raise RuntimeError(message)

    return Collective("reduce_scatter", "here", make, lambda _: 1.0)


def test_what_gloo_has_not_is_skipped_with_its_words() -> None:
    """NCCL has all of them: there the same words are an error, as are others of gloo's."""
    check = Reporter(os.open(os.devnull, os.O_WRONLY)).check("collectives", "reduce_scatter")
    distributed, words = SimpleNamespace(here=None), "ProcessGroupGloo does not support it"
    job = {"accelerator": "cpu", "elements": [8], "rank": 0, "world": 2, "backend": "gloo"}

    assert run_collective(check, None, distributed, job, raising(words)) == ""
    assert (check.status, check.reason) == ("skipped", f"gloo in this torch: {words}")
    with pytest.raises(RuntimeError):
        run_collective(check, None, distributed, {**job, "backend": "nccl"}, raising(words))
    with pytest.raises(RuntimeError):
        run_collective(check, None, distributed, job, raising("Connection closed by peer"))


def test_what_an_old_torch_has_not_is_skipped() -> None:
    check = Reporter(os.open(os.devnull, os.O_WRONLY)).check("collectives", "reduce_scatter")
    run_collective(check, None, SimpleNamespace(), {}, raising(""))

    assert check.reason == "this torch has no torch.distributed.here"


def test_quick_is_one_all_reduce() -> None:
    assert collective_names("quick") == ["all_reduce"]
    assert collective_names("full") == ALL


def test_bus_bandwidth_is_that_of_rccl_tests() -> None:
    """Rows of a recorded all_reduce_perf on eight MI300X, and the other factors of PERFORMANCE.md."""
    for size, seconds, algbw, busbw in (
        (4194304, 52.96e-6, 79.20, 138.60),
        (268435456, 1540.4e-6, 174.26, 304.96),
    ):
        row = bandwidth("all_reduce", 8, size, seconds)
        assert row["algbw_gb_per_s"] == pytest.approx(algbw, rel=1e-3)
        assert row["busbw_gb_per_s"] == pytest.approx(busbw, rel=1e-3)
    factors = {known.name: known.factor(4) for known in COLLECTIVES}
    assert factors == {
        "all_reduce": 1.5,
        "all_gather": 0.75,
        "reduce_scatter": 0.75,
        "broadcast": 1.0,
        "all_to_all": 0.75,
    }


@pytest.mark.parametrize("world", [2, 3, 6, 8, 64])
@pytest.mark.parametrize("level", ["quick", "standard", "full"])
def test_every_message_can_be_shared_out(world: int, level: str) -> None:
    sizes = message_elements("rocm", level, world, None)

    assert all(size % world == 0 and size > 0 for size in sizes)
    assert sorted(set(sizes)) == sizes


def measured(busbw: float, size: int = 256 * MIB) -> dict[str, Any]:
    row = {"bytes": size, "busbw_gb_per_s": busbw}
    return {"status": "pass", "evidence": {"sizes": [row]}}


def job(partition: int | None = None) -> dict[str, Any]:
    return {"expect": {"gpus": [{"partition": partition}] * 8}}


def test_a_slow_bus_is_degraded_where_its_speed_is_known() -> None:
    check = measured(150.0)
    judge_bus_bandwidth(check, job(), ["AMD Instinct MI300X"] * 8)

    assert check["status"] == "degraded"
    assert check["reason"] == (
        "the bus bandwidth of 256 MiB is 150 GB/s, eight MI300X have at least 200"
    )
    assert "gpu-operator" in check["threshold_source"]


@pytest.mark.parametrize(
    ("check", "told", "boards"),
    [
        (measured(304.96), job(), ["AMD Instinct MI300X"] * 8),
        (measured(1.0, 64 * MIB), job(), ["AMD Instinct MI300X"] * 8),
        (measured(1.0), job(partition=0), ["AMD Instinct MI300X"] * 8),
        (measured(1.0), job(), ["AMD Instinct MI308X"] * 8),
        (measured(1.0), job(), ["AMD Instinct MI300X"] * 4),
        (measured(1.0), {"expect": {}}, ["AMD Instinct MI300X"] * 8),
    ],
    ids=["fast", "small message", "partitions", "another model", "four", "no plan"],
)
def test_a_bus_is_not_judged_without_a_figure_for_it(
    check: dict[str, Any], told: dict[str, Any], boards: list[str]
) -> None:
    judge_bus_bandwidth(check, told, boards)

    assert check["status"] == "pass"


def test_figures_are_those_of_their_source() -> None:
    assert EXPECTED_BUS_BANDWIDTH == {"MI300X": 200.0, "MI210": 50.0, "MI100": 35.0}


def stub_torch(devices: int) -> Any:
    """Return the stub's tensors with so many devices, all in this process."""
    spec = importlib.util.spec_from_file_location("stub_of_torch", STUB / "torch" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    stub = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stub)
    cuda = SimpleNamespace(
        device_count=lambda: devices,
        synchronize=lambda _: None,
        can_device_access_peer=lambda source, target: (source, target) != (0, 2),
    )
    return SimpleNamespace(arange=stub.arange, int32=stub.int32, cuda=cuda)


def test_all_pairs_are_copied_between() -> None:
    """A matrix, a row for each source; whether the driver grants direct access is told beside it."""
    check = Reporter(os.open(os.devnull, os.O_WRONLY)).check("collectives", "peer_copies")
    check_peer_copies(check, stub_torch(3), 256)

    for source in range(3):
        row = check.evidence["gb_per_s"][source]
        assert [speed is None for speed in row] == [target == source for target in range(3)]
    assert check.evidence["direct_access"] == [[None, 1, 0], [1, None, 1], [1, 1, None]]


def test_a_copy_that_changes_names_its_pair() -> None:
    """At full, after the collectives, in a process that sees all GPUs."""
    check = collective(together("full", fault="peer"), "peer_copies")

    assert check.status == "fail"
    assert check.reason.startswith("values changed on the way between GPUs: 1 of ")
    assert "from 0 to 1; 1 of " in check.reason


def test_a_board_that_hung_hosts_is_known_by_name() -> None:
    seen = [{"name": "AMD Radeon AI PRO R9700", "pci_address": None}] * 2

    assert known_hang(seen).startswith("2 Radeon AI PRO R9700: direct copies")
    assert "rocm-systems/issues/11348" in known_hang(seen)
    assert known_hang(seen[:1]) == ""
    assert known_hang([{"name": "AMD Instinct MI300X"}] * 8) == ""


def test_a_board_that_hung_hosts_is_left_alone_when_peer_access_is_off() -> None:
    """Who sets that variable there has a reason; elsewhere copies by another way are worth a look."""
    off = {"NCCL_P2P_DISABLE": "1"}

    assert reason_not_to_copy("2 of those", off) == "NCCL_P2P_DISABLE=1 is set: 2 of those"
    assert reason_not_to_copy("", off) == ""
