"""What was not granted must be out of reach: each thing is tried, not read from a setting."""

from __future__ import annotations

from typing import Any

from rocmrun.probe.parts.checks import Reporter
from rocmrun.probe.parts.grants import Grants
from rocmrun.probe.parts.isolation_files import (
    check_kernel_settings,
    check_masked_paths,
    check_root_writes,
)
from rocmrun.probe.parts.isolation_kernel import (
    check_ptrace,
    check_raw_sockets,
    check_user_namespaces,
)
from rocmrun.probe.parts.isolation_namespaces import (
    check_namespaces,
    check_network,
    check_processes,
)
from rocmrun.probe.parts.isolation_nodes import check_gpu_nodes, check_host_devices, check_new_nodes
from rocmrun.probe.parts.isolation_sockets import check_engine_sockets

# What makes, seizes or writes something: by hand, on somebody's own machine, it has no reason.
ACTING = ("new_device_nodes", "ptrace_pid_1", "root_writes", "kernel_settings")


def stage_isolation(job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]) -> None:
    """Try to reach what the plan does not grant."""
    grants = Grants(job["expect"])
    for name, examine in (
        ("other_gpu_nodes", check_gpu_nodes),
        ("host_devices", check_host_devices),
        ("new_device_nodes", check_new_nodes),
        ("engine_sockets", check_engine_sockets),
        ("raw_sockets", check_raw_sockets),
        ("user_namespaces", check_user_namespaces),
        ("ptrace_pid_1", check_ptrace),
        ("root_writes", check_root_writes),
        ("kernel_settings", check_kernel_settings),
        ("masked_paths", check_masked_paths),
        ("processes", check_processes),
        ("network", check_network),
        ("namespaces", check_namespaces),
    ):
        with reporter.check("isolation", name) as check:
            if name in ACTING and not grants.known:
                check.skip("not tried: there is no plan to compare with")
            else:
                examine(check, grants)
