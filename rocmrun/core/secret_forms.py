"""What a secret looks like in a text: the one place that knows. Who shows a text says how much must look like one.

Three do: `rocmrun/core/secret_names.py` for what becomes a profile or a plan, `rocmrun/core/diagnosis/masking.py` for
lines on the user's own terminal, `rocmrun/core/redaction.py` for files that strangers get.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from rocmrun.core.secret_words import STEM, is_never_a_count, names_secret, sounds_secret

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Tokens of one issuer, which begin alike so that they can be found.

    Attributes:
        exact: As they are issued.
        guessed: What may be one, cut off or written otherwise.
    """

    whose: str
    exact: str
    guessed: str


TOKENS = (
    Token(whose="Hugging Face", exact=r"hf_[A-Za-z0-9]{20,}", guessed=r"hf[_-]?[\w-]{12,}"),
    Token(whose="OpenAI, and who copies it", exact=r"sk-[\w-]{16,}", guessed=r"sk[_-]?[\w-]{12,}"),
    Token(whose="GitHub", exact=r"gh[opsu]_[A-Za-z0-9]{20,}", guessed=r"gh[opsu][_-]?[\w-]{12,}"),
    Token(whose="GitHub, fine-grained", exact=r"github_pat_\w{20,}", guessed=r"github_pat[_-]?[\w-]{12,}"),
    Token(whose="GitLab", exact=r"glpat-[\w-]{20,}", guessed=r"glpat[_-]?[\w-]{12,}"),
    Token(whose="Slack", exact=r"xox[abp]-[\w-]{20,}", guessed=r"xox[abp][_-]?[\w-]{12,}"),
    Token(whose="AWS", exact=r"A[KS]IA[0-9A-Z]{16}", guessed=r"A[KS]IA[_-]?[\w-]{12,}"),
    Token(whose="npm", exact=r"npm_[A-Za-z0-9]{30,}", guessed=r"npm[_-]?[\w-]{12,}"),
    Token(whose="PyPI", exact=r"pypi-[\w-]{50,}", guessed=r"pypi[_-]?[\w-]{12,}"),
    Token(whose="Google", exact=r"AIza[\w-]{30,}", guessed=r"AIza[\w-]{30,}"),
    Token(whose="Google, for an hour", exact=r"ya29\.[\w.-]{20,}", guessed=r"ya29\.[\w.-]{10,}"),
    Token(whose="Docker Hub", exact=r"dckr_pat_[\w-]{20,}", guessed=r"dckr_pat[-_.][\w-]{12,}"),
    Token(whose="NVIDIA", exact=r"nvapi-[\w-]{20,}", guessed=r"nvapi[-_.][\w-]{12,}"),
    Token(whose="Vault", exact=r"hvs\.[\w-]{20,}", guessed=r"hvs[-_.][\w-]{12,}"),
    Token(whose="Groq", exact=r"gsk_[A-Za-z0-9]{20,}", guessed=r"gsk[-_.][\w-]{12,}"),
    Token(whose="Replicate", exact=r"r8_[A-Za-z0-9]{20,}", guessed=r"r8[-_.][\w-]{12,}"),
    Token(whose="Stripe", exact=r"[sr]k_live_[A-Za-z0-9]{16,}", guessed=r"[sr]k_live[-_.][\w-]{12,}"),
    Token(whose="xAI", exact=r"xai-[A-Za-z0-9]{20,}", guessed=r"xai[-_.][\w-]{12,}"),
    Token(whose="Tailscale", exact=r"tskey-[\w-]{16,}", guessed=r"tskey[-_.][\w-]{12,}"),
    Token(whose="anybody's signed JSON", exact=r"eyJ[\w-]{8,}\.[\w.-]{8,}", guessed=r"eyJ[\w-]{8,}\.[\w.-]{8,}"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """What one reader of texts takes for a secret.

    Attributes:
        guesses: Whether what may be a token is one, and what stands behind a name that only ends as a secret's.
        shortest: How many characters a value has behind such a name and "=".
        apart: Characters that no value has: an expression says where a secret is, and not what it is.
        users: Whether NAME of "://NAME@" goes without a password too.
    """

    guesses: bool
    shortest: int = 1
    apart: str = ""
    users: bool = True


# A profile has to work: what is no secret stays as it was written. \ue000 marks an expression of a shell.
PLANS = Strictness(guesses=False, apart="$<\ue000", users=False)
# A line that lost a word too many can still be read; one that lost every short word cannot.
LINES = Strictness(guesses=True, shortest=4)
BUNDLES = Strictness(guesses=True)

_NAME = re.compile(rf"(?<![\w-])(?=[\w-]*{STEM})[\w-]+")
# A file's name: "/etc/passwd: Read-only file system".
_FILE = re.compile(r"(?<=etc/)passwd:")
# A key in a block of lines, to its end, or as long as they look like one's.
_BLOCK = re.compile(
    r"(?P<secret>-----BEGIN [A-Z ]{3,40}-----(?:(?:[^-]|-(?!----)){0,20000}-----END [A-Z ]{3,40}-----"
    r"|[^\n]*(?:\n[ \t]*(?:[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{1,15}={1,2}|(?:Proc-Type|DEK-Info): [^\n]*)?$)*))",
    re.MULTILINE,
)


def without(text: str, strictness: Strictness, instead: Callable[[str], str]) -> str:
    """Return *text* with what *instead* makes of each secret in its place, line by line."""
    pieces: list[str] = []
    done = 0
    for start, end in _merged(sorted(_spans(text, strictness))):
        shown = "\n".join(instead(line) for line in text[start:end].split("\n"))
        pieces += (text[done:start], shown)
        done = end
    return "".join((*pieces, text[done:]))


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _spans(text: str, strictness: Strictness) -> Iterator[Span]:
    for pattern in _patterns(strictness):
        for match in pattern.finditer(text):
            yield match.span("secret")
    for name in _NAME.finditer(text):
        for pattern in _behind(text, name, strictness):
            if value := pattern.match(text, name.end()):
                yield value.span("secret")
                break


@cache
def _patterns(strictness: Strictness) -> tuple[re.Pattern[str], ...]:
    """Return what is told by its form, by a header, or by a command that takes a secret behind a letter."""
    apart = strictness.apart
    word, rest = rf"[^\s{apart}]", rf"[^\n\"'{apart}]"
    tokens = "|".join(t.guessed if strictness.guesses else t.exact for t in TOKENS)
    scheme = r"(?i:bearer|basic)" if strictness.guesses else "Bearer"
    cookie = rest if apart else r"[^\n]"
    user = rf"[^/\s:@{apart}]{{1,100}}"
    login = rf"{user}(?::[^/\s@]{{0,200}})?" if strictness.users else rf"{user}:[^/\s@{apart}]{{1,200}}"  # fmt: skip
    return (
        re.compile(rf"\b(?P<secret>{tokens})"),
        re.compile(rf"\b{scheme}\s+(?P<secret>[A-Za-z0-9._~+/=-]{{8,}})"),
        re.compile(rf"\bBearer (?P<secret>[^\s\"'{apart}]{{8,}})"),
        re.compile(rf"(?i)\b(?:set-)?cookie[\"']?[ \t]{{0,3}}:[ \t]{{0,3}}[\"']?(?P<secret>{cookie}+)(?=[\n\"']|\Z)"),
        re.compile(rf"(?i)\b(?:proxy-)?authorization[\"']?[ \t]{{0,3}}[:=][ \t]{{0,3}}[\"']?(?P<secret>{rest}{{4,}})(?=[\n\"']|\Z)"),
        re.compile(rf"\bcurl\s[^\n]{{0,400}}?(?<=\s)(?:-u|--user)[ =][^\s:]{{1,100}}:(?P<secret>{word}{{1,400}})"),
        re.compile(rf"\blogin\s[^\n]{{0,200}}?(?<=\s)(?:-p|--password)[ =](?P<secret>{word}{{1,400}})"),
        re.compile(rf"\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\s[^\n]{{0,200}}?(?<=\s)-p ?(?P<secret>{word}{{1,400}})"),
        re.compile(rf"(?<=://)(?P<secret>{login})(?=@)"),
        _BLOCK,
    )  # fmt: skip


def _behind(text: str, name: re.Match[str], strictness: Strictness) -> tuple[re.Pattern[str], ...]:
    """Return what a secret looks like from the end of its *name* on; nothing where the name is none of a secret."""
    plain = name[0].lstrip("-")
    named = names_secret(plain)
    sounds = strictness.guesses and sounds_secret(plain)
    if not (named or sounds) or _FILE.match(text, name.start()):
        return ()
    option = named and name[0].startswith("--")
    sure = option or is_never_a_count(plain)
    return _values(strictness, sure=sure, option=option, blank=option or sounds)


@cache
def _values(
    strictness: Strictness, *, sure: bool, option: bool, blank: bool
) -> tuple[re.Pattern[str], ...]:
    """Return the forms of a value behind its name, each tried after the one before it.

    Args:
        strictness: The caller's.
        sure: A number, or what is short, is the secret as well.
        option: The name is an option's: the next word is its value, whatever it is.
        blank: A blank is enough between them.
    """
    apart = strictness.apart
    inner = rf"(?:\\.|(?!(?P=quote))[^\n\\{apart}])"
    word, count = rf"[^\s\"',;&{apart}]", r"(?!\d{1,7}\b)"
    bare = r"|\s" if blank else ""
    forms = [rf"[\"']?(?:\s{{0,3}}[=:]\s{{0,3}}{bare})(?P<quote>[\"'])(?P<secret>{inner}{{1,4000}})(?P=quote)"]  # fmt: skip
    if option:
        forms.append(rf"(?:\s{{0,3}}=\s{{0,3}}|\s{{1,3}})[\"']?(?P<secret>[^\s\"'{apart}]+)")
    elif sure:
        forms.append(rf"[\"']?\s{{0,3}}=\s{{0,3}}[\"']?(?![=:])(?P<secret>{word}+)")
    else:
        forms.append(rf"[\"']?\s{{0,3}}=\s{{0,3}}[\"']?(?![=:]){count}(?P<secret>{word}{{{strictness.shortest},}})")  # fmt: skip
    forms.append(rf"[\"']?\s{{0,3}}(?::{bare})\s{{0,3}}[\"']?(?![=:]){count}(?P<secret>{word}{{4,}})")  # fmt: skip
    if sure:
        forms.append(r"[\"']?\s{0,3}:\s{0,3}(?P<secret>\d{1,40})(?![\w.])")
    return tuple(re.compile(form) for form in forms)
