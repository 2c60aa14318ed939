"""Take out of a quoted line what is private: secrets, user names and home directories."""

import re

from rocmrun.core.text import printable

MASK = "…"

RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Tokens that tell themselves by their form.
    (re.compile(r"\b(?:hf|ghp|gho|ghs|ghu|github_pat|glpat|sk|xox[abp]|AKIA|ASIA|npm|pypi)[_-]?[A-Za-z0-9_-]{12,}"), MASK),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]{8,}"), MASK),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), rf"\1 {MASK}"),
    (re.compile(r"-----BEGIN [A-Z ]{3,40}-----.*"), f"-----{MASK}-----"),
    # NAME=value, "name": "value", --name value, for names that end in a word for secrets; /etc/passwd is a file's.
    (
        re.compile(
            r"(?i)\b(?!(?<=etc/)passwd:)([\w-]{0,60}(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential)s?)"
            r"(\"?'?\s{0,3}(?:[=:]|\s)\s{0,3}\"?'?)(?![=:\s]|\d{1,7}\b)(?:[^\s\"',;&]{4,})"
        ),
        rf"\1\2{MASK}",
    ),
    (re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://)[^/\s:@]{1,100}(?::[^/\s@]{0,200})?@"), rf"\1{MASK}@"),
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
    shown = printable(text, 4 * limit)
    for pattern, instead in RULES:
        shown = pattern.sub(instead, shown)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
