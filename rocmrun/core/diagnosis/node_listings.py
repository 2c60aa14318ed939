"""Device nodes as `ls`, `stat` and people show them: path, owner, group, mode and number."""

import re
from collections.abc import Iterator

from rocmrun.core.diagnosis.body import Body
from rocmrun.core.diagnosis.evidence import Node
from rocmrun.core.diagnosis.log_text import Line

_LISTED = re.compile(
    r"\b[cb]([rwx-]{9})[.+@]?\s+(?:\d+\s+)?([\w.+-]+)\s+([\w.+-]+)\s+(?:(\d+),\s*\d+\s+)?(?:\S+\s+){0,6}?(/dev/\S+|kfd|renderd\d+|card\d+)"
)
_STATED = re.compile(
    r"(/dev/(?:kfd|dri/[^\s:]{1,30}))\W{1,12}(?:is )?([\w-]{1,32}):([\w-]{1,32})\W{1,3}\(?0?([0-7]{3})\b"
)
# Without a mode only where the owner is one that nodes have: an image and its tag look alike.
_OWNED = re.compile(
    r"(/dev/(?:kfd|dri/[^\s:]{1,30}))\W{1,12}(?:is )?(root|nobody|0|65534):([\w-]{1,32})\b(?!\W{1,3}\(?0?[0-7]{3}\b)"
)
_STATED_FIRST = re.compile(
    r"\b0?([0-7]{3})[ ,]{1,2}(?:owner )?([\w-]{1,32})[: ]([\w-]{1,32})\b[^\n]{0,30}?(/dev/(?:kfd|dri/\S{1,30}))"
)

# As facts: the node is in the key, and each value tells one thing of it.
_OF_A_KEY = re.compile(
    r"^(?!\w*(?:image|container|inside))(?:[\w.]*[._])?(kfd|node|device|renderd?\d*)(?:_node)?(?:_(owner|mode|perms|permissions|gid))?: (?:is )?(.{1,40})$"
)
_WHOLE = re.compile(
    r"(?:0?[0-7]{3} )?(?:root|nobody|\d{1,10}):[\w-]{1,32}(?:[ ,(]{1,2}0?[0-7]{3}\)?)?"
)
_OWNER = re.compile(r"\b([a-z_0][\w-]{0,31}|\d{1,10}):([\w-]{1,32})\b")
_OCTAL = re.compile(r"(?<![\w:])0?([0-7]{3})(?![\w:,])")


def nodes_of_keys(*bodies: Body) -> Iterator[Node]:
    """Yield the nodes that facts such as `kfd_owner: root:992` and `kfd_mode: 0660` tell together."""
    said: dict[str, dict[str, tuple[str, Line]]] = {}
    for line in (line for body in bodies for line in body.lines):
        if match := _OF_A_KEY.match(line.lower):
            node, part, value = match.groups()
            if part is None and not _WHOLE.fullmatch(value):
                continue
            path = "/dev/dri/renderd128" if node.startswith("render") else "/dev/kfd"
            for name, form in (("owner", _OWNER), ("mode", _OCTAL)):
                if part in {None, name, "perms", "permissions"} and (found := form.search(value)):
                    said.setdefault(path, {})[name] = (found[0], line)
            if part == "gid" and value.isdigit():
                said.setdefault(path, {})["owner"] = (f"root:{value}", line)
    for path, parts in said.items():
        if "owner" not in parts:
            continue
        owner, group = parts["owner"][0].split(":")
        mode = int(parts["mode"][0], 8) if "mode" in parts else None
        yield Node(path=path, mode=mode, owner=owner, group=group, line=parts["owner"][1])


def listed_nodes(*bodies: Body) -> Iterator[Node]:
    """Yield the GPU nodes that listings and sentences show, with owner, group and mode."""
    for body in bodies:
        for line in body.lines:
            if "kfd" not in line.lower and "dri" not in line.lower and "render" not in line.lower:
                continue
            yield from _nodes_in(line)


def _nodes_in(line: Line) -> Iterator[Node]:
    for found in _LISTED.finditer(line.lower):
        permissions, owner, group, major, path = found.groups()
        yield Node(
            path=_full(path),
            mode=_mode(permissions),
            owner=owner,
            group=group,
            major=int(major) if major else None,
            line=line,
        )
    for found in _STATED.finditer(line.lower):
        path, owner, group, mode = found.groups()
        yield Node(path=path, mode=int(mode, 8), owner=owner, group=group, line=line)
    for found in _OWNED.finditer(line.lower):
        path, owner, group = found.groups()
        yield Node(path=path, mode=None, owner=owner, group=group, line=line)
    if _LISTED.search(line.lower):
        # "235, 0 Nov 30 10:00 /dev/kfd": a major, a minor and a date are no mode, owner and group.
        return
    for found in _STATED_FIRST.finditer(line.lower):
        mode, owner, group, path = found.groups()
        yield Node(path=path, mode=int(mode, 8), owner=owner, group=group, line=line)


def _full(path: str) -> str:
    if path.startswith("/"):
        return path
    return "/dev/kfd" if path == "kfd" else f"/dev/dri/{path}"


def _mode(permissions: str) -> int:
    return sum(1 << (8 - place) for place, letter in enumerate(permissions) if letter != "-")
