"""Secrets that tell themselves by what stands before them, in text that nobody has seen: the value goes, whole.

What a diagnosis quotes goes through rules of its own (rocmrun/core/diagnosis/masking.py): a word each. A file that
strangers get also loses what has blanks in it, is short, or is a number.
"""

import re

from rocmrun.core.redacted_paths import Alias

_NAMES = r"(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|credential)s?"
# Whose value is never a count: "max_tokens=512" is none.
_SURE = r"(?:secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key)"
_RULES = (
    # "password": "two words", --password 'two words'
    re.compile(
        rf"(?i){_NAMES}[\"']?(?:\s{{0,3}}[=:]\s{{0,3}}|\s)(?P<quote>[\"'])"
        r"(?P<secret>(?:\\.|(?!(?P=quote))[^\n\\]){1,4000})(?P=quote)"
    ),
    # NAME_PASSWORD=7, api_key: 1234
    re.compile(rf"(?i){_SURE}\s{{0,3}}=\s{{0,3}}(?P<secret>[^\s\"',;&<]{{1,4000}})"),
    re.compile(rf"(?i){_SURE}[\"']?\s{{0,3}}:\s{{0,3}}(?P<secret>\d{{1,40}})(?![\w.])"),
    re.compile(r"(?i)\b(?:set-)?cookie[\"']?[ \t]{0,3}:[ \t]{0,3}(?P<secret>[^\n]{1,4000})"),
    re.compile(r"(?i)\b(?:proxy-)?authorization[\"']?[ \t]{0,3}[:=][ \t]{0,3}[\"']?(?P<secret>[^\n\"']{4,4000})"),
    # On command lines: a letter is the option, and the next word the secret.
    re.compile(r"\bcurl\s[^\n]{0,400}?(?<=\s)(?:-u|--user)[ =][^\s:]{1,100}:(?P<secret>\S{1,400})"),
    re.compile(r"\blogin\s[^\n]{0,200}?(?<=\s)(?:-p|--password)[ =](?P<secret>\S{1,400})"),
    re.compile(r"\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\s[^\n]{0,200}?(?<=\s)-p ?(?P<secret>\S{1,400})"),
    # Forms of their own: Google, Docker Hub, NVIDIA, Vault, Groq, Replicate, Stripe, xAI, Tailscale.
    re.compile(
        r"\b(?P<secret>AIza[\w-]{30,}|ya29\.[\w.-]{10,}|(?:dckr_pat|nvapi|hvs|gsk|r8|[sr]k_live|xai|tskey)[-_.][\w-]{12,})"
    ),
)  # fmt: skip


def without_told_secrets(text: str, alias: Alias) -> str:
    """Return *text* with a mark in place of each secret that what stands before it tells."""

    def replace(match: re.Match[str]) -> str:
        start, end = (place - match.start() for place in match.span("secret"))
        return match[0][:start] + alias("secret", match["secret"]) + match[0][end:]

    for pattern in _RULES:
        text = pattern.sub(replace, text)
    return text
