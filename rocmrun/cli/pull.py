"""`rocmrun pull`: fetch locked images before they are needed."""

from collections.abc import Mapping
from pathlib import Path

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option, lockfile_option, profile_dir_option, set_option


@click.command(
    "pull",
    short_help="Fetch the locked images of profiles.",
    context_settings=command_context(),
)
@click.argument("profiles", nargs=-1, metavar="[PROFILE]...")
@profile_dir_option
@set_option
@lockfile_option
@json_option
def command(
    *,
    profiles: tuple[str, ...],
    profile_dirs: tuple[Path, ...],
    settings: Mapping[str, str],
    lockfile: Path | None,
    as_json: bool,
) -> int:
    """Fetch what the lock pins for each PROFILE, or for all of ./profiles, and keep it from image prune.

    For maintenance windows: a later launch finds its image here and needs no registry. Digests are
    fetched, never tags; signatures that profiles ask for are verified first.

    \b
    Examples:
      rocmrun pull prod-inference
      rocmrun pull --json
    """
    from dataclasses import asdict

    from rocmrun.cli.profiles import search_for
    from rocmrun.console.output import emit, emit_json
    from rocmrun.console.voice import voice
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.locks import LockPlaces
    from rocmrun.usecases.pull import pull

    held = pull(
        profiles,
        engine=connect(),
        search=search_for(profile_dirs),
        settings=settings,
        places=LockPlaces.here(lockfile),
        voice=voice(),
    )
    if as_json:
        emit_json({"v": 1, "ok": True, "images": [asdict(image) for image in held]})
        return 0
    for image in held:
        emit(
            f"{image.ref} {image.digest or image.image_id} {'fetched' if image.fetched else 'here'}"
        )
    return 0
