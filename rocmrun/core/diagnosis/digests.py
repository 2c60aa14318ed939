"""Digests that a text tells: whether one name has had two."""

import re

from rocmrun.core.diagnosis.evidence import Evidence

_DIGEST = r"(sha256:(?:[0-9a-f]{64}|blob-\d{1,4}))"
_SHORT = r"(?:sha256:)?([0-9a-f]{7,64}|blob-\d{1,4})"
_NO_REFERENCE = re.compile(r"[^\w./:-]")
# Lines of a build or a pull, whose digests are those of parts.
_LAYERS = re.compile(r"layer|export|resolv|extract|pull|copy|push|config|manifest")


def two_digests(seen: Evidence) -> bool:
    """Whether a text tells two to four digests, as one does that compares them; an inspect tells more.

    Of digests behind a name each stands for that name alone.
    """
    told_ = {
        match[1]
        for body in (seen.log, seen.told)
        for match, line in body.matches(rf"^[^\n]{{0,40}}\b{_DIGEST}\W*$")
        if not _LAYERS.search(line.lower) and f"@{match[1]}" not in match[0]
    }
    return 2 <= len(told_) <= 4 or _one_name_two_digests(seen)


def _one_name_two_digests(seen: Evidence) -> bool:
    """Whether one reference stands with two digests, or a digest is told to have become another."""
    by_name: dict[str, set[str]] = {}
    for body in (seen.log, seen.told):
        for match, line in body.matches(rf"@{_DIGEST}"):
            name = _NO_REFERENCE.split(match.string[max(0, match.start() - 200) : match.start()])[
                -1
            ]
            if ":" in name or "repodigest" in line.lower:
                by_name.setdefault(name, set()).add(match[1])
        for match, _ in body.matches(
            rf"digest\w{{0,12}}\W{{1,4}}{_SHORT}[….]{{0,3}} ?(?:->|→|=>|became|to) ?{_SHORT}"
        ):
            by_name.setdefault("", set()).update(match.groups())
    return any(len(digests) > 1 for digests in by_name.values())
