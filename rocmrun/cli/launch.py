"""`rocmrun launch`: the main job."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmrun.cli.asking import ask_options
from rocmrun.cli.main import command_context
from rocmrun.cli.options import pull_option, share_option, unlocked_option, wait_option

if TYPE_CHECKING:
    from rocmrun.usecases.ask import Ask


@click.command(
    "launch",
    short_help="Start a locked image, hardened, after proving its GPUs.",
    context_settings=command_context(),
)
@click.argument("profile")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--no-probe", is_flag=True, help="Start without proving the GPUs.")
@click.option(
    "--probe-level",
    type=click.Choice(["quick", "standard", "full"]),
    help="How much to prove; the profile's level by default.",
)
@click.option(
    "-d", "--detach", is_flag=True, help="Print the container's name and leave it running."
)
@click.option(
    "--replace",
    is_flag=True,
    help="With --detach: take the place of the workload of that --name; without it, of this profile's.",
)
@click.option("--name", metavar="NAME", help="Name of the container.")
@click.option("--dry-run", is_flag=True, help="Show the plan and start nothing.")
@click.option(
    "--report",
    type=click.Path(dir_okay=True, path_type=Path),
    metavar="FILE",
    help="Write what was started, proved and returned to FILE as JSON.",
)
@pull_option
@unlocked_option
@click.option("--keep", is_flag=True, help="Leave the ended container in place.")
@share_option
@wait_option
@ask_options
def command(  # noqa: PLR0913  # one parameter an option
    *,
    ask: Callable[..., "Ask"],
    no_probe: bool,
    probe_level: str | None,
    detach: bool,
    replace: bool,
    name: str | None,
    dry_run: bool,
    report: Path | None,
    pull: str,
    unlocked: bool,
    keep: bool,
    share: bool,
    wait_seconds: float,
) -> int:
    """Start PROFILE's image by the digest in the lock, with the rights that `rocmrun plan` shows.

    The GPUs are proved first, in a container with the same rights. Then COMMAND, or the profile's,
    gets stdout and stderr; the exit code is its own, or 125 when rocmrun failed before it ran.

    \b
    Examples:
      rocmrun launch demo
      rocmrun launch demo -- python3 -c 'import torch; print(torch.__version__)'
      rocmrun launch vllm-serve --set model_dir=/srv/models --detach --replace
    """
    if dry_run:
        from rocmrun.console.output import out
        from rocmrun.console.plan import print_plan
        from rocmrun.usecases.planning import plan_profile, view

        print_plan(out(), view(plan_profile(ask, offline=False, host_file=None)))
        return 0

    from rocmrun.system.service_manager import notifier
    from rocmrun.usecases.engines import connect_early

    notify = notifier()
    connect = connect_early()
    from rocmrun.console.voice import voice
    from rocmrun.usecases.launch import launch
    from rocmrun.usecases.launch_request import LaunchRequest

    request = LaunchRequest(
        ask=ask(unlocked=unlocked, pull=pull == "missing"),
        name=name,
        probe=not no_probe,
        level=probe_level,
        detach=detach,
        replace=replace,
        notify=notify,
        keep=keep,
        share=share,
        wait_seconds=wait_seconds,
        report=report,
    )
    return launch(request, connect=connect, voice=voice())
