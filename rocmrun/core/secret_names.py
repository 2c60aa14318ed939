"""Which names of variables hold secrets, by the words in them."""

import re

# A word ends in it: HF_TOKEN and HFTOKEN are, TOKENIZERS_PARALLELISM and MAX_TOKENS are not.
_WORDS = re.compile(
    r"(?:TOKEN|SECRETS?|PASSWORD|PASSWD|APIKEY)(?=_|\Z)|(?:API|ACCESS|SECRET|PRIVATE)_KEY(?=_|\Z)"
)
# The value is where the secret is, not what it is.
_PLACES = ("_FILE", "_PATH", "_DIR", "_URL")


def names_secret(name: str) -> bool:
    """Whether the value of a variable called *name* is a secret, as far as its name tells."""
    upper = name.upper()
    return bool(_WORDS.search(upper)) and not upper.endswith(_PLACES)
