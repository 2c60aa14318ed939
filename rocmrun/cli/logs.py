"""`rocmrun logs`: what a workload printed."""

import click

from rocmrun.cli.main import command_context

INTERRUPTED = 130


@click.command(
    "logs",
    short_help="Show what a detached or kept workload printed.",
    context_settings=command_context(),
)
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on until the workload ends.")
@click.option(
    "-n",
    "--tail",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only the last N lines; all of them by default.",
)
def command(*, name: str, follow: bool, tail: int | None) -> int:
    """Show what workload NAME printed: a container's name, or a profile's that has just one.

    Its stdout comes on stdout and its stderr on stderr, byte for byte as it was printed, control
    characters too: pipe it through `cat -v` if you do not trust it. The log stops growing at the
    profile's log_size: older lines go then.

    \b
    Examples:
      rocmrun logs vllm-serve --tail 100
      rocmrun logs -f vllm-serve
    """
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.workloads import show_log

    try:
        show_log(connect(), name, follow=follow, tail=tail)
    except KeyboardInterrupt:
        # The usual end of --follow, and nothing to talk about.
        return INTERRUPTED
    return 0
