"""`rocmrun explain`: the page of a finding."""

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option


@click.command(
    "explain",
    short_help="Show what is known about a kind of failure.",
    context_settings=command_context(),
)
@click.argument("kind", required=False)
@click.option("--list", "every", is_flag=True, help="List every kind, in the order of mending.")
@json_option
def command(*, kind: str | None, every: bool, as_json: bool) -> int:
    """Show the cause, how to tell it, what to do, what looks alike, and where people reported it.

    \b
    Examples:
      rocmrun explain render-gid-mismatch
      rocmrun explain --list
    """
    from rocmrun.console.doctor import kind_as_json, print_kind
    from rocmrun.console.output import emit, emit_json, out
    from rocmrun.usecases.doctor import explain, known_kinds

    kinds = known_kinds()
    if every or kind is None:
        if as_json:
            rows = [
                {"kind": one.slug, "title": one.title, "step": one.step} for one in kinds.values()
            ]
            emit_json({"v": 1, "ok": True, "kinds": rows})
            return 0
        for one in kinds.values():
            emit(f"{one.step:<13} {one.slug:<34} {one.title}")
        return 0
    found = explain(kind)
    if as_json:
        emit_json(kind_as_json(found))
    else:
        print_kind(out(), found, kinds)
    return 0
