"""`rocmrun wait`: until a workload has ended."""

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option


@click.command(
    "wait",
    short_help="Wait until a workload has ended and return its exit code.",
    context_settings=command_context(),
)
@click.argument("name")
@json_option
def command(*, name: str, as_json: bool) -> int:
    """Wait until workload NAME has ended; the exit code is the workload's, or 125 when rocmrun failed.

    NAME is a container's name, or a profile's that has just one workload. One that the engine starts
    again (restart = "on-failure:N") has not ended.

    \b
    Example:
      rocmrun wait train
    """
    from rocmrun.console.output import emit_json
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.workloads import wait

    workload, code = wait(connect(), name)
    if as_json:
        emit_json({"v": 1, "ok": True, "name": workload.name, "exit_code": code})
    return code
