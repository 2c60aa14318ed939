"""Text that comes from outside and is shown to people: bounded and free of control characters."""

import re

# A title that nobody ended ends with its line: it hides no others.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
KIB, MIB, GIB = 1024, 1024**2, 1024**3


def printable(text: str, limit: int = 2000) -> str:
    """Return *text* without escape sequences, control or bidirectional characters, cut at *limit* characters.

    Newlines and tabs stay. Container output and engine messages are untrusted: a terminal must not obey them.
    """
    clean = _CONTROLS.sub("", _ESCAPES.sub("", text))
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def one_line(text: str, limit: int = 200) -> str:
    """Return *text* as `printable` does, on one line: a name with a line end would begin a line of its own."""
    return printable(" ".join(printable(text, len(text)).split()), limit)


def human_size(size: int) -> str:
    """Return *size* bytes in the largest binary unit that keeps it exact to one decimal: "9 GiB", "1.5 MiB"."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{size} B"


def short_digest(digest: str) -> str:
    """Return the 12 hex digits that people compare."""
    return digest.partition(":")[2][:12] or digest[:12]


def before_port(address: str) -> str:
    """Return an IP address as it stands before ":PORT": one of version 6 in brackets."""
    return f"[{address}]" if ":" in address else address
