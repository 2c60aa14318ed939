"""Take out of a quoted line what is private: secrets, user names and home directories."""

import re

from rocmrun.core.secret_forms import LINES, without
from rocmrun.core.text import printable

MASK = "…"

# Who somebody is; what a secret looks like is known elsewhere.
RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(/home/|/Users/|/var/home/|C:\\Users\\|/export/home/)[^/\\\s'\":,]+"), rf"\1{MASK}"),
    # "name@host:~$" of a shell; root is nobody's name.
    (re.compile(r"(?<![\w.])(?!root@)[a-z_][\w.-]{0,31}@[\w.-]{1,63}(?=:[~/])"), f"{MASK}@{MASK}"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,63}\b"), MASK),
    (re.compile(r"(?i)\b(user(?:name)?|logname|sudo_user)(\s?=\s?)(?!root\b)[^\s,;)]+"), rf"\1\2{MASK}"),
    (re.compile(r"\b([ug]id=\d+)\((?!root\)|video\)|render\)|nogroup\))[^)\s]{1,64}\)"), rf"\1({MASK})"),
    (re.compile(r"(?m)^(?!root )([a-z_][\w-]{0,31})(?= is (?:not )?(?:a )?member of )"), MASK),
)  # fmt: skip


def masked(text: str, limit: int = 200) -> str:
    """Return *text* fit to be shown: no control characters, no secrets, no names of people."""
    shown = without(printable(text, 4 * limit), LINES, lambda _: MASK)
    for pattern, instead in RULES:
        shown = pattern.sub(instead, shown)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
