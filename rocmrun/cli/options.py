"""Options that several commands share, each declared once."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
# Longer than anything is waited for or watched, and a time that every clock takes.
_LONGEST_SECONDS = 366 * 24 * 3600


class Number(click.FloatRange):
    """A number in a range: click takes "nan" for one in every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is no number", param, ctx)
        return found


class Seconds(Number):
    """A time in seconds, a year at most."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds."""
        found = super().convert(value, param, ctx)
        if found > _LONGEST_SECONDS:
            self.fail(f"{value!r} is more than a year", param, ctx)
        return found


def _settings(
    _context: click.Context, option: click.Parameter, texts: Sequence[str]
) -> dict[str, str]:
    """Turn NAME=VALUE pairs into a mapping; the last one of a name counts."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            msg = f"{text!r} is not NAME=VALUE"
            raise click.BadParameter(msg, param=option)
        settings[name] = value
    return settings


def profile_dir_option(function: F) -> F:
    """Add --profile-dir, passed as `profile_dirs` (a tuple of paths)."""
    return click.option(
        "--profile-dir",
        "profile_dirs",
        multiple=True,
        metavar="DIR",
        envvar="ROCMRUN_PROFILE_DIR",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Look for profiles in DIR first. Repeatable.",
    )(function)


def set_option(function: F) -> F:
    """Add --set NAME=VALUE, passed as `settings` (a dict)."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        callback=_settings,
        help="Set a parameter of the profile. Repeatable.",
    )(function)


def lockfile_option(function: F) -> F:
    """Add --lockfile, passed as `lockfile` (a path or None)."""
    return click.option(
        "--lockfile",
        metavar="FILE",
        envvar="ROCMRUN_LOCKFILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Use FILE instead of the lock files on the search path.",
    )(function)


def pull_option(function: F) -> F:
    """Add --pull, passed as `pull` ("missing" or "never")."""
    return click.option(
        "--pull",
        type=click.Choice(["missing", "never"]),
        default="missing",
        show_default=True,
        help="Whether an absent image may be fetched.",
    )(function)


def unlocked_option(function: F) -> F:
    """Add --unlocked, passed as `unlocked`."""
    return click.option(
        "--unlocked",
        is_flag=True,
        help="Take an image that no lock pins; refused where CI is set.",
    )(function)


def share_option(function: F) -> F:
    """Add --share, passed as `share`."""
    return click.option(
        "--share", is_flag=True, help="Take GPUs that another run or process uses."
    )(function)


def wait_option(function: F) -> F:
    """Add --wait SECONDS, passed as `wait_seconds`."""
    return click.option(
        "--wait",
        "wait_seconds",
        type=Seconds(min=0),
        default=0,
        metavar="SECONDS",
        help="Wait for GPUs that are in use.",
    )(function)


def json_option(function: F) -> F:
    """Add --json, passed as `as_json`."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object, on failure too."
    )(function)


def host_root_option(function: F) -> F:
    """Add the hidden --host-root, passed as `host_root` ("/" unless a test stands elsewhere)."""
    return click.option(
        "--host-root",
        hidden=True,
        metavar="DIR",
        default=Path("/"),
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Read /sys, /dev and /proc below DIR.",
    )(function)
