"""A command that fails as it is told, to be planted in the table of commands."""

import errno

import click

FAILURES: dict[str, type[BaseException]] = {
    "bug": ZeroDivisionError,
    "interrupt": KeyboardInterrupt,
    "abort": click.Abort,
    "pipe": BrokenPipeError,
}


@click.command("boom", short_help="Fail.")
@click.argument("how")
@click.option("--json", "as_json", is_flag=True)
def command(*, how: str, as_json: bool) -> int:
    """Fail in the way of HOW; a number is returned."""
    if how.isdigit():
        return int(how)
    if how == "epipe":
        raise OSError(errno.EPIPE, "nobody reads")
    msg = f"as asked, {'with' if as_json else 'without'} JSON"
    raise FAILURES[how](msg)
