"""rocmrun profiles: what profiles there are, what is in them, whether they are right."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.new_profile import new_command
from rocmrun.cli.options import json_option, lockfile_option, profile_dir_option, set_option
from rocmrun.cli.unit import unit_command

if TYPE_CHECKING:
    from rocmrun.system.profile_search import ProfileSearch


@click.group("profiles")
def command() -> None:
    """List, show, check and write profiles.

    A profile is named, and looked for in --profile-dir, ./profiles, the user's, the system's and the
    shipped profiles; a name with a slash or .toml at its end is a file.
    """


@command.command(
    "list",
    short_help="List the profiles that can be launched by name.",
    context_settings=command_context(),
)
@profile_dir_option
@lockfile_option
@json_option
def list_command(*, profile_dirs: tuple[Path, ...], lockfile: Path | None, as_json: bool) -> None:
    """List the profiles that can be launched by name.

    \b
    Example:
      rocmrun profiles list
    """
    from rocmrun.console.output import emit_json
    from rocmrun.console.profiles import print_list, summaries_to_json
    from rocmrun.usecases.locks import LockPlaces
    from rocmrun.usecases.profiles import list_profiles

    summaries = list_profiles(search_for(profile_dirs), places=LockPlaces.here(lockfile))
    if as_json:
        emit_json({"v": 1, "ok": True, "profiles": summaries_to_json(summaries)})
    else:
        print_list(summaries)


@command.command(
    "show", short_help="Show a profile with its parents merged.", context_settings=command_context()
)
@click.argument("name")
@profile_dir_option
@set_option
@json_option
def show_command(
    *, name: str, profile_dirs: tuple[Path, ...], settings: Mapping[str, str], as_json: bool
) -> None:
    """Show everything that profile NAME comes to, and which file or option set it.

    \b
    Examples:
      rocmrun profiles show prod-inference
      rocmrun profiles show vllm-serve --set model_dir=/srv/models
    """
    from rocmrun.console.output import emit_json
    from rocmrun.console.profiles import print_shown, shown_to_json
    from rocmrun.usecases.profiles import show_profile

    shown = show_profile(name, search=search_for(profile_dirs), settings=settings)
    if as_json:
        emit_json({"v": 1, "ok": True, **shown_to_json(shown)})
    else:
        print_shown(shown)


@command.command(
    "check", short_help="Report every mistake in profiles.", context_settings=command_context()
)
@click.argument("names", nargs=-1, metavar="[NAME|FILE]...")
@profile_dir_option
@json_option
def check_command(*, names: tuple[str, ...], profile_dirs: tuple[Path, ...], as_json: bool) -> None:
    """Report every mistake in the profiles named, or in all that are found.

    Parameters need no value: what waits for one is not judged.

    \b
    Examples:
      rocmrun profiles check
      rocmrun profiles check ./serve.toml
    """
    from rocmrun.console.output import emit_json
    from rocmrun.console.profiles import file_to_json, print_checked
    from rocmrun.usecases.profiles import check_profiles

    files = check_profiles(names, search_for(profile_dirs))
    if as_json:
        emit_json({"v": 1, "ok": True, "profiles": [file_to_json(file) for file in files]})
    else:
        print_checked(files)


@command.command(
    "schema",
    short_help="Print the JSON schema of profiles, for editors.",
    context_settings=command_context(),
)
def schema_command() -> None:
    """Print the JSON schema of profiles.

    An editor that knows TOML schemas (taplo, Even Better TOML) completes and checks a profile
    whose first line is "#:schema FILE".

    \b
    Example:
      rocmrun profiles schema > profile.schema.json
    """
    from rocmrun.console.profiles import print_schema
    from rocmrun.core.profile.keys import json_schema

    print_schema(json_schema())


command.add_command(new_command)
command.add_command(unit_command)


def search_for(profile_dirs: tuple[Path, ...]) -> "ProfileSearch":
    """Return the search path of this process, --profile-dir first."""
    import os

    from rocmrun.system.profile_search import default_search

    return default_search(
        environ=os.environ, working_directory=Path.cwd(), profile_directories=profile_dirs
    )
