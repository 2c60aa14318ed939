"""What goes into the probe: how it is started, what it is told, what it should find."""

from collections.abc import Mapping
from typing import Any

from rocmrun.core.gpu_table import GpuTable, peaks_of
from rocmrun.core.grants import CAPABILITIES
from rocmrun.core.plan import Plan, canonical_json
from rocmrun.core.planning.checks import sent_check
from rocmrun.core.probing.grants import surroundings

PROTOCOL_VERSION = 1

# The probe's source is larger than the 128 KiB that one argument may be, and an argument can be read
# by everybody on the host: the command line holds only this, settings and source come on standard
# input, the settings as the first line. The working directory leaves the module path: a checkout of
# torch there would be imported in place of the installed one.
BOOTSTRAP = (
    "import sys\n"
    "sys.path[:]=[p for p in sys.path if p]\n"
    "PROBE_SETTINGS,_,PROBE_SOURCE=sys.stdin.buffer.read().partition(b'\\n')\n"
    "exec(compile(PROBE_SOURCE,'gpu_probe.py','exec'))"
)

# Nodes that stand for a GPU. Others that a profile passes may act on being opened (a watchdog, say).
_GPU_NODES = ("/dev/kfd", "/dev/dri/", "/dev/nvidia")

_SECCOMP_FILTER = 2  # SECCOMP_MODE_FILTER, as /proc/PID/status prints it


def bootstrap_command(python: str) -> tuple[str, ...]:
    """Return the command that runs a probe which arrives on standard input.

    -s: the workload can write to HOME, and modules that it leaves there must not run in a later probe.
    """
    return (python, "-s", "-c", BOOTSTRAP)


def probe_input(
    plan: Plan,
    source: bytes,
    *,
    level: str | None = None,
    gpu_table: GpuTable | None = None,
    check_files: Mapping[str, str] | None = None,
) -> bytes:
    """Return the bytes for the probe's standard input: one line of settings, then its source.

    *check_files* has the text of each file that a check of the profile's own names. The probe is told a little less time than *plan* gives it, so that it still reports what hangs.
    """
    seconds = plan.probe.timeout_seconds
    settings = {
        "v": PROTOCOL_VERSION,
        "level": level or plan.probe.level,
        "accelerator": plan.probe.accelerator,
        "runtime": plan.probe.runtime,
        "timeout_seconds": max(1.0, seconds - min(10.0, seconds / 10)),
        "expect": expectation(plan, gpu_table),
        "operators": list(plan.probe.operators),
        "checks": [
            sent_check(check, check_files or {})
            for check in plan.probe.checks_at(level or plan.probe.level)
        ],
    }
    return canonical_json(settings).encode() + b"\n" + source


def expectation(plan: Plan, gpu_table: GpuTable | None = None) -> dict[str, Any]:
    """Return what the probe must find inside a container made from *plan*; None is not judged.

    What a GPU can do at most is in *gpu_table*; without it speed is recorded and not judged.
    """
    added = sum(1 << CAPABILITIES.index(name) for name in plan.cap_add)
    return {
        "uid": plan.uid,
        "gid": plan.gid,
        "groups": list(plan.groups),
        # Podman makes what is added ambient.
        "cap_eff": f"{added if plan.uid == 0 or plan.engine == 'podman' else 0:016x}",
        "cap_bnd": f"{added:016x}",
        "no_new_privileges": plan.no_new_privileges,
        # Unconfined is not "none": what runs the engine may have a filter of its own.
        "seccomp_mode": None if plan.seccomp == "unconfined" else _SECCOMP_FILTER,
        "read_only_root": plan.read_only_root,
        "shm_size_bytes": None if plan.ipc == "host" else plan.shm_size_bytes,
        **surroundings(plan),
        "devices": [
            device.path
            for device in plan.devices
            if device.path.startswith(_GPU_NODES)
            and "w" in device.permissions
            # A card node that CDI brings along has no group here: nobody opens it.
            and not (device.cdi and device.path.startswith("/dev/dri/card"))
        ],
        "gpus": [
            {
                "index": gpu.index,
                "gfx": gpu.gfx,
                "pci_address": gpu.pci_address,
                "unique_id": gpu.unique_id,
                "partition": gpu.partition,
                "xgmi_peers": None if gpu.xgmi_peers is None else list(gpu.xgmi_peers),
                "apu": gpu.apu,
                "peaks": None if gpu_table is None else peaks_of(gpu, gpu_table),
            }
            for gpu in plan.gpus
        ],
    }
