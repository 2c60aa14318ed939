"""How people retell: under which keys and in which sentences they say what was tried, what helped, what was meant to be."""

import re

# Of the key, in lower case: neither a fix nor what somebody wanted is a fact about the failure.
_ASIDE = re.compile(
    r"^(?:fix|fixed|works|worked|work_?around|good|right|right_value|after|needed|env_needed|with_|safe(?!_mount)|remedy|solution|resolution|helped|refs?(?![a-z])|related|unsafe|as_root|without_"
    r"|chang(?:e|ed|es)$|suggest|recommend|advice|advised|mended|cured|helps|wide_|expected)"
)
_HELPED = re.compile(
    r"\b(?:fixe[ds]|solve[ds]|resolve[ds](?! \d)|cured|helped|did the trick|work-?around(?: is| was|:)|works? (?:fine |again |now )?(?:with|when|if|after|once)|worked (?:with|when|after|once))\b"
)
_UNHELPED = re.compile(
    r"(?:\bnot|n't|\bnever|\bnothing|\bnone|\bneither|\bno one|\bcannot|\bunable to|\bfailed to|\bbe) (?:\w+ )?(?:fixe[ds]|solve[ds]|resolve[ds]|helped|works?\b|worked)"
)
# Devices as compose and people list them: the key, and paths alone below it.
_DEVICES = re.compile(r"(?:[\w.]*\.)?devices?(?:_before|_passed|_given|_mapped)?$")
_PATHS = re.compile(r"/dev/[^\s,]+(?:[, ]{1,3}/dev/[^\s,]+)*$")


def set_aside(key: str) -> bool:
    """Whether what stands under *key* tells a remedy or a wish."""
    return _ASIDE.match(key.lower()) is not None


def tells_what_helped(line: str) -> bool:
    """Whether a *line* in lower case says what mended something."""
    return _HELPED.search(line) is not None and _UNHELPED.search(line) is None


def devices_of(key: str, text: str) -> list[str]:
    """Return the devices that are listed under *key*, none where it says something else of them."""
    listed = _DEVICES.match(key.lower()) and _PATHS.match(text)
    return text.replace(",", " ").split() if listed else []
