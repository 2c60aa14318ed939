"""`rocmrun completion`: the script that lets a shell complete commands and options."""

import click

from rocmrun.cli.main import command_context


@click.command(
    "completion",
    short_help="Print the shell completion script.",
    context_settings=command_context(),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(*, shell: str) -> int:
    """Print the completion script of SHELL.

    \b
    Examples:
      source <(rocmrun completion bash)
      rocmrun completion fish > ~/.config/fish/completions/rocmrun.fish
    """
    from click.shell_completion import get_completion_class

    from rocmrun.cli.main import cli
    from rocmrun.console.output import emit

    completion = get_completion_class(shell)
    if completion is None:
        msg = f"click has no completion for {shell}"
        raise click.ClickException(msg)
    emit(completion(cli, {}, "rocmrun", "_ROCMRUN_COMPLETE").source())
    return 0
