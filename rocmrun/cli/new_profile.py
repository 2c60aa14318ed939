"""`rocmrun profiles new`: a first profile, on a shipped one or from a published docker run line."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import profile_dir_option, set_option

if TYPE_CHECKING:
    from rocmrun.system.profile_search import ProfileSearch
    from rocmrun.usecases.new_profile import NewProfileRequest

_LINE = "--from-docker-run"


@click.command(
    "new", short_help="Write a first profile, commented.", context_settings=command_context()
)
@click.argument("name")
@click.option("--from", "parent", metavar="PROFILE", help="Build on this profile, as vllm-serve.")
@click.option(
    _LINE,
    "line",
    metavar="LINE",
    help="Take a published docker run line, in single quotes; - reads it from stdin.",
)
@click.option("--model", metavar="DIR", help="The directory with the model's weights.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port on this machine.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write FILE, - for stdout. Default: ./profiles/NAME.toml.",
)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@set_option
@profile_dir_option
def new_command(  # noqa: PLR0913  # one parameter an option
    *,
    name: str,
    parent: str | None,
    line: str | None,
    model: str | None,
    port: int | None,
    output: str | None,
    force: bool,
    settings: Mapping[str, str],
    profile_dirs: tuple[Path, ...],
) -> None:
    """Write profile NAME with comments: on a shipped profile, or from a docker run line.

    On a terminal it asks for what is missing; off one, a parameter without a value stays a parameter.
    A docker run line loses what the baseline does not need, each thing with its reason. Nothing in it
    is run or expanded: $HOME is your home, any other expression becomes a parameter.

    \b
    Examples:
      rocmrun profiles new serve --from vllm-serve --model /srv/models/x --port 8001
      rocmrun profiles new ollama-here --from-docker-run 'docker run -p 11434:11434 ollama/ollama:rocm'
    """
    from rocmrun.cli.profiles import search_for
    from rocmrun.console.new_profile import print_new
    from rocmrun.errors import UsageError
    from rocmrun.usecases.new_profile import NewProfileRequest, new_profile

    search = search_for(profile_dirs)
    if line == "-":
        line = sys.stdin.read()
    if parent and line:
        msg = f"--from and {_LINE} exclude each other"
        raise UsageError(msg, hint=f"{_LINE} builds on the profile base")
    asking = sys.stdin.isatty() and sys.stderr.isatty()
    if parent is None and line is None:
        parent = _asked_parent(search) if asking else None
    if parent is None and line is None:
        msg = "nothing to make the profile from"
        raise UsageError(msg, hint=f"--from PROFILE (see rocmrun profiles list), or {_LINE} LINE")
    request = NewProfileRequest(
        name=name, search=search, parent=parent, line=line, settings=settings, model=model, port=port,
        output=output, force=force,
    )  # fmt: skip
    print_new(new_profile(_completed(request) if asking else request), name)


def _asked_parent(search: "ProfileSearch") -> str:
    """Ask which profile to build on."""
    from rocmrun.usecases.profiles import list_profiles

    shown = [each for each in list_profiles(search) if each.problem is None]
    for summary in shown:
        click.echo(f"  {summary.file.name:<22} {summary.description}", err=True)
    choices = click.Choice([summary.file.name for summary in shown])
    answer: str = click.prompt("Build on", type=choices, show_choices=False, err=True)
    return answer


def _completed(request: "NewProfileRequest") -> "NewProfileRequest":
    """Ask for each parameter that has no value yet; an empty answer leaves it open."""
    from dataclasses import replace

    from rocmrun.usecases.new_profile import destination, open_parameters

    destination(request)
    answers = {}
    for parameter, help_text in open_parameters(request).items():
        answer = click.prompt(
            f"{parameter} ({help_text})", default="", show_default=False, err=True
        )
        if answer:
            answers[parameter] = answer
    return replace(request, settings={**request.settings, **answers})
