"""`rocmrun probe`: prove the GPUs, start nothing else."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmrun.cli.asking import ask_options
from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option, pull_option, share_option, unlocked_option, wait_option

if TYPE_CHECKING:
    from rocmrun.usecases.ask import Ask


def _print_schema(context: click.Context, _option: click.Parameter, asked: object) -> None:
    if not asked or context.resilient_parsing:
        return
    from rocmrun.console.profiles import print_schema
    from rocmrun.core.report.schema import report_schema

    print_schema(report_schema())
    context.exit()


@click.command(
    "probe",
    short_help="Prove the GPUs in a container with exactly the profile's rights.",
    context_settings=command_context(),
)
@click.argument("profile")
@click.option(
    "--level",
    type=click.Choice(["quick", "standard", "full"]),
    default="standard",
    show_default=True,
    help="How much to prove.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the record of the run to FILE as JSON.",
)
@click.option(
    "--junit",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the checks to FILE as JUnit XML, for CI servers.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of --report and --json, and exit.",
)
@pull_option
@unlocked_option
@share_option
@wait_option
@json_option
@ask_options
def command(  # noqa: PLR0913  # one parameter an option
    *,
    ask: Callable[..., "Ask"],
    level: str,
    report: Path | None,
    junit: Path | None,
    pull: str,
    unlocked: bool,
    share: bool,
    wait_seconds: float,
    as_json: bool,
) -> int:
    """Run every check of the level in a container with the rights that PROFILE gets, and show each.

    Exit code 0 when all passed or some are degraded, 9 when one failed.

    \b
    Examples:
      rocmrun probe demo
      rocmrun probe prod-inference --level full --json
      rocmrun probe prod-inference --junit probe.xml
    """
    from rocmrun.usecases.engines import connect_early

    connect = connect_early()
    from rocmrun.console.output import emit_json, out
    from rocmrun.console.probe import print_report, report_as_json
    from rocmrun.console.voice import voice
    from rocmrun.usecases.launch import probe
    from rocmrun.usecases.launch_request import LaunchRequest

    request = LaunchRequest(
        ask=ask(unlocked=unlocked, pull=pull == "missing"),
        level=level,
        share=share,
        wait_seconds=wait_seconds,
        report=report,
        junit=junit,
    )
    record = probe(request, connect=connect, voice=voice())
    if as_json:
        emit_json(report_as_json(record))
    else:
        print_report(out(), record)
    if record.probe is not None and record.probe.usable:
        return 0
    if record.probe is not None and not as_json:
        from rocmrun.console.output import say
        from rocmrun.usecases.doctor import cause_lines, likely_cause

        for line in cause_lines(likely_cause(record.probe)):
            say(line)
    return 9
