"""`rocmrun profiles unit`: a systemd unit that launches a profile."""

from collections.abc import Mapping
from pathlib import Path

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import lockfile_option, profile_dir_option, set_option


@click.command(
    "unit",
    short_help="Print a systemd unit that launches a profile.",
    context_settings=command_context(),
)
@click.argument("name")
@click.option("--user", is_flag=True, help="For your own systemd manager, not the system's.")
@click.option(
    "--name",
    "container",
    metavar="NAME",
    help="Name of the container and the unit; rocmrun-PROFILE by default.",
)
@profile_dir_option
@set_option
@lockfile_option
def unit_command(
    *,
    name: str,
    user: bool,
    container: str | None,
    profile_dirs: tuple[Path, ...],
    settings: Mapping[str, str],
    lockfile: Path | None,
) -> None:
    """Print a systemd unit that runs `rocmrun launch` for profile NAME.

    The launch is planned, proved and guarded at every start, and systemd hears when the workload is
    up. Paths are those that hold now: the profile's file, its lock, this directory, this rocmrun.

    \b
    Examples:
      rocmrun profiles unit vllm-serve --set model_dir=/srv/models > rocmrun-vllm-serve.service
      rocmrun profiles unit demo --user
    """
    import os

    from rocmrun.cli.profiles import search_for
    from rocmrun.console.output import emit
    from rocmrun.core.systemd_unit import unit_text
    from rocmrun.usecases.unit import unit_request

    request = unit_request(
        name,
        search=search_for(profile_dirs),
        settings=settings,
        lockfile=lockfile,
        profile_directories=profile_dirs,
        user=user,
        container=container,
        docker_host=os.environ.get("DOCKER_HOST", ""),
    )
    emit(unit_text(request).rstrip("\n"))
