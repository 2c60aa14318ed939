"""`rocmrun ps`: which workloads there are."""

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option


@click.command("ps", short_help="List workloads.", context_settings=command_context())
@click.option("-a", "--all", "ended", is_flag=True, help="Also those that have ended.")
@json_option
def command(*, ended: bool, as_json: bool) -> int:
    """List the workloads that run, whoever launched them: profile, state, health, GPUs and ports.

    A successor whose launch was killed in the middle of --replace is named, running or not.

    \b
    Examples:
      rocmrun ps
      rocmrun ps --all --json
    """
    from rocmrun.console.output import emit_json, warn
    from rocmrun.console.workloads import cut_off_warning, print_workloads, workload_to_json
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.replace import cut_off
    from rocmrun.usecases.secrets import forget_ended
    from rocmrun.usecases.workloads import list_workloads

    engine = connect()
    forget_ended(engine)
    everything = list_workloads(engine, ended=True)
    unfinished = cut_off(everything)
    found = [workload for workload in everything if ended or workload.alive]
    if as_json:
        listed = [workload_to_json(each, cut_off=each in unfinished) for each in found]
        emit_json({"v": 1, "ok": True, "workloads": listed})
        return 0
    print_workloads(found, ended=ended)
    for each in unfinished:
        warn(cut_off_warning(each))
    return 0
