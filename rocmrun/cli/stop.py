"""`rocmrun stop`: end workloads."""

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option


@click.command("stop", short_help="Stop workloads.", context_settings=command_context())
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "-t",
    "--time",
    "time_seconds",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    help="Between SIGTERM and SIGKILL; the profile's stop_timeout by default.",
)
@click.option("--keep", is_flag=True, help="Leave the container, and its log, in place.")
@click.option(
    "--missing-ok", is_flag=True, help="A name of which there is no workload is no failure."
)
@json_option
def command(
    *, names: tuple[str, ...], time_seconds: int | None, keep: bool, missing_ok: bool, as_json: bool
) -> int:
    """Stop workloads and remove their containers, with their logs, unless they were launched with --keep.

    NAME is a container's name, or a profile's that has just one workload. Where one of several names
    means nothing, or more than one thing, none is stopped.

    \b
    Examples:
      rocmrun stop vllm-serve
      rocmrun stop --time 120 --keep rocmrun-train-1f2e3d4c
    """
    from rocmrun.console.output import emit, emit_json, say
    from rocmrun.console.workloads import stopped_to_json
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.workloads import stop

    stopped = stop(connect(), names, time_seconds=time_seconds, keep=keep, missing_ok=missing_ok)
    if as_json:
        emit_json({"v": 1, "ok": True, "stopped": [stopped_to_json(each) for each in stopped]})
        return 0
    for each in stopped:
        emit(each.name)
        if told := str(each):
            say(told)
    return 0
