"""How rules look at evidence: small functions that return the lines which show something, or None."""

import re
from collections.abc import Callable

from rocmrun.core.diagnosis.body import Quotes
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Look
from rocmrun.core.diagnosis.log_text import Line

GPU_NODES = r"/dev/(?:kfd|dri/.*)"
KFD = r"/dev/kfd"
RENDER = r"/dev/dri/renderd\d+"


def text(pattern: str) -> Look:
    """Look for *pattern* (lower case) in the log and in what was told."""
    return lambda seen: seen.find(pattern) or None


def log(pattern: str) -> Look:
    """Look for *pattern* in the log alone."""
    return lambda seen: seen.log.find(pattern) or None


def told(pattern: str) -> Look:
    """Look for *pattern* in "key: value" facts."""
    return lambda seen: seen.told.find(pattern) or None


def remedy(pattern: str) -> Look:
    """Look for *pattern* in what somebody tried or what helped."""
    return lambda seen: seen.remedies.find(pattern) or None


def anywhere(pattern: str) -> Look:
    """Look in the log, in facts and in remedies."""
    return lambda seen: seen.find(pattern) or seen.remedies.find(pattern) or None


def opened(errno: str, path: str = GPU_NODES) -> Look:
    """Look for an open of a node that ended with one of *errno* ("EACCES|EPERM")."""
    wanted = re.compile(f"(?:{path})$")
    names = set(errno.split("|"))
    return lambda seen: (
        tuple(o.line for o in seen.opened if o.errno in names and wanted.match(o.path))[:3] or None
    )


def variable(name: str, value: str = "") -> Look:
    """Look for a variable of the environment inside whose value has *value* in it."""
    names, wanted = re.compile(f"(?:{name})$"), re.compile(value)

    def look(seen: Evidence) -> Quotes | None:
        found = [
            line
            for key, (held, line) in seen.env.items()
            if names.match(key) and wanted.search(held.lower())
        ]
        return tuple(found[:3]) or None

    return look


def flag(pattern: str) -> Look:
    """Look for an option of the container's command line; what is quoted is the option alone."""
    wanted = re.compile(pattern)
    return lambda seen: (
        tuple(
            Line(line.number, f, f.lower()) for f, line in seen.flags if wanted.search(f.lower())
        )[:3]
        or None
    )


def node(path: str, judge: Callable[[int | None, str, str], bool]) -> Look:
    """Look for a listed node whose (mode, owner, group) are as *judge* says."""
    wanted = re.compile(f"(?:{path})$")
    return lambda seen: (
        tuple(
            n.line for n in seen.nodes if wanted.match(n.path) and judge(n.mode, n.owner, n.group)
        )[:3]
        or None
    )


def fact(judge: Callable[[Evidence], object]) -> Look:
    """Look at the whole evidence; there is no line to quote."""
    return lambda seen: () if judge(seen) else None


def any_of(*looks: Look) -> Look:
    """Return what the first of *looks* sees."""

    def look(seen: Evidence) -> Quotes | None:
        for each in looks:
            found = each(seen)
            if found is not None:
                return found
        return None

    return look


def all_of(*looks: Look) -> Look:
    """Return what all of *looks* see, None when one sees nothing."""

    def look(seen: Evidence) -> Quotes | None:
        lines: dict[Line, None] = {}
        for each in looks:
            found = each(seen)
            if found is None:
                return None
            lines |= dict.fromkeys(found)
        return tuple(lines)[:4]

    return look


def absent(other: Look) -> Look:
    """Look for the absence of what *other* sees."""
    return lambda seen: () if other(seen) is None else None


def unquoted(other: Look) -> Look:
    """Look as *other* does, and quote nothing: what somebody did that nobody should repeat is not shown."""
    return lambda seen: None if other(seen) is None else ()
