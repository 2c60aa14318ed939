"""A small valid plan, to change one thing in."""

from typing import Any

from rocmrun.core.plan import (
    Grant,
    Plan,
    PlannedDevice,
    PlannedGpu,
    PlannedImage,
    ProbeSettings,
)

DIGEST = "sha256:" + "7f" * 32


def a_plan(**changes: Any) -> Plan:
    """Return the plan of one MI300X for a user without a name."""
    return Plan(
        profile="demo",
        image=PlannedImage(ref="docker.io/rocm/pytorch:rocm7.2.4", digest=DIGEST),
        entrypoint=None,
        command=("true",),
        workdir="/",
        uid=65532,
        gid=65532,
        groups=(44, 992),
        gpus=(
            PlannedGpu(
                index=3,
                gfx="gfx942",
                pci_address="0000:63:00.0",
                partition=None,
                render_minor=131,
                unique_id="f330dc0000000063",
                numa_node=0,
            ),
        ),
        devices=(
            PlannedDevice(path="/dev/dri/renderD131", host_path="/dev/dri/renderD131"),
            PlannedDevice(path="/dev/infiniband/uverbs0", host_path="/dev/infiniband/uverbs0"),
            PlannedDevice(path="/dev/kfd", host_path="/dev/kfd"),
        ),
        mounts=(),
        tmpfs=(),
        env=(),
        env_from=(),
        network="none",
        ports=(),
        hostname="rocmrun",
        extra_hosts=(),
        ipc="private",
        pid="private",
        shm_size_bytes=2 << 30,
        memory_bytes=None,
        pids=4096,
        cpus=None,
        cpuset_cpus="",
        cpuset_mems="",
        ulimits=(),
        sysctls=(),
        cap_add=(),
        no_new_privileges=True,
        seccomp=None,
        apparmor=None,
        selinux_label=None,
        read_only_root=True,
        masks=True,
        stop_timeout_seconds=10,
        log_size_bytes=100 << 20,
        restart="no",
        grants=(Grant(what="group:992", reason="owns /dev/kfd", asked_by="devices"),),
        left_out=(),
        notes=(),
        isolation="device-cgroup",
        probe=ProbeSettings(),
    ).with_changes(**changes)
