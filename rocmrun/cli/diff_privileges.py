"""`rocmrun diff-privileges`: find by experiment which privileges a job needs."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocmrun.cli.asking import ask_options
from rocmrun.cli.main import command_context
from rocmrun.cli.options import (
    Seconds,
    json_option,
    pull_option,
    share_option,
    unlocked_option,
    wait_option,
)

if TYPE_CHECKING:
    from rocmrun.core.oracle import CommandOracle
    from rocmrun.core.privilege_report import Found
    from rocmrun.core.search_space import Settings
    from rocmrun.usecases.ask import Ask


class _WithCommand(click.Command):
    """A command that takes all words after "--" as the job's command, and none before as part of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what stands before "--"."""
        at = args.index("--") if "--" in args else len(args)
        words = tuple(args[at + 1 :])
        rest = super().parse_args(ctx, args[:at])
        if ctx.params.get("command"):
            ctx.fail("the job's command stands after --")
        ctx.params["command"] = words
        return rest


_SEARCH = (
    click.option("--recipe", type=click.Choice(["amd"]), help="Compare AMD's usual docker line, not the profile's rights."),
    click.option("--expect-exit", type=click.IntRange(0, 255), metavar="N", help="Exit code of a command that works; 0 without this."),
    click.option("--expect-output", metavar="REGEX", help="Its output must match."),
    click.option("--forbid-output", metavar="REGEX", help="Its output must not match."),
    click.option("--metric", "metrics", multiple=True, metavar="NAME=MIN", help="A number that a JSON line of its output must reach. Repeatable."),
    click.option("--level", type=click.Choice(["quick", "standard", "full"]), default="quick", show_default=True, help="Probe level of the verification; searching is quick."),
    click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, metavar="N", help="Run N commands at once; probes run one by one."),
    click.option("--repeats", type=click.IntRange(1, 100), metavar="N", help="How often the result must pass: 5 times without this, and once where nothing is needed."),
    click.option("--retries", type=click.IntRange(0, 20), default=2, show_default=True, metavar="N", help="How often a failure that decides is tried again."),
    click.option("--budget", metavar="RUNS|MINUTES", help="Stop after 40 runs, 15m or 2h with the best set known."),
    click.option("--timeout", type=Seconds(min=1), default=600, show_default=True, metavar="SECONDS", help="When a command counts as failed."),
    click.option("--record-evidence", is_flag=True, help="Trace one run first, as root: which calls and capabilities it asks for."),
    click.option("--resume", is_flag=True, help="Go on with what an interrupted search remembered."),
    click.option("--emit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the minimal profile."),
    click.option("--seccomp", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Make a seccomp profile with the system calls that the job needs."),
    click.option("--seccomp-base", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Make it from this profile, not from the engine's own."),
    click.option("--certificate", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write what was found, with every run, as JSON."),
    click.option("--form", "forms", multiple=True, type=click.Choice(["docker", "compose", "kubernetes"]), help="Show the minimal side in this form too. Repeatable."),
    click.option("--no-run", is_flag=True, help="Show how the two sides differ, and run nothing."),
    click.option("--stale", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Say what has changed since that certificate; exit 1 if anything has."),
    pull_option,
    unlocked_option,
    share_option,
    wait_option,
)  # fmt: skip


def _search_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_SEARCH):
        function = option(function)
    return function


@click.command(
    "diff-privileges",
    cls=_WithCommand,
    short_help="Find by experiment which privileges a job needs.",
    context_settings=command_context(),
    options_metavar="[OPTIONS]",
)
@click.argument("profile", required=False)
@click.argument("minimal", required=False)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND]...")
@_search_options
@json_option
@ask_options
def command(*, ask: Callable[..., "Ask"], minimal: str | None, **options: Any) -> int:
    """Run PROFILE's job with fewer and fewer privileges, and say which it needs.

    The job is COMMAND, under what --expect-… and --metric ask of it, or the probe.
    Exit code 0 when it passes with MINIMAL's rights (the baseline's without MINIMAL), 1 when it needs more.

    \b
    Examples:
      rocmrun diff-privileges train-multi-gpu --emit minimal.toml
      rocmrun diff-privileges demo --recipe amd -- python3 job.py
      rocmrun diff-privileges demo --metric busbw=200 --expect-output 'loss [0-9.]+' -- python3 bench.py
      rocmrun diff-privileges dev-shell demo --no-run --set work_dir=/srv/work
      rocmrun diff-privileges --stale certificate.json
    """
    ask = partial(ask, unlocked=options["unlocked"], pull=options["pull"] == "missing")
    asked = ask()
    if not asked.profile:
        return _as_certified(ask, options)
    other = _other(asked, minimal)
    if options["no_run"]:
        return _no_run(asked, other, options)
    if options["stale"]:
        return _stale(asked, other, options["stale"], as_json=options["as_json"])
    return _run(asked, other, options)


def _as_certified(ask: Callable[..., "Ask"], options: dict[str, Any]) -> int:
    """Compare a certificate with what it names itself: nothing on the command line does."""
    path: Path | None = options["stale"]
    if path is None or options["no_run"]:
        raise click.MissingParameter(param_hint="'PROFILE'", param_type="argument")
    from rocmrun.errors import ProfileNotFound
    from rocmrun.usecases.privilege_statics import read_certificate

    old = read_certificate(_text(path), str(path))
    asked = ask(profile=old.profile)
    try:
        return _stale(
            asked, _other(asked, old.minimal_profile or None), path, as_json=options["as_json"]
        )
    except ProfileNotFound as error:
        named = " and ".join(filter(None, (old.profile, old.minimal_profile)))
        msg = f"{path} was made for {named}: {error.message}"
        hint = f"name the profile, or its file: rocmrun diff-privileges PROFILE --stale {path}"
        raise ProfileNotFound(msg, hint=hint, details=error.details) from error


def _other(ask: "Ask", minimal: str | None) -> "Ask | None":
    """Return the request for the minimal side's profile: the command line's changes are the job's."""
    from rocmrun.core.command_line import Options

    if minimal is None:
        return None
    return replace(ask, profile=minimal, options=Options(), narrow=(), debug=False)


def _no_run(ask: "Ask", other: "Ask | None", options: dict[str, Any]) -> int:
    from rocmrun.console.diff_privileges import print_static, static_as_json
    from rocmrun.console.output import emit_json, out, warn
    from rocmrun.errors import EngineUnreachable
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.privilege_statics import static_difference

    try:
        engine = connect()
    except EngineUnreachable as error:
        warn(f"{error.message}: what only an engine can tell is left out")
        engine = None
    difference = static_difference(ask, other, options["recipe"], engine)
    if options["as_json"]:
        emit_json(static_as_json(difference))
    else:
        print_static(out(), difference)
    return 0


def _stale(ask: "Ask", other: "Ask | None", path: Path, *, as_json: bool) -> int:
    from rocmrun.console.output import JSON_VERSION, emit, emit_json
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.privilege_statics import stale

    changes = stale(_text(path), str(path), ask, other, connect())
    if as_json:
        emit_json({"v": JSON_VERSION, "ok": True, "stale": bool(changes), "changes": changes})
    else:
        for change in changes or ("nothing that it depends on has changed",):
            emit(change)
    return 1 if changes else 0


def _text(path: Path) -> str:
    from rocmrun.errors import InputError
    from rocmrun.system.files import read_text

    text = read_text(path, InputError)
    if text is None:
        msg = f"certificate {path} does not exist"
        raise InputError(msg)
    return text


def _run(ask: "Ask", other: "Ask | None", options: dict[str, Any]) -> int:
    from rocmrun.console.diff_privileges import found_as_json, print_found
    from rocmrun.console.output import emit_json, out
    from rocmrun.console.voice import voice
    from rocmrun.usecases.diff_privileges import diff_privileges
    from rocmrun.usecases.engines import connect
    from rocmrun.usecases.privilege_request import DiffRequest, check_emit, check_request
    from rocmrun.usecases.privilege_trials import Budget
    from rocmrun.usecases.record_evidence import Recorder
    from rocmrun.usecases.run_report import check_result_paths

    request = DiffRequest(
        ask=ask,
        minimal=other,
        recipe=options["recipe"],
        oracle=_oracle(ask, options),
        level=options["level"],
        settings=_settings(options),
        budget=Budget.parse(options["budget"]) if options["budget"] else Budget(),
        timeout_seconds=options["timeout"],
        share=options["share"],
        wait_seconds=options["wait_seconds"],
        resume=options["resume"],
        seccomp=_absolute(options["seccomp"]),
        seccomp_base=_absolute(options["seccomp_base"]),
        recorder=Recorder() if options["record_evidence"] else None,
    )
    check_request(request)
    check_result_paths({f"--{name}": options[name] for name in ("seccomp", "emit", "certificate")})
    if options["emit"]:
        check_emit(options["emit"])
    heard = voice()
    found = diff_privileges(request, connect=connect, voice=heard)
    _write(found, options, heard.say)
    if options["as_json"]:
        emit_json(found_as_json(found))
    else:
        print_found(out(), found, options["forms"])
    return 1 if found.certificate.needs_more or found.lacks_seccomp else 0


def _settings(options: dict[str, Any]) -> "Settings":
    from rocmrun.core.search_space import Settings

    times = options["repeats"]
    settings = Settings(jobs=options["jobs"], retries=options["retries"])
    return replace(settings, repeats=times, verify_least=True) if times else settings


def _absolute(path: Path | None) -> Path | None:
    """A plan names the file, and plans know no working directory."""
    return path and path.absolute()


def _write(found: "Found", options: dict[str, Any], say: Callable[[str], None]) -> None:
    from rocmrun.core.privilege_forms import profile_form
    from rocmrun.errors import ReportUnwritable
    from rocmrun.system.files import write_atomic

    if found.seccomp_text:
        write_atomic(options["seccomp"], found.seccomp_text, error=ReportUnwritable)
        say(f"wrote {options['seccomp']}")
    if emit := options["emit"]:
        directory = str(emit.absolute().parent)
        text = profile_form(found.profile, found.certificate, directory=directory)
        write_atomic(emit, text, error=ReportUnwritable)
        say(f"wrote {emit}: rocmrun launch {shlex.quote(_as_profile(emit))}")
    if options["certificate"]:
        text = found.certificate.model_dump_json(indent=2) + "\n"
        write_atomic(options["certificate"], text, error=ReportUnwritable)
        say(f"wrote {options['certificate']}")


def _as_profile(path: Path) -> str:
    """Return what a command takes for the profile in *path*: a word without a slash would be a name."""
    return str(path) if "/" in str(path) else f"./{path}"


def _oracle(ask: "Ask", options: dict[str, Any]) -> "CommandOracle | None":
    """Return what a command must do; None, for the probe, where nothing is said of one."""
    from rocmrun.core.oracle import CommandOracle, parse_metric, parse_pattern

    output, forbidden = options["expect_output"], options["forbid_output"]
    expects = (options["expect_exit"], output, forbidden, options["metrics"] or None)
    if not ask.options.command and all(value is None for value in expects):
        return None
    return CommandOracle(
        exit_code=options["expect_exit"] or 0,
        output=parse_pattern("--expect-output", output),
        forbidden=parse_pattern("--forbid-output", forbidden),
        metrics=tuple(parse_metric(text) for text in options["metrics"]),
    )
