"""How profiles look on a terminal and as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rocmrun.console.output import emit, say, warn
from rocmrun.core.profile.keys import in_order
from rocmrun.core.profile.loaded import DEFAULT, shadow_notes
from rocmrun.core.profile.merge import ProfileFile, nearest
from rocmrun.core.profile.summary import ProfileSummary, ShownProfile
from rocmrun.core.text import printable
from rocmrun.core.toml import KeyPath, dump_toml, key_path

_LOCKED = {True: "locked", False: "not locked", None: "-"}


def print_list(summaries: Sequence[ProfileSummary]) -> None:
    """Print one line a profile; the description comes last, so that lines can be long."""
    rows = [("NAME", "ACCELERATOR", "IMAGE", "FROM", "DESCRIPTION")]
    rows += [_row(summary) for summary in summaries]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        emit(printable("  ".join((*cells, row[-1]))).rstrip())
    _say_shadows([summary.file for summary in summaries])
    if any(summary.problem for summary in summaries):
        warn("some profiles cannot be used; see them in full with: rocmrun profiles check")


def print_shown(shown: ShownProfile) -> None:
    """Print the merged profile as TOML, with who set each value as a comment."""
    chain = " → ".join(f"{file.name} ({file.path})" for file in shown.chain)
    emit(printable(f"# {chain}"))
    emit("")
    text = dump_toml(_without_empty_tables(in_order(shown.data)), _comments(shown.provenance))
    emit(printable(text, limit=len(text)).rstrip())
    _say_shadows(shown.chain)
    for name, help_text in shown.missing.items():
        say(f"parameter {name} is not set: {help_text}")


def print_checked(files: Sequence[ProfileFile]) -> None:
    """Print one line for each profile that is right."""
    for file in files:
        emit(printable(f"{file.name}: ok ({file.path})"))
    _say_shadows(files)


def print_schema(schema: Mapping[str, Any]) -> None:
    """Print the JSON schema; the file in the repository is this very text."""
    emit(json.dumps(schema, indent=2, ensure_ascii=False))


def summaries_to_json(summaries: Sequence[ProfileSummary]) -> list[dict[str, Any]]:
    """Return the list for --json."""
    return [
        file_to_json(summary.file)
        | {
            "description": summary.description,
            "accelerator": summary.accelerator,
            "image": summary.image,
            "locked": summary.locked,
            "problem": summary.problem,
        }
        for summary in summaries
    ]


def shown_to_json(shown: ShownProfile) -> dict[str, Any]:
    """Return the merged profile for --json; `sources` has every key that somebody set."""
    return {
        **file_to_json(shown.chain[0]),
        "chain": [file_to_json(file) for file in shown.chain],
        "profile": shown.data,
        "sources": shown.provenance,
        "missing": shown.missing,
    }


def file_to_json(file: ProfileFile) -> dict[str, Any]:
    """Return where a profile is, for --json."""
    return {
        "name": file.name,
        "path": file.path,
        "origin": file.origin,
        "shadows": file.shadows,
    }


def _row(summary: ProfileSummary) -> tuple[str, str, str, str, str]:
    return (
        summary.file.name,
        summary.accelerator or "-",
        _LOCKED[summary.locked] if summary.image else "no image",
        summary.file.origin,
        " ".join((summary.problem or summary.description).split()),
    )


def _without_empty_tables(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_empty_tables(value) if isinstance(value, Mapping) else value
        for key, value in data.items()
        if value != {}
    }


def _comments(provenance: Mapping[str, str]) -> Callable[[KeyPath], str]:
    def comment(path: KeyPath) -> str:
        key = key_path(path)
        # What --set filled in is known of an item; a line of its own has only the list.
        items = [
            who for other, who in provenance.items() if other.startswith((f"{key}[", f"{key}."))
        ]
        return "; ".join(dict.fromkeys(items)) or nearest(provenance, key) or DEFAULT

    return comment


def _say_shadows(files: Sequence[ProfileFile]) -> None:
    for note in shadow_notes(files):
        warn(note)
