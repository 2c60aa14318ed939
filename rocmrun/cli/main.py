"""The command group. Commands are imported when they run, so that --help imports no docker, rich or pydantic."""

import importlib
from typing import Any, Literal

import click

from rocmrun import __version__
from rocmrun.console.output import settings
from rocmrun.core.text import printable

COMMANDS: dict[str, tuple[str, str]] = {
    "launch": ("rocmrun.cli.launch", "Start a locked image, hardened, after proving its GPUs."),
    "lock": ("rocmrun.cli.lock", "Pin the images of profiles to digests."),
    "plan": ("rocmrun.cli.plan", "Show every right a launch would grant, with its reason."),
    "probe": (
        "rocmrun.cli.probe",
        "Prove the GPUs in a container with exactly the profile's rights.",
    ),
    "ps": ("rocmrun.cli.ps", "List workloads."),
    "logs": ("rocmrun.cli.logs", "Show what a detached or kept workload printed."),
    "stop": ("rocmrun.cli.stop", "Stop workloads."),
    "wait": ("rocmrun.cli.wait", "Wait until a workload has ended and return its exit code."),
    "diff-privileges": (
        "rocmrun.cli.diff_privileges",
        "Find by experiment which privileges a job needs.",
    ),
    "host": ("rocmrun.cli.host", "Show the GPUs, nodes and settings of this machine."),
    "doctor": (
        "rocmrun.cli.doctor",
        "Find out what is wrong on this host, with a profile, or behind an error text.",
    ),
    "explain": ("rocmrun.cli.explain", "Show what is known about a kind of failure."),
    "matrix": ("rocmrun.cli.matrix", "Read AMD's support matrix."),
    "profiles": ("rocmrun.cli.profiles", "List, show, check and write profiles."),
    "fetch": (
        "rocmrun.cli.fetch",
        "Download a model with the locked image, apart from serving.",
    ),
    "pull": ("rocmrun.cli.pull", "Fetch the locked images of profiles."),
    "clean": ("rocmrun.cli.clean", "Remove what a crash left behind."),
    "completion": ("rocmrun.cli.completion", "Print the shell completion script."),
}


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the commands in the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return the command of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the closest command when there is none of that name."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            ctx.fail(f"No such command '{printable(name, 100)}'.{hint}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ROCMRUN"},
    epilog="Start here:  rocmrun lock demo && rocmrun plan demo && rocmrun launch demo",
)
@click.version_option(__version__, "--version", prog_name="rocmrun")
@click.option("-v", "--verbose", is_flag=True, help="Say more on stderr.")
@click.option("-q", "--quiet", is_flag=True, help="Say only warnings and errors.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour of messages; NO_COLOR is honoured too.",
)
@click.option("--traceback", is_flag=True, help="Show Python tracebacks of errors.")
def cli(
    *, verbose: bool, quiet: bool, color: Literal["auto", "always", "never"], traceback: bool
) -> None:
    """Start a locked image on AMD GPUs with no more rights than the job needs, and prove every GPU first."""
    settings.verbose, settings.quiet, settings.color = verbose, quiet, color
    click.get_current_context().ensure_object(dict)["traceback"] = traceback


def command_context(**extra: Any) -> dict[str, Any]:
    """Return the context settings that every command shares."""
    return {"help_option_names": ["-h", "--help"], **extra}
