"""Files that come with the package, as text: tables whose every fact names its source, and the probe."""

from importlib.resources import files


def read_gpu_table() -> str:
    """Return gpus.json: which models there are, and what each can do at most."""
    return _data("gpus.json")


def read_support_matrix() -> str:
    """Return support-matrix.json, AMD's published support."""
    return _data("support-matrix.json")


def read_findings() -> str:
    """Return findings.toml: what is known about each kind of failure."""
    return _data("findings.toml")


def read_public_words() -> str:
    """Return public-words.txt: names that file systems, distributions, engines and ML programs share."""
    return _data("public-words.txt")


def read_system_calls() -> str:
    """Return system-calls.tsv: the numbers of system calls, by architecture."""
    return _data("system-calls.tsv")


def read_probe_source() -> bytes:
    """Return gpu_probe.py as it is sent into containers: read, and never imported."""
    return (files("rocmrun") / "probe" / "gpu_probe.py").read_bytes()


def _data(name: str) -> str:
    return (files("rocmrun") / "data" / name).read_text(encoding="utf-8")
