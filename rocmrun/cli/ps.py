"""`rocmrun ps`: which workloads there are."""

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option


@click.command("ps", short_help="List workloads.", context_settings=command_context())
@click.option("-a", "--all", "ended", is_flag=True, help="Also those that have ended.")
@json_option
def command(*, ended: bool, as_json: bool) -> int:
    """List the workloads that run, whoever launched them: profile, state, health, GPUs and ports.

    \b
    Examples:
      rocmrun ps
      rocmrun ps --all --json
    """
    from rocmrun.console.output import emit_json
    from rocmrun.console.workloads import print_workloads, workload_to_json
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.secrets import forget_ended
    from rocmrun.usecases.workloads import list_workloads

    engine = connect()
    forget_ended(engine)
    found = list_workloads(engine, ended=ended)
    if as_json:
        emit_json({"v": 1, "ok": True, "workloads": [workload_to_json(each) for each in found]})
    else:
        print_workloads(found, ended=ended)
    return 0
