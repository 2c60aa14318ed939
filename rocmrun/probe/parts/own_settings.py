"""What the checks of a profile's own ask for, completed and checked."""

from __future__ import annotations

from typing import Any

OWN_DEFAULTS: dict[str, Any] = {
    "command": [],
    "source": "",
    "timeout": 60,
    "expect_exit": 0,
    "expect_output": "",
    "metrics": {},
    "level": "standard",
    "device": "all",
}
OWN_LEVELS = ("quick", "standard", "full")


def complete_own_checks(given: Any, level: str) -> tuple[list[dict[str, Any]], str]:
    """Return the checks that run at *level* with every default filled in, and what is wrong, "" if nothing is."""
    if not isinstance(given, list):
        return [], "checks is no list"
    complete = []
    for index, own in enumerate(given):
        problem = problem_of(own)
        if problem:
            return [], f"checks[{index}] {problem}"
        if OWN_LEVELS.index(own.get("level", "standard")) <= OWN_LEVELS.index(level):
            complete.append({**OWN_DEFAULTS, **own})
    return complete, ""


def problem_of(own: Any) -> str:
    """Return what is wrong with one check, "" if nothing is."""
    if not isinstance(own, dict) or not isinstance(own.get("name"), str):
        return "has no name"
    unknown = sorted(str(key) for key in set(own) - {"name", *OWN_DEFAULTS})
    if unknown:
        return f"has the unknown key {unknown[0]}; known are name, {', '.join(OWN_DEFAULTS)}"
    for key, default in OWN_DEFAULTS.items():
        kind = (int, float) if key == "timeout" else type(default)
        if not isinstance(own.get(key, default), kind):
            return f"has a {key} that is no {type(default).__name__}"
    if bool(own.get("command")) == bool(own.get("source")):
        return "needs a command or a source, and not both"
    for key, known in (("level", OWN_LEVELS), ("device", ("all", "each"))):
        if own.get(key, known[0]) not in known:
            return f"has the {key} {own[key]}, known are {', '.join(known)}"
    if not all(isinstance(word, str) for word in own.get("command", ())):
        return "has a command with a word that is no text"
    return problem_of_metrics(own.get("metrics", {}))


def problem_of_metrics(metrics: dict[str, Any]) -> str:
    """Return what is wrong with the bounds of a check's metrics, "" if nothing is."""
    for name, bounds in metrics.items():
        if not isinstance(bounds, dict) or not set(bounds) <= {"min", "max"}:
            return f"has bounds of {name} other than min and max"
        if not all(isinstance(bound, (int, float)) for bound in bounds.values()):
            return f"has a bound of {name} that is no number"
    return ""
