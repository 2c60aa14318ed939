"""Several devices together: what each collective must give, who is blamed, and how the ranks reach each other."""

from typing import Any

import pytest

from rocmrun.core.report import ProbeCheck, ProbeReport
from rocmrun.probe.parts.collective_operations import (
    COLLECTIVES,
    bandwidth,
    collective_names,
    message_elements,
)
from rocmrun.probe.parts.peer_copies import known_hang
from rocmrun.probe.parts.together import EXPECTED_BUS_BANDWIDTH, judge_bus_bandwidth
from tests.unit.probe import nccl_lines
from tests.unit.probe.runs import TIMEOUTS, run_probe

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


def test_ranks_that_never_come_back_are_all_named() -> None:
    """Who hangs and who waits look the same from outside."""
    report = run_probe(
        {"build": "cuda", "devices": 2, "fault": "rank_hangs", "device": 1, "during": "broadcast"},
        accelerator="cuda",
        level="standard",
        timeouts={**TIMEOUTS, "collectives": 3},
    )

    assert collective(report, "all_gather").status == "pass"
    assert (
        collective(report, "broadcast").reason
        == "ranks 0, 1: not finished after 3 s (in broadcast)"
    )


def test_a_rank_that_does_not_end_is_a_failure() -> None:
    report = together(fault="rank_dies", device=1, during="destroy_process_group")

    assert {statuses(report)[name] for name in ALL} == {"pass"}
    check = collective(report, "destroy_process_group")
    assert check.reason == "rank 1: the process was killed by SIGKILL (in destroy_process_group)"


def test_a_shared_memory_that_is_too_small_is_the_reason() -> None:
    """torch says "unhandled system error"; the library's own lines say what was too small."""
    report = together(
        "quick",
        fault="rank_raises",
        device=1,
        message="NCCL error in: ProcessGroupNCCL.cpp:1, unhandled system error",
        says=nccl_lines.SHARED_MEMORY_IS_FULL,
    )

    check = collective(report, "all_reduce")
    assert check.reason.startswith("rank 1: /dev/shm holds ")
    assert "MiB, too little for the ranks' shared memory" in check.reason
    assert "unhandled system error" in check.reason


def test_a_bus_error_is_a_shared_memory_that_is_full() -> None:
    report = together("quick", fault="rank_dies", device=1, signal="SIGBUS")

    assert "too little for the ranks' shared memory" in collective(report, "all_reduce").reason


def test_sockets_between_gpus_of_one_machine_are_degraded() -> None:
    report = together("quick", says=nccl_lines.OLD_SOCKETS)

    check = collective(report, "transport")
    assert (check.status, report.status) == ("degraded", "degraded")
    assert check.reason.startswith("ranks 0, 1 talk over sockets")
    assert check.evidence["version"] == "NCCL version 2.7.8+cuda10.1"


def test_what_gloo_has_not_is_skipped_with_its_words() -> None:
    report = run_probe(
        {"build": "cpu", "lacks": "reduce_scatter"}, accelerator="cpu", level="standard"
    )

    check = collective(report, "reduce_scatter")
    assert (check.status, check.reason) == (
        "skipped",
        "gloo in this torch: ProcessGroupGloo does not support reduce_scatter",
    )
    assert collective(report, "all_to_all").status == "pass"
    assert report.find("collectives", "transport") is None


def test_what_nccl_has_not_is_no_excuse() -> None:
    report = together(lacks="broadcast")

    assert collective(report, "broadcast").status == "fail"


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


def test_full_copies_between_all_pairs() -> None:
    report = together("full", devices=3)

    check = collective(report, "peer_copies")
    assert check.status == "pass"
    for source in range(3):
        row = check.evidence["gb_per_s"][source]
        assert [speed is None for speed in row] == [target == source for target in range(3)]
    assert check.evidence["direct_access"][0] == [None, 1, 1]


def test_a_copy_that_changes_names_its_pair() -> None:
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
