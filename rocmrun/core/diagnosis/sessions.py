"""Whether a session is older than a group: what the database has for the user against what the process holds."""

import re
from collections.abc import Iterator

from rocmrun.core.diagnosis.evidence import Evidence

# id -G and id -nG, with or without a user's name, and what follows on the line.
_ID = r"^[^\n]{0,60}\bid -(?:n?g|gn)(?: +([a-z_$\"][\w$\"-]*))?\b[ \t]*:?(?=\s|$)"
_LIST = re.compile(r"[\w-]+(?: [\w-]+)*")
# rocminfo looks the user up in the database, and not among the groups of its own process.
_IN_DATABASE = r"\bis (?:a )?member of \"?(?P<group>[a-z][\w-]*)\"? group"

_ENTRY = r"(?<![\w.-])(?P<name>render|video|docker):[x*]?:(?P<gid>\d{1,10}):(?P<members>[a-z_][\w,-]{0,200})"


def newer_in_the_database(seen: Evidence) -> bool:
    """Whether the database has a group for the user that the process does not hold: it comes with the next login."""
    told: dict[bool, set[str]] = {False: set(), True: set()}
    for named, groups in _ids(seen):
        told[named].update(groups)
    if told[False] and told[True]:
        return bool(told[True] - told[False])
    if _entered(seen):
        return True
    members = {match["group"] for match, _ in seen.log.matches(_IN_DATABASE)}
    held = {group for group in seen.groups if not group.isdigit()}
    return bool(held and members) and members.isdisjoint(held)


def _entered(seen: Evidence) -> bool:
    """Whether /etc/group has a user in a group that the user's process does not hold: `render:x:992:dev`."""
    return any(
        seen.groups.intersection(match["members"].split(","))
        and seen.groups.isdisjoint((match["name"], match["gid"]))
        for body in (seen.log, seen.told)
        for match, _ in body.matches(_ENTRY)
    )


def _ids(seen: Evidence) -> Iterator[tuple[bool, list[str]]]:
    """Yield whether `id` was asked about a user by name, and the groups on its line or on the one below."""
    for match, line in seen.log.matches(_ID):
        printed = line.lower[len(match[0]) :].strip()
        if not printed:
            below = seen.log.lines.index(line) + 1
            printed = seen.log.lines[below].lower if below < len(seen.log.lines) else ""
        if _LIST.fullmatch(printed):
            yield bool(match[1]), printed.split()
