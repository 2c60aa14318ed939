"""Prove the GPUs in a container with exactly a plan's rights: create, inspect, feed the probe, read its report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.core.create_request import create_request
from rocmrun.core.gpu_table import parse_gpu_table
from rocmrun.core.plan import Plan
from rocmrun.core.probing.image import probe_plan
from rocmrun.core.probing.protocol import bootstrap_command, probe_input
from rocmrun.core.report.claims import believed
from rocmrun.core.report.model import ProbeReport
from rocmrun.core.voice import Voice
from rocmrun.errors import CommandNotExecutable, CommandNotFound, ProbeFailed
from rocmrun.system.package_data import read_gpu_table, read_probe_source
from rocmrun.usecases.containers import check_command, check_groups, created
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.probe_run import ProbeRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the probe said, and the engine's record of the container that it ran in."""

    report: ProbeReport
    record: Mapping[str, Any]


def prove(
    engine: Engine,
    plan: Plan,
    *,
    level: str,
    name: str,
    labels: Mapping[str, str],
    voice: Voice,
    check_files: Mapping[str, str] | None = None,
    on_end: Callable[[str], None] = lambda _container_id: None,
) -> Proof:
    """Run the probe at *level* in a container of its own and return what it found.

    *check_files* has the text of each file that a check of the profile's own names.
    *on_end* is called with the container's id once it has ended, before it is removed.

    Raises:
        ProbeFailed: the image has no interpreter to run the probe with.
    """
    inside = probe_plan(plan)
    command = bootstrap_command(plan.probe.python)
    request = create_request(
        inside,
        role="probe",
        command=command,
        labels=labels,
        probe_writes=plan.probe.writes_at(level),
    )
    with created(engine, inside, request, name=name, on_warning=voice.warn) as container:
        check_groups(engine, container, inside)
        try:
            check_command(engine, container, inside)
        except (CommandNotFound, CommandNotExecutable) as error:
            msg = f"the probe needs Python, and {error.message}"
            raise ProbeFailed(
                msg,
                hint="name the interpreter in [probe] python or an image that has one in [probe] image, "
                "or start without a proof: --no-probe",
            ) from error
        run = ProbeRun(engine=engine, container_id=container.container_id, voice=voice)
        table = parse_gpu_table(read_gpu_table()) if plan.gpus else None
        data = probe_input(
            plan, read_probe_source(), level=level, gpu_table=table, check_files=check_files
        )
        report = believed(run.run(data, plan.probe.timeout_seconds), plan, level)
        on_end(container.container_id)
        return Proof(report=report, record=container.record)
