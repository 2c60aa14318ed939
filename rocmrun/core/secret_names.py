"""Which names of variables hold secrets, by the words in them, and which texts are secrets, by their form."""

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
# Tokens of Hugging Face, OpenAI and those who copy it, GitHub and AWS, which begin alike to be found; what
# follows an option or a header for one; and NAME:PASSWORD@ in a URL. An expression ("$…") is none.
_TEXTS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|gh[opsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16})"
    r"|(?:(?<=--api-key[ =])|(?<=--token[ =])|(?<=--hf-token[ =])|(?<=--password[ =]))[^\s'\"$<\ue000]+"
    r"|(?<=Bearer )[^\s'\"$<\ue000]{8,}"
    r"|(?<=://)[^/\s:@$\ue000]+:[^/\s@$<\ue000]+(?=@)"
)
HIDDEN = "<secret>"


def names_secret(name: str) -> bool:
    """Whether the value of a variable called *name* is a secret, as far as its name tells."""
    upper = name.upper()
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


def without_secrets(text: str) -> str:
    """Return *text* with "<secret>" in place of what has the form of one."""
    return _TEXTS.sub(HIDDEN, text)
