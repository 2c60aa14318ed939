"""Tables of README.md and docs/errors.md that follow from the code: commands, keys, codes."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rocmrun.__main__ import run
from rocmrun.cli.main import COMMANDS
from rocmrun.core.profile.keys import json_schema, profile_keys
from rocmrun.core.support.judge import DECISIONS, ORDER
from rocmrun.errors import RocmrunError, all_slugs
from rocmrun.system.profile_search import ProfileDirectory, ProfileSearch, shipped_directory
from rocmrun.usecases.profiles import show_profile
from scripts.docs.markdown import fenced, table

BUG = "A bug in rocmrun: one line, and the traceback in a file."
# Codes that no error class stands for.
OTHER_CODES = {
    0: "Done. For `launch`: the workload returned 0, or runs detached.",
    70: BUG,
    125: "`launch` or `wait` itself failed, not the workload: the slug in the message says why.",
}


def commands() -> str:
    """Return every command with its summary, linked to its reference."""
    rows = [
        (f"[`{name}`](docs/commands.md#rocmrun-{name})", summary)
        for name, (_, summary) in COMMANDS.items()
    ]
    return table(("command", "what it does"), rows)


def profile() -> str:
    """Return the tables of a profile with their keys."""
    schema = json_schema()
    rows = []
    for name, node in schema["properties"].items():
        below = [key.path for key in profile_keys() if re.match(rf"{name}[.[]", key.path)]
        if not below:
            continue
        written = f"[[{name}]]" if below[0].startswith(f"{name}[]") else f"[{name}]"
        keys = ", ".join(f"`{path.partition('.')[2].removeprefix('NAME.')}`" for path in below)
        rows.append((f"`{written}`", f"{_docstring(schema, node)} {keys}"))
    return table(("table", "what it says"), rows)


def shipped_profiles() -> str:
    """Return the shipped profiles with what each is for and what it needs to be told."""
    shipped = ProfileDirectory(path=shipped_directory(), origin="shipped")
    search = ProfileSearch(directories=(shipped,), working_directory=Path("/"), home=None)
    rows = []
    for file in search.all():
        shown = show_profile(file.name, search=search)
        needs = " ".join(f"`--set {name}=…`" for name in shown.missing)
        rows.append((f"`{file.name}`", shown.data["description"], needs))
    return table(("profile", "for", "needs"), rows)


def exit_codes() -> str:
    """Return every exit code with its meaning and its slugs."""
    meanings = dict(OTHER_CODES)
    for _, code, doc in _errors():
        meanings.setdefault(code, doc)
    rows = []
    for code in sorted(meanings):
        slugs = [slug for slug, value in all_slugs().items() if value == code]
        links = ", ".join(f"[{slug}](docs/errors.md#{slug})" for slug in slugs)
        rows.append((str(code), f"{meanings[code]} {links}".rstrip()))
    return table(("code", "meaning, and slugs"), rows)


def json_error() -> str:
    """Return what a command prints under --json when it fails."""
    words = ["plan", "demo", "--offline", "-p", "8000:8000", "--json"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        run(words)
    return fenced("console", [f"$ rocmrun {' '.join(words)}", *printed.getvalue().splitlines()])


def errors() -> str:
    """Return every slug, linked to its section, with its exit code and its meaning."""
    rows = [(f"[{slug}](#{slug})", str(code), doc) for slug, code, doc in _errors()]
    return table(("slug", "code", "meaning"), [*rows, ("[bug](#bug)", "70", BUG)])


def support_policies() -> str:
    """Return what each policy does about each verdict of the support matrix."""
    rows = [(verdict, *(DECISIONS[policy][verdict] for policy in DECISIONS)) for verdict in ORDER]
    return table(("answer", *(f'`"{policy}"`' for policy in DECISIONS)), rows)


def _errors(error: type[RocmrunError] = RocmrunError) -> Iterator[tuple[str, int, str]]:
    """Yield slug, exit code and the first line of the docstring of every error, parents first."""
    if "slug" in vars(error):
        yield error.slug, error.exit_code, (error.__doc__ or "").partition("\n")[0]
    for child in error.__subclasses__():
        yield from _errors(child)


def _docstring(schema: dict[str, Any], node: dict[str, Any]) -> str:
    """Return the first line about the model behind a table, a list of tables or a table of tables."""
    found = re.search(r"#/\$defs/(\w+)", str(node))
    if found is None:
        msg = f"no model behind {node}"
        raise ValueError(msg)
    return str(schema["$defs"][found[1]]["description"]).partition("\n")[0]
