"""Which path was refused, where a message says so: what else stands on the line was not."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocmrun.core.diagnosis.body import Body, Quotes
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.finding import Look
from rocmrun.core.diagnosis.log_text import Line
from rocmrun.core.diagnosis.reading import read_text
from rocmrun.core.diagnosis.telling import NOT_WRITTEN
from rocmrun.core.diagnosis.words import DENIED, READ_ONLY

# What libraries say of a path that they could not use, in the words of each.
REFUSED = rf"(?:{DENIED}|{READ_ONLY}|(?:not (?:a )?|non-?|un)writ(?:able|eable)|requires access to a writ(?:able|eable)|cannot (?:write|create)|could not (?:create|write|open)|(?:unable|not able) to (?:create|write|access)|(?:no|lacks?|without) (?:write )?(?:permissions?|access) |failed to create|{NOT_WRITTEN})"

_REFUSAL = r"(?:permission denied|operation not permitted|read-only file ?system|no space left on device|errno (?:1|13|28|30)\b)"
_FORMS = (
    # Python: [Errno 13] Permission denied: '/x'
    rf"{_REFUSAL}[^\n'\":]{{0,40}}:\s{{1,12}}['\"](?P<path>[^'\"\n]{{1,400}})['\"]",
    # coreutils: cannot create directory '/x': Permission denied
    rf"['\"‘`](?P<path>[^'\"‘’`\n]{{1,400}})['\"’`]\)?:? \(?{_REFUSAL}",
    # Go and C: open /x: permission denied
    rf"\b(?:open|openat|mkdir|mkdirat|l?stat|creat|create|unlink|rename|chdir|touch)[: ]{{1,2}}(?P<path>/[^\s:'\"]{{1,400}}): {_REFUSAL}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A path, in lower case, that a message names as what was refused."""

    path: str
    line: Line

    @property
    def printed(self) -> str:
        """The path as it was printed."""
        found = re.search(re.escape(self.path), self.line.text, re.IGNORECASE)
        return found[0] if found else self.path


def refused_paths(seen: Evidence) -> Iterator[Refused]:
    """Yield every path that a message names as refused."""
    for body in (seen.log, seen.told):
        for form in _FORMS:
            for match, line in body.matches(form):
                yield Refused(path=match["path"], line=line)


def refused(path: str) -> Look:
    """Look for a refused path that *path* (a pattern) matches from its start."""
    wanted = re.compile(path)
    return lambda seen: (
        tuple(each.line for each in refused_paths(seen) if wanted.match(each.path))[:3] or None
    )


def refused_at(place: str, pattern: str) -> Look:
    """Look for lines of *pattern*, but not those that name another refused path than one with *place* in it."""
    wanted = re.compile(place)

    def look(seen: Evidence) -> Quotes | None:
        named: dict[Line, list[str]] = {}
        for each in refused_paths(seen):
            named.setdefault(each.line, []).append(each.path)
        found = [
            line
            for line in _lines(seen, pattern)
            if line not in named or any(wanted.search(path) for path in named[line])
        ]
        return tuple(dict.fromkeys(found))[:3] or None

    return look


def _lines(seen: Evidence, pattern: str) -> Iterator[Line]:
    bodies: tuple[Body, ...] = (seen.log, seen.told)
    for body in bodies:
        for _, line in body.matches(pattern):
            yield line


# A shell's "/x: Read-only file system", and Node's "EROFS: read-only file system, open '/x'".
_READ_ONLY_FORMS = (
    rf"(?<![\w.:/])(?P<path>/[^\s'\"`‘’:,;()<>]{{1,400}}):? {READ_ONLY}",
    rf"{READ_ONLY}, \w{{1,20}} ['\"](?P<path>[^'\"\n]{{1,400}})['\"]",
)


def read_only_paths(text: str) -> tuple[str, ...]:
    """Return the paths that *text* names as refused because their file system is read-only, as it names them, each once."""
    seen = read_text(text)
    is_read_only = re.compile(READ_ONLY)
    named = [each for each in refused_paths(seen) if is_read_only.search(each.line.lower)]
    for body in (seen.log, seen.told):
        for form in _READ_ONLY_FORMS:
            named += [Refused(path=m["path"], line=line) for m, line in body.matches(form)]
    order = sorted(named, key=lambda each: each.line.number)
    return tuple(dict.fromkeys(each.printed for each in order))
