"""What a workload's last words mean in its own container: what the plan knows and the words leave out."""

import re
from collections.abc import Iterator

from rocmrun.core.host_paths import is_inside
from rocmrun.core.plan import Plan, PlannedMount
from rocmrun.core.text import human_size

# The words of the C library (strerror, gai_strerror), as programs print them.
_READ_ONLY = re.compile(r"[^\n]*Read-only file system[^\n]*")
_FULL = re.compile(r"[^\n]*No space left on device[^\n]*")
_NO_NETWORK = re.compile(r"Temporary failure in name resolution|Network is unreachable")
_MEMPOLICY = "seccomp:+mempolicy"
_PLACING = re.compile(r"\b(?:mbind|set_mempolicy|move_pages)\b.*Operation not permitted")
_PATH = re.compile(r"(?<![\w.:/])/[^\s'\"`:,;()<>]+")


def read_only_mount(text: str, plan: Plan) -> PlannedMount | None:
    """Return the read-only mount of *plan* in which the last line of *text* that says so could not write."""
    for line in reversed(_READ_ONLY.findall(text)):
        for path in _PATH.findall(line):
            for mount in plan.mounts:
                if mount.read_only and is_inside(path, mount.target):
                    return mount
    return None


def pointers(text: str, plan: Plan) -> Iterator[str]:
    """Yield what to change in the job, a sentence each, where *text* is what it printed last before it failed."""
    mount = read_only_mount(text, plan)
    if mount is not None:
        yield (
            f'{mount.target} is mounted read-only: mode = "rw" where the profile mounts {mount.source}'
        )
    if plan.network == "none" and _NO_NETWORK.search(text):
        yield 'the container has no network: [container] network = "bridge", or --network bridge'
    # Programs print it and go on: it is a reason only as the very last thing that was said.
    last = text.rstrip().rpartition("\n")[2]
    if _PLACING.search(last) and all(grant.what != _MEMPOLICY for grant in plan.grants):
        yield 'calls that place memory on NUMA nodes are refused; a job that cannot do without is granted "seccomp:+mempolicy"'
    full = _FULL.findall(text)
    if full:
        rooms = {"/dev/shm": plan.shm_size_bytes} | {t.target: t.size_bytes for t in plan.tmpfs}  # noqa: S108  # the container's own
        named = {
            place: size
            for place, size in rooms.items()
            if any(is_inside(path, place) for line in full for path in _PATH.findall(line))
        }
        sizes = ", ".join(f"{place} ({human_size(size)})" for place, size in (named or rooms).items())  # fmt: skip
        yield f"what {'is' if named else 'may be'} full: {sizes}; --shm-size or [container] tmpfs makes room"
