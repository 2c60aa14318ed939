"""`rocmrun clean`: remove what a crash left behind."""

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option


@click.command(
    "clean", short_help="Remove what a crash left behind.", context_settings=command_context()
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@json_option
def command(*, dry_run: bool, as_json: bool) -> int:
    """Remove containers of runs whose rocmrun is gone.

    Workloads that were left running on purpose (--detach) and ended containers that were kept on
    purpose (--keep) stay.

    \b
    Example:
      rocmrun clean --dry-run
    """
    from rocmrun.console.output import emit, emit_json, say
    from rocmrun.usecases.clean import clean
    from rocmrun.usecases.engines import connect

    removed = clean(connect(), dry_run=dry_run)
    if as_json:
        emit_json(
            {"v": 1, "ok": True, "removed": [{"name": name, "why": why} for name, why in removed]}
        )
        return 0
    for name, why in removed:
        emit(f"{name}: {why}")
    if not removed:
        say("nothing to clean")
    return 0
