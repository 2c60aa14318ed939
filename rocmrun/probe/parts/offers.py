"""What this version of torch offers: old ones lack some of what is tried."""

from __future__ import annotations

from typing import Any

from rocmrun.probe.parts.checks import Check, described


def offered(torch: Any, path: str) -> Any:
    """Return what "nn.functional.conv2d" names in torch; None where it has no such thing."""
    value = torch
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def lacks(check: Check, torch: Any, *paths: str) -> bool:
    """Whether torch has not all of *paths*, which then is why the check is skipped."""
    missing = [path for path in paths if offered(torch, path) is None]
    if missing:
        check.skip(f"this torch has no {missing[0]}")
    return bool(missing)


def answer(check: Check, torch: Any, path: str) -> Any:
    """Return what a function of torch answers; None where it cannot, and what it said is kept."""
    function = offered(torch, path)
    try:
        return None if function is None else function()
    except Exception as error:
        check.evidence.setdefault("unanswered", {})[path] = described(error)
        return None


def refusal(error: Exception) -> str:
    """Return why torch does not offer something here; "" where *error* is a fault and no refusal."""
    text = described(error)
    said = (
        "only supported",
        "not supported",
        "not implemented",
        "No available kernel",
        "No viable backend",
    )
    # A library that fails says CUBLAS_STATUS_NOT_SUPPORTED or HIPBLAS_STATUS_NOT_SUPPORTED: in capitals.
    refused = isinstance(error, NotImplementedError) or any(words in text for words in said)
    return text if refused else ""
