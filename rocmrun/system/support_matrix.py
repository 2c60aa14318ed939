"""The package's copy of AMD's support matrix."""

from importlib.resources import files


def read_support_matrix() -> str:
    """Return the text of support-matrix.json; every release in it names its sources."""
    return (files("rocmrun") / "data" / "support-matrix.json").read_text(encoding="utf-8")
