"""What click finds wrong with a command line, told as every other failure is."""

import click

from rocmrun.errors import UsageError

_AFTER_DASHES = "a command and its options go after --: rocmrun launch PROFILE -- COMMAND …"


def usage_error(error: click.ClickException, command: str) -> UsageError:
    """Return *error* with a slug and a hint.

    Args:
        error: What click raised.
        command: The command that was called; of `launch` an unknown option may be docker's, or the workload's.
    """
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "rocmrun"
    details, hint = [], f"{path} --help"
    if isinstance(error, click.MissingParameter) and context is not None:
        details.append(" ".join(context.get_usage().split()))
    if command == "launch" and isinstance(error, click.NoSuchOption):
        # Only this mistake pays for the table.
        from rocmrun.core.docker_run.reasons import why_no_option

        if why := why_no_option(error.option_name):
            details.append(f"docker's {error.option_name}: {why}")
        hint = _AFTER_DASHES
    return UsageError(_in_our_style(error.format_message()), details=tuple(details), hint=hint)


def _in_our_style(text: str) -> str:
    """Return click's sentences as one that begins small and has no full stop."""
    text = text.replace(". Did you mean ", "; did you mean ")
    return text[:1].lower() + text[1:].removesuffix(".")
