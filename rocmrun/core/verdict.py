"""How a recorded value compares with the one that was sent, and which empty values are one.

Normalisation (measured on Docker 20.10): null = [] = {} = 0 = "" = false, except MaskedPaths and
ReadonlyPaths, where [] unmasks.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

Verdict = Literal["equal", "stricter", "weaker"]
Comparator = Callable[[Any, Any], Verdict]


def normal(value: Any) -> Any:
    """Fold the empty values together, inside lists and mappings too."""
    if isinstance(value, Mapping):
        return {
            key: folded for key, item in value.items() if (folded := normal(item)) is not None
        } or None
    if isinstance(value, (list, tuple)):
        return [normal(item) for item in value] or None
    return value or None
