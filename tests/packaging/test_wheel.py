"""The built wheel in an empty environment: small, complete, and at home in any directory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MOST_BYTES = 40_000_000
EXPECTED = {
    "annotated-types", "certifi", "charset-normalizer", "click", "docker", "idna", "markdown-it-py",
    "mdurl", "pydantic", "pydantic_core", "Pygments", "requests", "rich", "rocmrun",
    "typing-inspection", "typing_extensions", "urllib3",
}  # fmt: skip


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command that must succeed, without this checkout on the module path."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "ROCMRUN_"))
    }
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel and what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env")
    (wheel,) = folder.glob("rocmrun-*.whl")
    python = folder / "env" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel)
    return folder / "env"


def test_it_brings_little(installed: Path) -> None:
    """No torch, nothing unexpected, under 40 MB."""
    listing = run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        installed / "bin" / "python",
        "list",
        "--format",
        "json",
    )
    names = {entry["name"].lower().replace("_", "-") for entry in json.loads(listing)}
    files = [
        path for path in (installed / "lib").rglob("*") if path.is_file() and path.suffix != ".pyc"
    ]

    assert {name.lower().replace("_", "-") for name in EXPECTED} == names
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


@pytest.mark.parametrize(
    "name",
    [
        "profiles/base.toml",
        "profiles/demo.toml",
        "data/profile.schema.json",
        "data/rocmrun.lock",
        "data/Dockerfile.probe",
        "probe/gpu_probe.py",
        "py.typed",
    ],
)
def test_it_holds_what_it_needs_at_run_time(installed: Path, name: str) -> None:
    """Profiles, schema, lock, probe and the Dockerfile travel inside the package."""
    (package,) = (installed / "lib").glob("python3*/site-packages/rocmrun")

    assert (package / name).is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--help",), "Commands:"),
        (("--version",), "rocmrun, version"),
        (("profiles", "list"), "prod-inference"),
        (("plan", "demo", "--offline"), "Grants beyond the empty container"),
        (("plan", "demo", "--offline", "--json"), '"ok": true'),
    ],
)
def test_it_works_from_another_directory(
    installed: Path, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    """The checkout is nowhere near."""
    assert says in run(installed / "bin" / "rocmrun", *arguments, cwd=tmp_path)
