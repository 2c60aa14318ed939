"""The probe in containers that rocmrun would never make, told of a plan that does not fit them."""

import subprocess
from typing import Any

from rocmrun.core.plan import Plan, PlannedTmpfs, ProbeSettings
from rocmrun.core.probing.protocol import bootstrap_command, probe_input
from rocmrun.core.report.model import ProbeReport
from rocmrun.core.report.parser import ReportParser
from rocmrun.system.package_data import read_probe_source
from tests.unit.core.plan_values import a_plan


def bare_plan(**changes: Any) -> Plan:
    """Return the baseline without a GPU: nothing but /tmp and a limit of memory."""
    return a_plan(
        gpus=(),
        devices=(),
        groups=(),
        memory_bytes=1 << 30,
        tmpfs=(PlannedTmpfs(target="/tmp", size_bytes=1 << 28, executable=True),),
        probe=ProbeSettings(accelerator="cpu"),
    ).with_changes(**changes)


def by_hand(image: str, plan: Plan, *options: str) -> ProbeReport:
    """Run the probe in a container that rocmrun would never make, and tell it of *plan*."""
    python = bootstrap_command("python3")
    done = subprocess.run(
        ["docker", "run", "--rm", "-i", *options, image, *python],
        input=probe_input(plan, read_probe_source()),
        capture_output=True,
        check=False,
        timeout=280,
    )
    parser = ReportParser()
    parser.feed(done.stdout)
    errors = done.stderr.decode(errors="replace").splitlines()
    return parser.finish(exit_code=done.returncode, stderr_tail=errors)
