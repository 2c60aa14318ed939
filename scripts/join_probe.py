"""Join the probe's parts into the one file that travels: into containers on stdin, onto pods by a copy.

The parts are modules of rocmrun/probe/parts that import each other by name. In the joined file they
follow one another, each after what it imports, and the imports between them are left out: so no two
parts may define the same name at the top.

    python -m scripts.join_probe            write rocmrun/probe/gpu_probe.py
    python -m scripts.join_probe --check    exit with 1 when it is not what the parts make
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "rocmrun.probe.parts"
LAST = "entry"
ROOT = Path(__file__).parents[1]
PARTS = ROOT / "rocmrun" / "probe" / "parts"
JOINED = ROOT / "rocmrun" / "probe" / "gpu_probe.py"

HEAD = '''#!/usr/bin/env python3
"""{doc}"""

# Joined from rocmrun/probe/parts by `make probe`: edit those.

from __future__ import annotations

{imports}
'''
RULE = "\n\n# --- {name}: {doc} ---\n"


@dataclass(frozen=True)
class Part:
    """One module: its first words, what it imports, and its code."""

    name: str
    doc: str
    needs: tuple[str, ...]
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    defines: tuple[str, ...]
    code: str


def read_part(path: Path) -> Part:
    """Take a module apart."""
    text = path.read_text()
    tree = ast.parse(text, filename=str(path), feature_version=(3, 9))
    lines = text.splitlines(keepends=True)
    needs: list[str] = []
    imports: list[ast.Import | ast.ImportFrom] = []
    defines: list[str] = []
    begin = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            needs.append(str(node.module).removeprefix(f"{PACKAGE}."))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                imports.append(node)
        else:
            defines += names_of(node)
            continue
        begin = node.end_lineno or 0
    return Part(
        name=path.stem,
        doc=ast.get_docstring(tree, clean=False) or "",
        needs=tuple(needs),
        imports=tuple(imports),
        defines=tuple(defines),
        code="".join(lines[begin:]).strip("\n") + "\n",
    )


def names_of(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def in_order(parts: dict[str, Part]) -> list[Part]:
    """Return the parts, each after those that it imports."""
    done: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            sys.exit(f"parts import each other: {' > '.join((*above, name))}")
        if name not in done:
            for other in sorted(parts[name].needs):
                visit(other, (*above, name))
            done.append(name)

    visit(LAST, ())
    if missing := sorted(set(parts) - set(done)):
        sys.exit(f"no part imports {', '.join(missing)}")
    return [parts[name] for name in done]


def merged_imports(parts: list[Part]) -> list[str]:
    """Return the import lines of all parts, each module once."""
    modules: set[str] = set()
    names: dict[str, set[str]] = {}
    for node in (node for part in parts for node in part.imports):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        else:
            names.setdefault(str(node.module), set()).update(alias.name for alias in node.names)
    return [f"import {module}" for module in sorted(modules)] + [
        f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names)
    ]


def joined() -> str:
    """Return the text of gpu_probe.py."""
    parts = {p.stem: read_part(p) for p in sorted(PARTS.glob("*.py")) if p.stem != "__init__"}
    ordered = in_order(parts)
    owners: dict[str, str] = {}
    for part in ordered:
        for name in part.defines:
            if name in owners:
                sys.exit(f"{name} is defined in {owners[name]} and in {part.name}")
            owners[name] = part.name
    text = HEAD.format(doc=parts[LAST].doc, imports="\n".join(merged_imports(ordered)))
    for part in ordered:
        doc = "what starts it" if part.name == LAST else part.doc.partition("\n")[0].rstrip(".")
        text += RULE.format(name=part.name, doc=doc) + "\n" + part.code
    ast.parse(text, feature_version=(3, 9))
    return text


def main() -> None:
    """Write the file, or compare it."""
    text = joined()
    if sys.argv[1:] == ["--check"]:
        if JOINED.read_text() != text:
            sys.exit("rocmrun/probe/gpu_probe.py is not what its parts make: run `make probe`")
    else:
        JOINED.write_text(text)


if __name__ == "__main__":
    main()
