"""The access forecast as people read it: each node and mount source, and what opening it gives inside."""

from rich.console import Console

from rocmrun.console.tables import indented_table, print_table
from rocmrun.core.access import AccessForecast
from rocmrun.core.text import printable


def print_access(console: Console, access: AccessForecast) -> None:
    """Print what the container's user may open; nothing where there is nothing to open."""
    if not access.nodes and not access.mounts:
        return
    groups = ", ".join(map(str, access.groups))
    console.print()
    console.print(f"Access inside, as uid {access.uid} with groups {groups}:", style="bold")
    table = indented_table()
    for node in access.nodes:
        table.add_row(printable(node.path), f"{node.owner} {node.mode}".strip(), _text(node.errno, node.sentence))  # fmt: skip
    for mount in access.mounts:
        end = mount.components[-1]
        table.add_row(f"{printable(mount.source)} → {printable(mount.target)}", f"{end.owner} {end.mode}", _text(mount.errno, mount.sentence))  # fmt: skip
    print_table(console, table)
    for mount in access.mounts:
        for fix in mount.fixes:
            console.print(f"    {printable(mount.target)} would open with: {printable(fix)}", markup=False)  # fmt: skip
    if access.hidden:
        count = len(access.hidden)
        nodes = "1 other render node" if count == 1 else f"{count} other render nodes"
        console.print(f"  {nodes} of this host: ENOENT, not passed, so hidden", markup=False)


def _text(errno: str | None, sentence: str) -> str:
    word = {"0": "opens", None: "not judged"}.get(errno, errno or "")
    return printable(f"{word}: {sentence}" if sentence else word)
