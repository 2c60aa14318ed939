"""The exposure of a container as people read it: what it is made of, largest part first."""

from rich.console import Console

from rocmrun.console.tables import indented_table, print_table
from rocmrun.core.exposure.score import HIGHEST, Exposure
from rocmrun.core.text import printable


def exposure_line(exposure: Exposure) -> str:
    """Return total and band in one line."""
    floor = (
        f", at least {exposure.floor.value:g}: {exposure.floor.reason}" if exposure.floor else ""
    )
    return f"{exposure.total:.1f} of {HIGHEST:g}, {exposure.band}{floor} ({exposure.version})"


def print_exposure(console: Console, exposure: Exposure) -> None:
    """Print each right that adds to the total, by how much, and what dropping it alone would gain."""
    console.print(f"Exposure {exposure_line(exposure)}:", style="bold")
    table = indented_table(headings=True)
    table.add_column("adds", justify="right")
    table.add_column("if dropped", justify="right")
    table.add_column("what")
    for row in exposure.rows:
        if row.contribution:
            gain = f"-{row.gain:.2f}" if row.gain else "0"
            table.add_row(f"{row.contribution:.2f}", gain, printable(row.sentence))
    print_table(console, table)
    silent = sum(1 for row in exposure.rows if row.applies and not row.contribution)
    console.print(f"  {silent} other kinds of right add nothing", markup=False)
    for row in exposure.rows:
        if not row.applies:
            console.print(f"  not applicable: {row.id}, {row.sentence}", markup=False)
