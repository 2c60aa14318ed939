"""Which names say that their value is a secret: of variables, keys, options and headers. The one list of such words."""

import re

# What a word of the name ends in: HF_TOKEN and HFTOKEN are secrets, TOKENIZERS_PARALLELISM and MAX_TOKENS are none.
_ENDINGS = (
    "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE",
    "APIKEY", "SECRETKEY", "PRIVATEKEY", "ACCESSKEY", "CREDENTIAL", "CREDENTIALS", "CREDS",
)  # fmt: skip
# Which keys are secret: KEYBOARD, SORT_KEY and PUBLIC_KEY are not.
_KEYS = frozenset({
    "ACCESS", "ACCOUNT", "API", "AUTH", "DEPLOY", "ENCRYPTION", "LICENSE", "MASTER", "PRIVATE",
    "SECRET", "SIGNING", "SSH", "STORAGE", "SUBSCRIPTION",
})  # fmt: skip
# Short words that are secrets at the end of a name alone: DB_PASS, not PASS_RATE; MYSQL_PWD, not PWD.
_LAST = frozenset({"PASS", "PAT", "PWD"})
# What such a word is of a step or a directory: FORWARD_PASS, OLD_PWD.
_STEPS = frozenset({
    "BACKWARD", "FIRST", "FORWARD", "MULTI", "OLD", "SECOND", "SINGLE", "TWO", "WORK",
})  # fmt: skip
# What a token is of a text: MAX_TOKEN, PAD_TOKEN.
_OF_TEXT = frozenset({"BOS", "EOS", "MAX", "MIN", "NUM", "PAD", "PER", "STOP", "UNK"})
# A switch is no secret: HF_HUB_DISABLE_IMPLICIT_TOKEN=1.
_SWITCHES = frozenset({"DISABLE", "ENABLE", "REQUIRE"})
# The value is where the secret is, or what it is like, and not what it is.
_PLACES = ("_FILE", "_PATH", "_DIR", "_URL", "_NAME", "_TYPE", "_TTL", "_LENGTH", "_TIMEOUT")
# The one well-known place without a word for it: a path, for every client of Google's.
_PLACE_NAMES = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})
# No count and no state has such a name: "max_tokens=512" is none.
_SURE = r"(?:secret|passw(?:or)?d|passphrase|(?:api|access|private)[_-]?key)s?"
_SOUNDS = re.compile(rf"(?i)[\w-]*(?:token|credential|{_SURE})s?")
_IS_SURE = re.compile(rf"(?i)[\w-]*{_SURE}")
# What every name above has in it, to look for in texts.
STEM = r"(?i:token|secret|pass|cred|key|pat\b|pwd)"


def names_secret(name: str) -> bool:
    """Whether the value of a variable called *name* is a secret, as far as its name tells."""
    upper = name.upper().replace("-", "_")
    words = upper.split("_")
    if upper.endswith(_PLACES) or upper in _PLACE_NAMES or not _SWITCHES.isdisjoint(words):
        return False
    pairs = list(zip(("", *words), words, strict=False))
    if any(_is_secret(before, word) for before, word in pairs):
        return True
    before, last = pairs[-1]
    return last in _LAST and bool(before) and before not in _STEPS


def _is_secret(before: str, word: str) -> bool:
    """Whether a *word* of a name says that the value is a secret, after the word *before* it."""
    if word == "KEY":
        return before in _KEYS
    return word.endswith(_ENDINGS) and not (word == "TOKEN" and before in _OF_TEXT)


def sounds_secret(name: str) -> bool:
    """Whether *name* ends like a secret's, whatever else is in it: PAD_TOKEN and tokens too."""
    return _SOUNDS.fullmatch(name) is not None


def is_never_a_count(name: str) -> bool:
    """Whether a number behind *name* is no count: a password is none, and tokens are counted."""
    return _IS_SURE.fullmatch(name) is not None
