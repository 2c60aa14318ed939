"""`rocmrun doctor`: what is wrong, and what to do next."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from rocmrun.cli.doctor_bundle import bundle_options, check_bundle, judge, read_saved, write
from rocmrun.cli.main import command_context
from rocmrun.cli.options import (
    Seconds,
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
@click.option(
    "--container", metavar="NAME", help="Look at a container that runs: of a profile, or any."
)
@click.option(
    "--watch",
    type=Seconds(min=1),
    metavar="SECONDS",
    help="With --container: look for that long, until Ctrl-C at most.",
)
@click.option(
    "--interval",
    type=Seconds(min=0.1),
    metavar="SECONDS",
    help="With --watch: between two samples; 1 by default.",
)
@bundle_options
@profile_dir_option
@set_option
@lockfile_option
@host_root_option
@json_option
def command(  # noqa: PLR0913  # one parameter an option
    *,
    profile: str | None,
    log: str | None,
    probe_report: Path | None,
    container: str | None,
    watch: float | None,
    interval: float | None,
    host_file: Path | None,
    bundle: Path | None,
    force: bool,
    from_file: Path | None,
    as_json: bool,
    host_root: Path,
    **shared: Any,
) -> int:
    """Check this host in the order in which faults must be mended, and name the causes in a log or report.

    With --log or --probe-report alone the text is judged by itself: it may come from another machine.
    Lines of the form `key: value` in it are facts about the failure (flags, env, groups, versions).
    With --container a running one is looked at: what its GPUs do, which devices it holds, what limits it.
    Exit code 0 when nothing stands in the way, 1 when something must be mended first.

    \b
    Examples:
      rocmrun doctor
      rocmrun doctor vllm-serve --set model_dir=/srv/models
      docker logs vllm 2>&1 | rocmrun doctor --log -
      rocmrun doctor --container vllm-serve --watch 30
      rocmrun doctor vllm-serve --log vllm.log --bundle bundle.json
      rocmrun doctor --from bundle.json
    """
    if from_file is not None:
        return judge(from_file, as_json=as_json)
    check_bundle(bundle, force=force)
    from rocmrun.console.doctor import diagnosis_as_json, print_diagnosis
    from rocmrun.console.output import emit_json, out
    from rocmrun.usecases.doctor import judged, look, read_log, read_report
    from rocmrun.usecases.engines import connect

    if container is not None:
        _alone(profile, log, probe_report, host_file, bundle)
        return _look_into(container, watch, interval, host_root=host_root, as_json=as_json)
    if watch is not None or interval is not None:
        msg = "--watch and --interval are for --container NAME"
        raise click.UsageError(msg)
    host = read_saved(host_file)
    ask = _ask(profile, host_root, shared, host) if profile else None
    printed = read_log(log) if log is not None else None
    case = look(
        ask,
        host_root=host_root,
        log=printed.text if printed else None,
        report=read_report(probe_report) if probe_report else None,
        connect=connect,
        host=host,
        always=bundle is not None,
    )
    if printed:
        case = replace(case, log_unread=printed.unread)
    found = judged(case)
    written = write(case, found, ask, bundle, probe_report)
    if as_json:
        emit_json({**diagnosis_as_json(found), **written})
    else:
        print_diagnosis(out(), found)
    return 1 if found.blocked else 0


def _alone(*others: object) -> None:
    if any(other is not None for other in others):
        msg = "--container goes with neither a PROFILE, --log, --probe-report, --host nor --bundle"
        raise click.UsageError(msg)


def _look_into(
    name: str, watch: float | None, interval: float | None, *, host_root: Path, as_json: bool
) -> int:
    from rocmrun.console.output import emit_json, out
    from rocmrun.console.running_container import examined_as_json, print_examined, shown_watch
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.examine_container import GLANCE_SECONDS, Watch, examine_container

    if interval is not None and watch is None:
        msg = "--interval is for --watch SECONDS"
        raise click.UsageError(msg)
    seconds = watch or GLANCE_SECONDS
    with shown_watch(seconds) as show:
        how = Watch(seconds=seconds, interval=interval or GLANCE_SECONDS, on_sample=show)
        found = examine_container(connect(), name, watch=how, host_root=host_root)
    if as_json:
        emit_json(examined_as_json(found))
    else:
        print_examined(out(), found)
    return 1 if found.diagnosis.blocked else 0


def _ask(profile: str, host_root: Path, shared: dict[str, Any], host: Any) -> Any:
    from rocmrun.cli.profiles import search_for
    from rocmrun.usecases.ask import Ask

    return Ask(
        profile=profile,
        search=search_for(shared["profile_dirs"]),
        settings=shared["settings"],
        lockfile=shared["lockfile"],
        host_root=host_root,
        host=host,
        unlocked=True,
        pull=False,
    )
