"""What `rocmrun doctor` does with support bundles, and with hosts that were saved."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocmrun.errors import UsageError

if TYPE_CHECKING:
    from rocmrun.core.doctor import Diagnosis
    from rocmrun.core.host import HostFacts
    from rocmrun.usecases.ask import Ask
    from rocmrun.usecases.doctor import Case


def bundle_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --host, --bundle, --force and --from."""
    options = (
        click.option(
            "--host",
            "host_file",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Look at a host saved with `rocmrun host --json`, and not at this one.",
        ),
        click.option(
            "--bundle",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write what was looked at and found to FILE for others to read, with what is private masked.",
        ),
        click.option("--force", is_flag=True, help="Replace the bundle if it is there."),
        click.option(
            "--from",
            "from_file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Judge what a bundle holds; nothing of this host is looked at.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def check_bundle(path: Path | None, *, force: bool) -> None:
    """Refuse a bundle that could not be written, before anything is looked at.

    Raises:
        BundleUnwritable: it could not.
        UsageError: nothing is to be forced.
    """
    if path is not None:
        from rocmrun.usecases.support_bundle import check_bundle_path

        check_bundle_path(path, force=force)
    elif force:
        msg = "--force is for --bundle FILE"
        raise UsageError(msg)


def read_saved(path: Path | None) -> "HostFacts | None":
    """Return the host of --host, where it is given."""
    if path is None:
        return None
    from rocmrun.usecases.planning import saved_host

    return saved_host(path)


def write(
    case: "Case",
    found: "Diagnosis",
    ask: "Ask | None",
    path: Path | None,
    probe_report: Path | None,
) -> dict[str, Any]:
    """Write the bundle, where one is wanted, and return what --json says of it."""
    if path is None:
        return {}
    from rocmrun.console.bundle import tell_written, written_as_json
    from rocmrun.console.doctor import diagnosis_as_json
    from rocmrun.usecases.support_bundle import read_run, write_bundle

    run = read_run(probe_report) if probe_report else None
    written = write_bundle(case, ask, path, found=found, render=diagnosis_as_json, run=run)
    tell_written(written)
    return {"bundle": written_as_json(written)}


def judge(path: Path, *, as_json: bool) -> int:
    """Print what a bundle tells, and return the exit code."""
    given = [name for name in _given() if name not in {"--from", "--json"}]
    if given:
        msg = f"--from excludes {', '.join(given)}: a bundle is judged by itself"
        raise UsageError(msg, hint=f"rocmrun doctor --from {path}")
    from rocmrun.console.bundle import judged_as_json, print_judged
    from rocmrun.console.output import emit_json, out
    from rocmrun.usecases.judge_bundle import judge_bundle

    judged = judge_bundle(path)
    if as_json:
        emit_json(judged_as_json(judged))
    else:
        print_judged(out(), judged)
    return 1 if judged.found.blocked else 0


def _given() -> list[str]:
    """Return what stands on the command line, in the words of its help."""
    context = click.get_current_context()
    line = click.core.ParameterSource.COMMANDLINE
    return [
        parameter.opts[0] if isinstance(parameter, click.Option) else "PROFILE"
        for parameter in context.command.params
        if parameter.name and context.get_parameter_source(parameter.name) is line
    ]
