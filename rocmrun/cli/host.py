"""rocmrun host: what this machine has to offer."""

from pathlib import Path

import click

from rocmrun.cli.main import command_context


@click.command(
    "host",
    short_help="Show the GPUs, nodes and settings of this machine.",
    context_settings=command_context(),
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("/"),
    metavar="DIR",
    help="Read copies of /sys, /proc, /dev and /etc below DIR instead.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
def command(*, root: Path, as_json: bool) -> None:
    """Show each GPU's HIP and amd-smi index, PCI address and render node side by side.

    The saved JSON lets a plan for this machine be made on another.

    \b
    Examples:
      rocmrun host
      rocmrun host --json > host.json
    """  # \b is click's mark for lines that stay as they are
    from rocmrun.console.output import emit, emit_json
    from rocmrun.system.sysfs import read_host

    host = read_host(root)
    if as_json:
        from rocmrun.core.host_json import host_to_json

        emit_json({"v": 1, "ok": True, **host_to_json(host)})
        return
    from rocmrun.console.host import host_lines

    for line in host_lines(host):
        emit(line)
