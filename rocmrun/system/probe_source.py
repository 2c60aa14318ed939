"""The probe's source, as it is sent into containers. It is read as text and never imported."""

from importlib.resources import files


def read_probe_source() -> bytes:
    """Return the bytes of gpu_probe.py."""
    return (files("rocmrun") / "probe" / "gpu_probe.py").read_bytes()
