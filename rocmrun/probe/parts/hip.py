"""The HIP runtime below torch: what it finds, and whether one GPU keeps and computes what it is given."""

from __future__ import annotations

import os
import random
import time
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.hip_kernels import check_kernels
from rocmrun.probe.parts.hip_library import (
    DEVICE_TO_DEVICE,
    Hip,
    LibraryMissing,
    load_library,
    mapped_library,
    version_text,
)
from rocmrun.probe.parts.identity import claimed, hip_identity
from rocmrun.probe.parts.machine import is_visibility

MOST_HIP_BYTES = 64 << 20  # they are compared on the host
MEMSET_BYTE = 0xA5


def stage_hip_runtime(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Load HIP in a process that sees every GPU, and count them.

    Where torch computes as well, an image whose HIP ctypes cannot load is none the worse for it.
    """
    with reporter.check("hip", "runtime") as check:
        try:
            hip = loaded_hip(check, job)
        except LibraryMissing as error:
            if job["sole"]:
                raise
            check.skip(str(error))
            return
    if check.status == "fail":
        return
    with reporter.check("hip", "device_count") as check:
        check_hip_count(check, hip, job["gpus"])
    state["hip"] = hip


def stage_hip(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Exercise the one GPU that this process can see, without torch."""
    with reporter.check("hip", "identity") as check:
        hip = loaded_hip(check, job)
        check_hip_identity(check, hip, job)
    if check.evidence.get("visible") != 1:
        return
    size = min(4 * job["size"] ** 2, MOST_HIP_BYTES)
    with reporter.check("hip", "allocate") as check:
        check_hip_allocate(check, hip, size)
    with reporter.check("hip", "copy") as check:
        check_hip_copy(check, hip, size)
    with reporter.check("hip", "memset") as check:
        check_hip_memset(check, hip, size)
    check_kernels(reporter, hip, job["size"], sole=job["sole"])
    state["hip"] = hip


def loaded_hip(check: Check, job: dict[str, Any]) -> Hip:
    """Load HIP, and record where from and of which version."""
    torch_first = not job["sole"]
    hip = Hip(load_library("libamdhip64", torch_first=torch_first), torch_first=torch_first)
    check.evidence.update(
        library=mapped_library("libamdhip64"),
        hip=version_text(hip.number("hipRuntimeGetVersion")),
        driver=version_text(hip.number("hipDriverGetVersion")),
    )
    return hip


def check_hip_count(check: Check, hip: Hip, planned: int | None) -> None:
    """Compare the number of devices with the plan's."""
    hidden = {key: value for key, value in os.environ.items() if is_visibility(key)}
    note = ", ".join(f"{key}={value!r}" for key, value in sorted(hidden.items()))
    note = f" ({note})" if note else ""
    try:
        found = hip.number("hipGetDeviceCount")
    except CheckFailed as error:
        msg = f"no device is visible: {error}{note}"
        raise CheckFailed(msg) from error
    check.evidence.update(device_count=found, planned=planned)
    if not found:
        msg = f"no device is visible: hipGetDeviceCount counts 0{note}"
        raise CheckFailed(msg)
    if planned is not None and found != planned:
        msg = f"{found} devices are visible, {planned} were passed in{note}"
        raise CheckFailed(msg)


def check_hip_identity(check: Check, hip: Hip, job: dict[str, Any]) -> None:
    """Record which device this is and compare it with what was passed in."""
    check.evidence["visible"] = hip.number("hipGetDeviceCount")
    if check.evidence["visible"] != 1:
        msg = f"{check.evidence['visible']} devices are visible where exactly one was named"
        raise CheckFailed(msg)
    seen = hip_identity(hip)
    check.evidence.update(seen)
    if job["planned"]:
        check.evidence["claims"] = claimed(seen, job["planned"], job["index"])


def check_hip_allocate(check: Check, hip: Hip, size: int) -> None:
    """Allocate memory and see that there is less of it then."""
    free, total = hip.memory()
    check.evidence.update(free_bytes=free, total_bytes=total, bytes=size)
    if not free or not total:
        msg = f"hipMemGetInfo tells {free} free bytes of {total}"
        raise CheckFailed(msg)
    if free > total:
        check.degrade(f"hipMemGetInfo tells {free} free bytes of {total}")
    address = hip.allocate(size)
    if not address:
        msg = f"hipMalloc gave no address for {size} bytes"
        raise CheckFailed(msg)
    check.evidence["free_bytes_after"] = hip.memory()[0]
    hip.call("hipFree", address)


def check_hip_copy(check: Check, hip: Hip, size: int) -> None:
    """Copy random bytes to the device, there to another place, and back."""
    data = random.Random(0x5EED).getrandbits(8 * size).to_bytes(size, "little")
    first, second = hip.allocate(size), hip.allocate(size)
    begin = time.monotonic()
    hip.to_device(first, data)
    hip.call("hipMemcpy", second, first, size, DEVICE_TO_DEVICE)
    back = hip.to_host(second, size)
    seconds = time.monotonic() - begin
    check.evidence["seconds_for_all_three"] = round(seconds, 4)
    require_same(check, back, data, "changed on the way to the device and back")
    for address in (first, second):
        hip.call("hipFree", address)


def check_hip_memset(check: Check, hip: Hip, size: int) -> None:
    """Let the device fill memory, and read it back."""
    address = hip.allocate(size)
    hip.to_device(address, bytes(size))
    hip.call("hipMemset", address, MEMSET_BYTE, size)
    hip.call("hipDeviceSynchronize")
    expected = bytes([MEMSET_BYTE]) * size
    require_same(check, hip.to_host(address, size), expected, "do not hold what was set")
    hip.call("hipFree", address)


def require_same(check: Check, seen: bytes, expected: bytes, what: str) -> None:
    """Fail unless all bytes are the same."""
    wrong = 0 if seen == expected else sum(map(int.__ne__, seen, expected))
    check.evidence.update(bytes=len(expected), wrong=wrong)
    if wrong:
        msg = f"{wrong} of {len(expected)} bytes {what}"
        raise CheckFailed(msg)
