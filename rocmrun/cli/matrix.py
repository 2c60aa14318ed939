"""`rocmrun matrix`: AMD's support matrix, to read."""

from pathlib import Path

import click

from rocmrun.cli.main import command_context
from rocmrun.cli.options import json_option, lockfile_option


@click.command(
    "matrix",
    short_help="Read AMD's support matrix.",
    context_settings=command_context(),
)
@click.option(
    "--gpu", metavar="GPU", help="A model (MI300X), a target (gfx942) or a PCI id (0x74a1)."
)
@click.option("--rocm", metavar="VERSION", help="One release, whole.")
@click.option("--os", "system", metavar="SYSTEM", help="A distribution: 'ubuntu 24.04'.")
@click.option("--age", is_flag=True, help="Say only how old the data are.")
@lockfile_option
@json_option
def command(
    *,
    gpu: str | None,
    rocm: str | None,
    system: str | None,
    age: bool,
    lockfile: Path | None,
    as_json: bool,
) -> int:
    """Show which GPUs, systems, PyTorch versions and drivers AMD lists for each ROCm release.

    What was not found is said so: nothing here is guessed. `rocmrun plan` judges a profile by it.

    \b
    Examples:
      rocmrun matrix
      rocmrun matrix --gpu MI300X
      rocmrun matrix --rocm 7.2.4 --os "ubuntu 24.04"
    """
    from rocmrun.console.matrix import age_line, matrix_as_json, print_matrix
    from rocmrun.console.output import emit, emit_json, out, warn
    from rocmrun.core.support.query import OLD_AFTER_DAYS
    from rocmrun.usecases.matrix import read_matrix

    reading = read_matrix(gpu=gpu, rocm=rocm, system=system, lockfile=lockfile)
    if as_json:
        emit_json(matrix_as_json(reading))
    elif age:
        emit(age_line(reading))
    else:
        print_matrix(out(), reading, whole=rocm is not None)
    if reading.old:
        warn(
            f"these data are older than {OLD_AFTER_DAYS} days ({age_line(reading)}): a newer rocmrun may know more"
        )
    return 0
