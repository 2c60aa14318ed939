"""The nearest valid word for a mistyped one."""

import difflib
from collections.abc import Iterable


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that *word* most likely meant, or None when none is near."""
    near = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return near[0] if near else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return '; did you mean "x"?' to append to a message, or "" when nothing is near."""
    near = closest(word, candidates)
    return f'; did you mean "{near}"?' if near else ""
