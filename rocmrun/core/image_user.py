"""What a USER that an image gives by name stands for. Pure: the files' text comes from the caller."""

import re
from collections.abc import Iterable

from rocmrun.core.ids import HIGHEST_ID, is_id
from rocmrun.errors import PlanRefused

_NUMBERS = re.compile(r"([0-9]+)(?::([0-9]+))?")


def numeric_ids(user: str) -> tuple[int, int] | None:
    """Return the ids of a USER that is numbers, "uid" or "uid:gid"; None when it names somebody.

    Raises:
        PlanRefused: a number is no id.
    """
    match = _NUMBERS.fullmatch(user)
    return (_id(match[1], user), _id(match[2] or match[1], user)) if match else None


def misleading_groups(groups: Iterable[int], group: str) -> tuple[str, ...]:
    """Return a sentence for each of *groups* that the image's group file gives to another as a *name*.

    An engine asked for group 992 takes a group that is called "992" first, whatever its number is.
    """
    wanted = {str(number) for number in groups}
    rows = (line.split(":") for line in group.splitlines())
    return tuple(
        f'the image has a group named "{row[0]}" with the number {row[2]}'
        for row in rows
        if len(row) > 2 and row[0] in wanted and row[2] != row[0]  # noqa: PLR2004  # name, password, number
    )


def look_up_user(user: str, passwd: str, group: str) -> tuple[int, int]:
    """Return the numeric uid and gid of "name", "name:group" or a mix of names and numbers.

    Raises:
        PlanRefused: the image's own files do not know the name, or a number is no id.
    """
    name, _, group_name = user.partition(":")
    entry = next((fields for fields in _entries(passwd, 4) if name in (fields[0], fields[2])), None)
    if entry is not None:
        uid, gid = _id(entry[2], user), _id(entry[3], user)
    elif _is_number(name):
        uid, gid = _id(name, user), 0
    else:
        msg = f'the image\'s USER is "{user}", which its /etc/passwd does not know'
        raise PlanRefused(msg, hint='write numbers: [container] user = "1000:1000"')
    if _is_number(group_name):
        gid = _id(group_name, user)
    elif group_name:
        found = next((fields for fields in _entries(group, 3) if fields[0] == group_name), None)
        if found is None:
            msg = f'the image\'s USER is "{user}", and its /etc/group does not know "{group_name}"'
            raise PlanRefused(msg, hint='write numbers: [container] user = "1000:1000"')
        gid = _id(found[2], user)
    return uid, gid


def _entries(text: str, numbers_up_to: int) -> list[list[str]]:
    """Return the lines of a passwd or group file whose numeric fields are numbers."""
    rows = (line.split(":") for line in text.splitlines())
    return [
        row
        for row in rows
        if len(row) >= numbers_up_to and all(map(_is_number, row[2:numbers_up_to]))
    ]


def _id(digits: str, user: str) -> int:
    if not is_id(digits):
        msg = f'the image\'s USER is "{user}", and {digits} is no id: the highest is {HIGHEST_ID}'
        raise PlanRefused(msg, hint='write numbers: [container] user = "1000:1000"')
    return int(digits)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
