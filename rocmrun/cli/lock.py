"""`rocmrun lock`: pin the images of profiles to digests, and check that the pins still hold."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import (
    Seconds,
    json_option,
    lockfile_option,
    profile_dir_option,
    set_option,
)
from rocmrun.console.output import emit, emit_json, say, warn
from rocmrun.errors import UsageError

if TYPE_CHECKING:
    from rocmrun.system.profile_search import ProfileSearch
    from rocmrun.usecases.lock_ask import Sources
    from rocmrun.usecases.lock_selection import Selection
    from rocmrun.usecases.locks import LockPlaces

ResolverName = Literal["auto", "engine", "registry"]


def _platform(_context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[a-z0-9]+/[a-z0-9_]+(?:/[a-z0-9.]+)?", text):
        msg = f"{text!r} is not OS/ARCHITECTURE[/VARIANT], such as linux/amd64"
        raise click.BadParameter(msg, param=option)
    return text


@click.command(
    "lock",
    short_help="Pin the images of profiles to digests.",
    context_settings=command_context(),
)
@click.argument("profiles", nargs=-1, metavar="[PROFILE]...")
@click.option("--upgrade", is_flag=True, help="Ask for every tag again.")
@click.option(
    "--upgrade-image",
    "upgrade_images",
    multiple=True,
    metavar="NAME",
    help="Ask again for this profile's image or this reference only. Repeatable.",
)
@click.option("--check", is_flag=True, help="Write nothing; say what is not locked, or has moved.")
@click.option("--offline", is_flag=True, help="With --check: compare profiles and lock only.")
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
@click.option(
    "--facts",
    is_flag=True,
    help="Record what the images say they hold, and what probes that passed here measured in them.",
)
@click.option("--print", "name", metavar="NAME", help="Print repository@digest of a locked image.")
@click.option(
    "--platform",
    metavar="OS/ARCH",
    callback=_platform,
    help="Lock this platform, not the profile's.",
)
@click.option(
    "--resolver",
    type=click.Choice(["auto", "engine", "registry"]),
    default="auto",
    show_default=True,
    help="Whom to ask: the engine if one answers, or registries directly.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=8, show_default=True, help="Questions at once."
)
@click.option(
    "--timeout",
    type=Seconds(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="For each question.",
)
@set_option
@profile_dir_option
@lockfile_option
@json_option
def command(
    *,
    profiles: tuple[str, ...],
    settings: Mapping[str, str],
    profile_dirs: tuple[Path, ...],
    lockfile: Path | None,
    platform: str | None,
    **options: Any,
) -> int:
    """Pin the images of PROFILEs to digests in rocmrun.lock; without PROFILE, those of ./profiles.

    Pins that are there stay: only --upgrade and --upgrade-image ask for a tag again.

    \b
    Examples:
      rocmrun lock demo
      rocmrun lock --upgrade-image rocm/pytorch:latest
      rocmrun lock --check --offline
    """  # \b is click's mark for lines that stay as they are
    from rocmrun.cli.profiles import search_for
    from rocmrun.usecases.lock_selection import select
    from rocmrun.usecases.locks import LockPlaces

    _refuse_contradictions(options)
    places, search = LockPlaces.here(lockfile), search_for(profile_dirs)
    if options["name"] is not None:
        return _print(options["name"], search, settings, places, as_json=options["as_json"])
    selection = select(profiles, search=search, settings=settings, platform=platform)
    if options["check"]:
        return _check(selection, places, options)
    return _lock(selection, places, options)


def _refuse_contradictions(options: Mapping[str, Any]) -> None:
    names = {
        "upgrade": "--upgrade",
        "upgrade_images": "--upgrade-image",
        "facts": "--facts",
        "dry_run": "--dry-run",
    }
    changing = [name for option, name in names.items() if options[option]]
    if options["check"] and changing:
        msg = f"--check changes nothing: it does not go with {changing[0]}"
        raise UsageError(msg)
    if options["offline"] and not options["check"]:
        msg = "--offline goes with --check: what is not locked yet must be asked for"
        raise UsageError(msg, hint="rocmrun lock --check --offline")


def _lock(selection: "Selection", places: "LockPlaces", options: Mapping[str, Any]) -> int:
    from rocmrun.console.lock import report_as_json, report_lines
    from rocmrun.usecases.lock import LockRequest, lock_profiles

    request = LockRequest(
        selection=selection,
        upgrade=options["upgrade"],
        upgrade_images=options["upgrade_images"],
        facts=options["facts"],
        dry_run=options["dry_run"],
        jobs=options["jobs"],
        timeout_seconds=options["timeout"],
    )
    report = lock_profiles(
        request,
        places=places,
        open_sources=lambda note: _open(options["resolver"], note, {}),
        on_ask=lambda count: say(f"asking for {count} image{'' if count == 1 else 's'} …"),
    )
    for warning in report.warnings:
        warn(warning)
    if options["as_json"]:
        emit_json(report_as_json(report))
        return 0
    for line in report_lines(report):
        emit(line)
    return 0


def _check(selection: "Selection", places: "LockPlaces", options: Mapping[str, Any]) -> int:
    from rocmrun.console.lock import check_as_json, check_lines
    from rocmrun.usecases.lock_check import check_locks

    resolver: ResolverName = options["resolver"]
    report = check_locks(
        selection,
        places=places,
        open_sources=None
        if options["offline"]
        else lambda note, locked: _open(resolver, note, locked),
        jobs=options["jobs"],
        timeout_seconds=options["timeout"],
    )
    for warning in report.warnings:
        warn(warning)
    failure = report.failure
    if options["as_json"]:
        emit_json(check_as_json(report))
        return failure.exit_code if failure else 0
    if failure:
        raise failure
    for line in check_lines(report):
        emit(line)
    return 0


def _print(
    name: str,
    search: "ProfileSearch",
    settings: Mapping[str, str],
    places: "LockPlaces",
    *,
    as_json: bool,
) -> int:
    from rocmrun.errors import ProfileNotFound
    from rocmrun.usecases.lock_files import pull_name
    from rocmrun.usecases.lock_selection import Selection, select

    try:
        selection = select((name,), search=search, settings=settings)
    except ProfileNotFound:
        selection = Selection(references=())
    found = pull_name(name, selection, places=places)
    if as_json:
        emit_json({"v": 1, "ok": True, "name": found})
    else:
        emit(found)
    return 0


def _open(
    resolver: ResolverName, note: Callable[[str], None], locked: Mapping[str, str]
) -> "Sources":
    """Return whom to ask; only now are docker and requests imported."""
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.lock_sources import open_sources

    return open_sources(resolver, connect=connect, warn=note, locked=locked)
