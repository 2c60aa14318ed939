"""Device nodes in the text of `ls -l`, as people paste it. On this machine stat(2) is asked instead."""

import re
from dataclasses import dataclass

_LINE = re.compile(
    r"[bc](?P<mode>[rwx-]{9})(?P<mark>[+.@])? +\d+ +(?P<owner>\S+) +(?P<group>\S+)"
    r" +(?P<major>\d{1,10}), *(?P<minor>\d{1,10}) .* (?:\S*/)?(?P<name>[^\s/]+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNode:
    """One device node of a listing.

    Attributes:
        mark: "+" for an ACL, "." for an SELinux label; None for neither.
        owner: Name or number, as listed: which id that is, only the listed machine knows.
    """

    name: str
    mode: int
    mark: str | None
    owner: str
    group: str
    major: int
    minor: int


def parse_device_listing(text: str) -> tuple[ListedNode, ...]:
    """Return the device nodes that *text* lists; dates may be in any language, other lines are skipped."""
    matches = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return tuple(
        ListedNode(
            name=match["name"],
            mode=_mode(match["mode"]),
            mark=match["mark"],
            owner=match["owner"],
            group=match["group"],
            major=int(match["major"]),
            minor=int(match["minor"]),
        )
        for match in matches
        if match
    )


def _mode(letters: str) -> int:
    return sum(1 << bit for bit, letter in enumerate(reversed(letters)) if letter != "-")
