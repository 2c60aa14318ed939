"""Numeric user and group ids, as far as an engine takes them for numbers."""

# Docker refuses ids above this, and looks up what does not fit an int by *name* in the image's passwd and group
# files, where it can be root: github.com/moby/sys, user/user.go, maxID.
HIGHEST_ID = 2**31 - 1


def is_id(digits: str) -> bool:
    """Whether a text of decimal digits is an id that an engine takes for a number."""
    significant = digits.lstrip("0")
    return len(significant) <= len(str(HIGHEST_ID)) and int(significant or "0") <= HIGHEST_ID
