"""The package's table of what is known about each kind of failure."""

from importlib.resources import files


def read_findings() -> str:
    """Return the text of findings.toml."""
    return (files("rocmrun") / "data" / "findings.toml").read_text(encoding="utf-8")
