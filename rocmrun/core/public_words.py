"""Which words are public: those of this program's own pages, and names that file systems and programs share.

What is not among them may be somebody's: a customer, a model, a project.
"""

import re

# Longer ones may be a telephone's or an account's.
LONGEST_NUMBER = 7
_MOST_RUNS = 2
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_+-]+")
# What names carry that are no word: versions, devices, targets, addresses of PCI, numbers.
_PLAIN = re.compile(
    r"(?ix)"
    r"[.~_-]{0,2}"
    r"(?: \d{1,7} | 0x[0-9a-f]{1,8} | v?\d+(?:\.\d+){1,3} | python[23]?(?:\.\d+)? | cpython-\d+ | rocm-?[\d.]+ | gfx[0-9a-f]{3,4}"
    r"  | renderD\d+ | card\d+ | nvidia\d+ | uverbs\d+ | loop\d+ | sd[a-z]\d* | nvme\d+n\d+(?:p\d+)?"
    r"  | [0-9a-f]{4}:[0-9a-f]{2}(?::[0-9a-f]{2}\.\d)? | node\d+ | cpu\d+ | py3\d* | cp3\d+"
    r"  | lib[a-z0-9_+]+\.so[\d.]* | x86_64(?:-linux-gnu)? | amd64 | vram_\d+ | user-\d+\.slice | user@\d+\.service )"
)


def public_words(*texts: str) -> frozenset[str]:
    """Return the words of *texts*, which are this program's own, in lower case."""
    found = {word.lower() for text in texts for word in _WORD.findall(text)}
    parts = {part for word in found for part in re.split(r"[_+-]", word) if len(part) > 1}
    return frozenset(found | parts)


def is_public(name: str, words: frozenset[str]) -> bool:
    """Whether *name* is made of nothing but public words, versions and short numbers."""
    pieces = [piece for piece in re.split(r"[^A-Za-z0-9]+", name) if piece]
    return bool(_PLAIN.fullmatch(name)) or (
        name.isascii() and all(_is_public_piece(piece, words) for piece in pieces)
    )


def _is_public_piece(piece: str, words: frozenset[str]) -> bool:
    if len(piece) == 1 or piece.lower() in words or _PLAIN.fullmatch(piece):
        return True
    runs = re.findall(r"[A-Za-z]+|\d+", piece)
    # "rocm7", "ubuntu24", "70b", "v2"; more of them may be anybody's number.
    return len(runs) <= _MOST_RUNS and all(
        len(run) <= LONGEST_NUMBER
        if run.isdigit()
        else run.lower() in words or (len(run) == 1 and run in "bkprvxBKPRVX")
        for run in runs
    )
