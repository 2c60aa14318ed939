"""The tables that people see: without lines, each column as wide as it needs."""

from rich.console import Console
from rich.table import Table


def plain_table(*columns: str) -> Table:
    """Return a table with a heading for each of *columns*."""
    return Table(*columns, box=None, pad_edge=False)


def indented_table(*, headings: bool = False) -> Table:
    """Return a table that stands below a line of text."""
    return Table(box=None, pad_edge=False, show_header=headings, padding=(0, 2, 0, 2))


def print_table(console: Console, table: Table) -> None:
    """Print *table* without the blanks that fill its last column."""
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        console.file.write(line.rstrip() + "\n")
