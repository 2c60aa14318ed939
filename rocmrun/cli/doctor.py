"""`rocmrun doctor`: what is wrong, and what to do next."""

from pathlib import Path
from typing import Any

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import (
    host_root_option,
    json_option,
    lockfile_option,
    profile_dir_option,
    set_option,
)


@click.command(
    "doctor",
    short_help="Find out what is wrong on this host, with a profile, or behind an error text.",
    context_settings=command_context(),
)
@click.argument("profile", required=False)
@click.option("--log", metavar="FILE", help="Read what a program printed; - is standard input.")
@click.option(
    "--probe-report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read what `rocmrun probe --report FILE` wrote.",
)
@profile_dir_option
@set_option
@lockfile_option
@host_root_option
@json_option
def command(
    *,
    profile: str | None,
    log: str | None,
    probe_report: Path | None,
    as_json: bool,
    host_root: Path,
    **shared: Any,
) -> int:
    """Check this host in the order in which faults must be mended, and name the causes in a log or report.

    With --log or --probe-report alone the text is judged by itself: it may come from another machine.
    Lines of the form `key: value` in it are facts about the failure (flags, env, groups, versions).
    Exit code 0 when nothing stands in the way, 1 when something must be mended first.

    \b
    Examples:
      rocmrun doctor
      rocmrun doctor vllm-serve --set model_dir=/srv/models
      docker logs vllm 2>&1 | rocmrun doctor --log -
    """
    from rocmrun.console.doctor import diagnosis_as_json, print_diagnosis
    from rocmrun.console.output import emit_json, out
    from rocmrun.usecases.doctor import examine, read_log, read_report
    from rocmrun.usecases.engines import connect

    found = examine(
        _ask(profile, host_root, shared) if profile else None,
        host_root=host_root,
        log=read_log(log) if log else None,
        report=read_report(probe_report) if probe_report else None,
        connect=connect,
    )
    if as_json:
        emit_json(diagnosis_as_json(found))
    else:
        print_diagnosis(out(), found)
    return 1 if found.blocked else 0


def _ask(profile: str, host_root: Path, shared: dict[str, Any]) -> Any:
    from rocmrun.cli.profiles import search_for
    from rocmrun.usecases.ask import Ask

    return Ask(
        profile=profile,
        search=search_for(shared["profile_dirs"]),
        settings=shared["settings"],
        lockfile=shared["lockfile"],
        host_root=host_root,
        unlocked=True,
        pull=False,
    )
