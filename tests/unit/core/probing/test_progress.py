"""How far a probe is, from what it says while it runs."""

from rocmrun.core.probing.progress import ProbeProgress
from rocmrun.core.report.model import CheckStatus, Doing, ProbeCheck


def check(name: str, device: int | str | None, status: CheckStatus = "pass") -> ProbeCheck:
    return ProbeCheck(group="device", name=name, device=device, status=status)


def doing(name: str, device: int | str | None) -> Doing:
    return Doing(group="device", name=name, device=device)


def test_a_row_a_device_says_what_ended_and_what_is_under_way() -> None:
    progress = ProbeProgress()
    progress.add(doing("torch", None), 0.0)
    progress.add(check("torch", None), 2.0)
    for device in (1, 0):
        progress.add(doing("copy", device), 3.0)
        progress.add(check("copy", device, "fail" if device else "pass"), 4.0)
    progress.add(doing("matmul_fp16", 0), 5.0)

    assert progress.rows(8.4) == (
        ("container", "1 pass", ""),
        ("device 0", "1 pass", "matmul_fp16 3 s"),
        ("device 1", "1 fail", ""),
    )
    assert (progress.done, progress.under_way()) == (3, "device 0 matmul_fp16")


def test_many_devices_are_cut_and_those_with_something_wrong_come_first() -> None:
    progress = ProbeProgress()
    for device in range(64):
        progress.add(check("copy", device, "degraded" if device == 40 else "pass"), 0.0)
        progress.add(doing("allocate", device), 1.0)

    rows = progress.rows(1.0)

    assert rows[0] == ("device 40", "1 degraded", "allocate 0 s")
    assert (len(rows), rows[-1]) == (17, ("and 48 more", "", ""))
    assert progress.under_way().endswith("device 15 allocate, 48 more")


def test_the_cpu_is_a_device() -> None:
    progress = ProbeProgress()
    progress.add(doing("copy", "cpu"), 0.0)

    assert progress.rows(0.0) == (("device cpu", "", "copy 0 s"),)


def test_ranks_are_busy_until_the_first_check_of_them_all() -> None:
    """No rank tells when it is through: the controller does, for all of them."""
    progress = ProbeProgress()
    for device in (0, 1):
        progress.add(doing("destroy_process_group", device), 1.0)

    progress.add(ProbeCheck(group="collectives", name="all_reduce", status="pass"), 2.0)

    assert progress.under_way() == ""
