"""`rocmrun clean`: remove what a crash left behind, and images that no lock uses any more."""

from pathlib import Path

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option


@click.command(
    "clean", short_help="Remove what a crash left behind.", context_settings=command_context()
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option(
    "--images",
    is_flag=True,
    help="Drop rocmrun/locked tags that no lock uses, and images that nothing else names.",
)
@click.option(
    "--caches",
    is_flag=True,
    help="Remove caches of images that no lock pins, and of profiles that are gone.",
)
@click.option(
    "--lockfile",
    "lockfiles",
    multiple=True,
    metavar="FILE",
    envvar="ROCMRUN_LOCKFILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --images and --caches: keep what FILE locks too. Repeatable.",
)
@json_option
def command(
    *, dry_run: bool, images: bool, caches: bool, lockfiles: tuple[Path, ...], as_json: bool
) -> int:
    """Remove containers of runs whose rocmrun is gone; with --images also images, with --caches also caches that no lock uses.

    Workloads that were left running on purpose (--detach) and ended containers that were kept on
    purpose (--keep) stay. So do images that a container was made from, and what the locks hold that
    are known here: ./rocmrun.lock, the user's, the system's, the shipped one, and each --lockfile. For a cache
    the lock beside its own profile counts too; one that a container has mounted stays.
    A successor whose launch was killed in the middle of --replace gets the name that it was to have.
    For root, what a killed diff-privileges --record-evidence left in the kernel's trace goes too.

    \b
    Examples:
      rocmrun clean --dry-run
      rocmrun clean --images --lockfile /srv/other/rocmrun.lock
      rocmrun clean --caches --dry-run
    """
    from rocmrun.console import clean as shown
    from rocmrun.console.output import emit, emit_json, say
    from rocmrun.usecases.clean import clean, finish_handovers
    from rocmrun.usecases.clean_caches import clean_caches
    from rocmrun.usecases.clean_images import clean_images
    from rocmrun.usecases.clean_traces import clean_traces
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.locks import LockPlaces
    from rocmrun.usecases.secrets import clean_secrets

    engine = connect()
    places = LockPlaces.here()
    cleaned = unused = None
    removed = clean(engine, dry_run=dry_run)
    renamed = finish_handovers(engine, removed=dict(removed), dry_run=dry_run)
    removed += clean_secrets(engine, dry_run=dry_run)
    removed += clean_traces(dry_run=dry_run)
    if images:
        cleaned = clean_images(engine, places=places, lockfiles=lockfiles, dry_run=dry_run)
    if caches:
        unused = clean_caches(engine, places=places, lockfiles=lockfiles, dry_run=dry_run)
    if as_json:
        emit_json(shown.as_json(removed, cleaned, unused, renamed=renamed, dry_run=dry_run))
        return 0
    locks = {path for done in (cleaned, unused) if done is not None for path in done.locks}
    if images or caches:
        say(f"kept is what these lock: {', '.join(sorted(locks)) or 'nothing, there is no lock'}")
    told = list(shown.lines(removed, cleaned, unused, renamed=renamed))
    for line in told:
        emit(line)
    if not told:
        say("nothing to clean")
    return 0
