"""`rocmrun plan`: what a launch would do, and why, without doing it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmrun.cli.asking import ask_options
from rocmrun.cli.main import command_context
from rocmrun.cli.options import Number, json_option

if TYPE_CHECKING:
    from rocmrun.usecases.ask import Ask


@click.command(
    "plan",
    short_help="Show every right a launch would grant, with its reason.",
    context_settings=command_context(),
)
@click.argument("profile")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--offline", is_flag=True, help="Ask no engine; say what only it could tell.")
@click.option(
    "--host",
    "host_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Plan for a host saved with `rocmrun host --json`.",
)
@click.option(
    "--max-exposure",
    type=Number(0, 10),
    metavar="X",
    help="Exit 1 when the exposure is above X, as it is shown.",
)
@json_option
@ask_options
def command(
    *,
    ask: Callable[..., "Ask"],
    offline: bool,
    host_file: Path | None,
    max_exposure: float | None,
    as_json: bool,
) -> int:
    """Show the container that PROFILE would get: every grant with its reason, and what is left out.

    \b
    Examples:
      rocmrun plan demo
      rocmrun plan vllm-serve --set model_dir=/srv/models --json
      rocmrun plan prod-inference --offline --max-exposure 1.0
    """
    from rocmrun.console.output import emit_json, out, warn
    from rocmrun.console.plan import plan_as_json, print_plan
    from rocmrun.usecases.planning import plan_profile, view

    shown = view(plan_profile(ask, offline=offline, host_file=host_file))
    if as_json:
        emit_json(plan_as_json(shown))
    else:
        print_plan(out(), shown)
    exposure = shown.exposure
    if max_exposure is None or exposure.total <= max_exposure:
        return 0
    warn(f"exposure {exposure.total:.1f} is above the {max_exposure:g} that --max-exposure allows")
    return 1
