"""The package's table of AMD GPUs: which models there are, and what each can do at most."""

from importlib.resources import files


def read_gpu_table() -> str:
    """Return the text of gpus.json; every number in it names its source."""
    return (files("rocmrun") / "data" / "gpus.json").read_text(encoding="utf-8")
