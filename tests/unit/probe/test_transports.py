"""What is read out of NCCL's and RCCL's own lines."""

import json
from pathlib import Path

import pytest

from rocmrun.probe.parts.transports import (
    KEPT_TRANSPORT_LINES,
    KEPT_WARNINGS,
    TransportLog,
    shared_memory_reason,
)
from tests.unit.probe import nccl_lines

RECORDED = Path(__file__).parents[4] / "shared/fixtures/rccl"


def read(lines: tuple[str, ...] | list[str]) -> TransportLog:
    log = TransportLog()
    for line in lines:
        log.take(line)
    return log


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        (nccl_lines.RCCL_PEER_ACCESS, {"P2P/IPC": 2}),
        (nccl_lines.SHARED_MEMORY, {"SHM/direct": 1, "P2P/CUMEM": 1}),
        (nccl_lines.OLD_SOCKETS, {"NET/Socket": 2, "SHM/direct": 1, "P2P/IPC": 1}),
        (nccl_lines.PLUGIN, {"NET/AWS Libfabric": 1}),
        (nccl_lines.RCCL_INIT, {}),
    ],
)
def test_each_channel_is_counted_by_its_transport(
    lines: tuple[str, ...], kinds: dict[str, int]
) -> None:
    """Both libraries, versions from 2.7 to 2.30, with and without the communicator behind."""
    assert read(lines).kinds == kinds


def test_version_network_and_warnings_are_kept() -> None:
    log = read(nccl_lines.RCCL_INIT)

    assert log.version == "RCCL version : 2.30.4-HEAD"
    assert log.network == "[0]enp3s0:192.0.2.2<0>"
    assert log.warnings == [
        'Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!'
    ]
    assert read(nccl_lines.OLD_SOCKETS).version == "NCCL version 2.7.8+cuda10.1"


def test_what_is_kept_is_bounded() -> None:
    """However many channels and warnings there are, all are counted and a few are shown."""
    log = read(
        [f"h:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> {peer}[1] via P2P/IPC" for peer in range(99)]
        + [f"h:1:1 [0] a.cc:1 NCCL WARN number {number}" for number in range(99)]
    )

    assert (log.kinds, len(log.lines), len(log.warnings)) == (
        {"P2P/IPC": 99},
        KEPT_TRANSPORT_LINES,
        KEPT_WARNINGS,
    )


@pytest.mark.parametrize("line", nccl_lines.SHARED_MEMORY_IS_FULL)
def test_a_full_shared_memory_is_recognised(line: str) -> None:
    """The error that torch raises says only "unhandled system error"; the lines say which."""
    assert shared_memory_reason(["unhandled system error", line]).startswith("/dev/shm ")
    assert "shm_size" in shared_memory_reason([line])


def test_other_errors_are_not_blamed_on_shared_memory() -> None:
    assert shared_memory_reason(["NCCL error: unhandled cuda error", "timed out"]) == ""


@pytest.mark.skipif(
    not RECORDED.is_dir(), reason="the collection of published outputs is not beside the project"
)
def test_recorded_logs_are_read() -> None:
    """Whole logs of real machines, one with two Ray prefixes on every line."""
    expected = json.loads((RECORDED / "expected.json").read_text())
    for name in ("log-4x-vega20-xgmi-rccl2.30.4-init.txt", "log-ray-prefixed-rccl2.26.6.txt"):
        log = read((RECORDED / name).read_text().splitlines())
        assert log.version.startswith(f"RCCL version : {expected[name]['rccl']}")
        assert log.network != ""
        assert log.kinds == {}
        assert len(log.warnings) >= 1
