"""The groups of GPU nodes against those of the process, by what listings and facts tell of both."""

from rocmrun.core.diagnosis.evidence import Evidence, Node

NOBODY = frozenset({"nobody", "nogroup", "65534", "4294967294", "overflowuid"})
ROOT = frozenset({"root", "0"})
GROUP_READ_WRITE, OTHERS_READ_WRITE = 0o060, 0o006


def gated_nodes(seen: Evidence) -> tuple[Node, ...]:
    """Return the nodes that only their group may open, and whose group is told."""
    return tuple(
        n
        for n in seen.nodes
        if n.group not in NOBODY | ROOT
        and (
            n.mode is None
            or (
                n.mode & GROUP_READ_WRITE == GROUP_READ_WRITE
                and n.mode & OTHERS_READ_WRITE != OTHERS_READ_WRITE
            )
        )
    )


def group_lacking(seen: Evidence) -> bool:
    """Whether a node's group is not among the groups that are told: a number is no name, and says nothing of one."""
    forms = {group.isdigit() for group in seen.groups}
    return any(n.group not in seen.groups and n.group.isdigit() in forms for n in gated_nodes(seen))


def all_groups_held(seen: Evidence) -> bool:
    """Whether the groups that are told have each node's."""
    nodes = gated_nodes(seen)
    return bool(seen.groups and nodes) and all(n.group in seen.groups for n in nodes)


def another_group_given(seen: Evidence) -> bool:
    """Whether the container got a group by name, and the node is said to belong to another one."""
    given = {
        name.partition("=")[2].lower() for name, _ in seen.flags if name.startswith("--group-add=")
    }
    theirs = {
        match[1]
        for match, _ in seen.told.matches(
            r"^(?:group_of_(?:the_)?(?:kfd|render\w*|nodes?)|(?:kfd|render\w*|nodes?)_group)\W{1,3}([a-z][\w-]*)"
        )
    } | {node.group for node in gated_nodes(seen) if not node.group.isdigit()}
    return bool(given and theirs) and given.isdisjoint(theirs)


def _gids_of_nodes(seen: Evidence) -> tuple[set[str], set[str]]:
    """Return the groups of kfd and those of render nodes: from listings, LXC entries and facts of the host."""
    kfd, render = set(), set()
    for n in seen.nodes:
        if n.mode is not None and (
            n.mode & OTHERS_READ_WRITE == OTHERS_READ_WRITE
            or n.mode & GROUP_READ_WRITE != GROUP_READ_WRITE
        ):
            continue
        if n.path == "/dev/kfd":
            kfd.add(n.group)
        elif "renderd" in n.path:
            render.add(n.group)
    for body in (seen.log, seen.told):
        for match, _ in body.matches(
            r"(/dev/kfd|/dev/dri/renderd\d+)[^\n]{0,40}?\bgid\W{1,3}(\d+)"
        ):
            (kfd if match[1] == "/dev/kfd" else render).add(match[2])
    return kfd, render


def gids_differ(seen: Evidence) -> bool:
    """Whether kfd and the render nodes have no group in common."""
    kfd, render = _gids_of_nodes(seen)
    return bool(kfd and render) and kfd.isdisjoint(render)


def one_of_two_held(seen: Evidence) -> bool:
    """Whether the process holds the group of kfd or of the render nodes, and not both."""
    kfd, render = _gids_of_nodes(seen)
    held = seen.groups & (kfd | render)
    return kfd.isdisjoint(render) and bool(held) and held != kfd | render


def passed_without_group(seen: Evidence) -> bool:
    """Whether kfd has rights for root's group, which no kernel gives it, and render nodes have a group of their own."""
    return gids_differ(seen) and any(
        n.path == "/dev/kfd"
        and n.group in ROOT
        and n.mode is not None
        and n.mode & GROUP_READ_WRITE == GROUP_READ_WRITE
        for n in seen.nodes
    )
