"""Which names of variables hold secrets, by the words in them, and which texts are secrets, by their form."""

import re

# A word ends in it: HF_TOKEN and HFTOKEN are, TOKENIZERS_PARALLELISM and MAX_TOKENS are not.
_WORDS = re.compile(
    r"(?:TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|APIKEY)(?=_|\Z)|(?:API|ACCESS|SECRET|PRIVATE)_KEY(?=_|\Z)"
)
# The value is where the secret is, not what it is.
_PLACES = ("_FILE", "_PATH", "_DIR", "_URL")
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
    return bool(_WORDS.search(upper)) and not upper.endswith(_PLACES)


def without_secrets(text: str) -> str:
    """Return *text* with "<secret>" in place of what has the form of one."""
    return _TEXTS.sub(HIDDEN, text)
