"""The import rules hold, and each of them can break: a violation planted in a copy of the package is found."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rocmrun"
LINT = Path(sys.executable).with_name("lint-imports")

LAYERS = "cli > console | usecases > system > core > errors"
DOCKER = "only system.engine imports docker"
PURE = "core is pure"
INDEPENDENT = "system modules do not import each other"
PROBE_ALONE = "the probe imports nothing of ours"
PROBE_UNUSED = "nobody imports the probe, or what only the probe needs"

# Where a line is added, the line, and the one contract that it breaks.
VIOLATIONS = (
    ("core/text.py", "import rocmrun.console", LAYERS),
    ("errors.py", "import rocmrun.core.text", LAYERS),
    ("system/files.py", "import rocmrun.console.output", LAYERS),
    ("console/voice.py", "import rocmrun.usecases.clean", LAYERS),
    ("usecases/clean.py", "import rocmrun.console.voice", LAYERS),
    ("usecases/clean.py", "import docker", DOCKER),
    ("system/files.py", "import docker.errors", DOCKER),
    ("__main__.py", "import docker", DOCKER),
    ("core/text.py", "import os", PURE),
    ("core/text.py", "from datetime import datetime", PURE),
    ("core/text.py", "import rich.table", PURE),
    ("system/files.py", "import rocmrun.system.engine", INDEPENDENT),
    ("system/sysfs/tree.py", "import rocmrun.system.files", INDEPENDENT),
    ("probe/gpu_probe.py", "import rocmrun.errors", PROBE_ALONE),
    ("usecases/clean.py", "import rocmrun.probe.gpu_probe", PROBE_UNUSED),
    ("core/text.py", "import torch", PROBE_UNUSED),
)


def broken_contracts(directory: Path) -> set[str]:
    """Return the names of the contracts that the package in *directory* breaks."""
    done = subprocess.run(
        [LINT, "--cache-dir", "cache", "--no-logo"],
        cwd=directory,
        env={"PYTHONPATH": str(directory), "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    broken = set(
        re.findall(r"^(.*) BROKEN(?: \(\d+ ignored imports?\))?$", done.stdout, re.MULTILINE)
    )
    assert (done.returncode == 0) == (not broken)
    return broken


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and of its contracts; what was read of a module counts until it is written."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, folder / "rocmrun", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_every_contract_holds(copy: Path) -> None:
    assert broken_contracts(copy) == set()


@pytest.mark.parametrize(("module", "line", "contract"), VIOLATIONS)
def test_a_planted_violation_breaks_its_contract(
    copy: Path, module: str, line: str, contract: str
) -> None:
    """That one, and no other."""
    path = copy / "rocmrun" / module
    whole = path.read_text(encoding="utf-8")
    try:
        path.write_text(f"{whole}\n{line}\n", encoding="utf-8")

        assert broken_contracts(copy) == {contract}
    finally:
        path.write_text(whole, encoding="utf-8")


def test_core_opens_nothing_and_prints_nothing() -> None:
    """What import rules cannot see: built-in functions, and the half of pathlib that touches files."""
    found = [
        f"{path.name}:{node.lineno}"
        for path in sorted((PACKAGE / "core").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Name) and node.id in {"open", "print", "input", "Path"})
        or (isinstance(node, ast.ImportFrom) and node.module == "pathlib" and _touches_files(node))
    ]

    assert found == []


def _touches_files(node: ast.ImportFrom) -> bool:
    return any(not alias.name.startswith("Pure") for alias in node.names)


def test_only_the_consoles_print() -> None:
    """stdout and stderr have one home; the foreground relay writes bytes to descriptors, not text."""
    writers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "probe" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr == "write"
        and ast.unparse(node.value) in {"sys.stdout", "sys.stderr"}
    }

    assert [name for name in sorted(writers) if not name.startswith("console/")] == ["__main__.py"]
