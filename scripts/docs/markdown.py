"""The Markdown that generated parts are made of."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; "" when there are no rows."""
    lines = [head, ["---"] * len(head), *rows]
    if len(lines) == 2:  # head and rule alone
        return ""
    cells = (" | ".join(cell.replace("|", r"\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells)


def fenced(language: str, lines: Iterable[str]) -> str:
    """Return a block of code."""
    return "\n".join((f"```{language}", *lines, "```"))


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives *heading*: lower case, blanks to dashes, punctuation dropped."""
    kept = (letter for letter in heading.lower() if letter.isalnum() or letter in " -_")
    return "".join(kept).strip().replace(" ", "-")
