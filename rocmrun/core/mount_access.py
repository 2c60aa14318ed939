"""Whether a plan's user may use the source of a bind mount, component by component.

Inside, only the source itself counts: the mount leads straight to it, so that what guards the
directories above it on the host guards nothing there. Those the engine walks, as root, or as the user
who runs it where it is rootless.
"""

from dataclasses import dataclass
from typing import Literal

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.identity import ENTER, READ, WRITE, Identity
from rocmrun.core.path_facts import PathFacts
from rocmrun.core.plan import PlannedMount

_USER_SOCKET = "unix:///run/user/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentAccess:
    """One directory of the way, or the source itself.

    Attributes:
        asks: Who must pass: "engine" on the way, "container" at the end.
        needs: What of "rwx" is needed.
        errno: "0" or "EACCES"; None is not known.
    """

    path: str
    owner: str
    mode: str
    asks: Literal["engine", "container"]
    needs: str
    errno: Literal["0", "EACCES"] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountAccess:
    """What using a mount source gives inside.

    Attributes:
        errno: "0" or "EACCES"; None is not known, and *sentence* says why.
        component: The path that refuses; None when none does.
        fixes: What to do about it, the narrowest first.
    """

    source: str
    target: str
    errno: Literal["0", "EACCES"] | None
    component: str | None
    sentence: str
    fixes: tuple[str, ...]
    components: tuple[ComponentAccess, ...]


def mount_access(
    mount: PlannedMount,
    facts: PathFacts,
    identity: Identity,
    engine: EngineFacts | None,
    caller_uid: int,
) -> MountAccess:
    """Return whether *identity* may use the source of *mount*."""
    daemon = _daemon(engine, caller_uid)
    wanted = READ | (0 if mount.read_only else WRITE)
    if facts.kind == "directory":
        wanted |= ENTER
    *way, end = facts.components or (("", 0, 0, 0),)
    components = (
        *(_passes(part, daemon) for part in way),
        _opens(end, wanted, identity, acl=facts.acl),
    )
    refusing = next((part for part in components if part.errno == "EACCES"), None)
    unknown = next((part for part in components if part.errno is None), None)
    return MountAccess(
        source=mount.source,
        target=mount.target,
        errno="EACCES" if refusing else None if unknown else "0",
        component=refusing.path if refusing else None,
        sentence=_sentence(refusing, unknown, end, identity, acl=facts.acl),
        fixes=_fixes(mount, end, wanted, identity, refusing) if refusing else (),
        components=components,
    )


def _daemon(engine: EngineFacts | None, caller_uid: int) -> int:
    """Return the uid that walks to the source."""
    if engine is None or not engine.rootless:
        return 0
    owner = engine.address.removeprefix(_USER_SOCKET).partition("/")[0]
    return int(owner) if engine.address.startswith(_USER_SOCKET) and owner.isdigit() else caller_uid


def _passes(part: tuple[str, int, int, int], daemon: int) -> ComponentAccess:
    path, mode, uid, gid = part
    errno: Literal["0", "EACCES"] | None = "0"
    if daemon != 0:
        bits = mode >> 6 if uid == daemon else mode
        # Which groups the engine's user has is not known.
        maybe = uid != daemon and mode >> 3 & ENTER
        errno = "0" if bits & ENTER else None if maybe else "EACCES"
    return _component(path, mode, uid, gid, asks="engine", needs=ENTER, errno=errno)


def _opens(
    part: tuple[str, int, int, int], wanted: int, identity: Identity, *, acl: bool
) -> ComponentAccess:
    path, mode, uid, gid = part
    errno: Literal["0", "EACCES"] | None = "0"
    if _by_acl(uid, identity, acl=acl):
        errno = None
    elif not identity.may(wanted, mode, uid, gid):
        # A mapped id may own the source all the same: which, only the engine's own files say.
        errno = None if identity.mapped else "EACCES"
    return _component(path, mode, uid, gid, asks="container", needs=wanted, errno=errno)


def _by_acl(uid: int, identity: Identity, *, acl: bool) -> bool:
    """Whether an ACL decides, which was not read: it has no say for the owner or against a capability."""
    return acl and uid != identity.uid and not identity.overrides


def _component(
    path: str,
    mode: int,
    uid: int,
    gid: int,
    *,
    asks: Literal["engine", "container"],
    needs: int,
    errno: Literal["0", "EACCES"] | None,
) -> ComponentAccess:
    return ComponentAccess(
        path=path, owner=f"{uid}:{gid}", mode=f"{mode:04o}", asks=asks, needs=_letters(needs), errno=errno
    )  # fmt: skip


def _letters(bits: int) -> str:
    return "".join(letter for letter, bit in zip("rwx", (4, 2, 1), strict=True) if bits & bit)


def _sentence(
    refusing: ComponentAccess | None,
    unknown: ComponentAccess | None,
    end: tuple[str, int, int, int],
    identity: Identity,
    *,
    acl: bool,
) -> str:
    if refusing and refusing.asks == "engine":
        return f"{refusing.path} is mode {refusing.mode}, owner {refusing.owner}: the rootless engine may not enter it"
    if refusing:
        return f"{refusing.path} needs {refusing.needs}, {identity.refusal(*end[1:])}"
    if unknown is None:
        return ""
    if acl and unknown.asks == "container":
        return "has an ACL, which decides: not judged"
    return "the engine maps ids to others: not judged"


def _fixes(
    mount: PlannedMount,
    end: tuple[str, int, int, int],
    wanted: int,
    identity: Identity,
    refusing: ComponentAccess,
) -> tuple[str, ...]:
    """Return ways that give this user this right, and nobody else any: never a mode for everybody."""
    path, mode, uid, gid = end
    if refusing.asks == "engine":
        return (f"give the engine's user the right to enter: setfacl -m u:USER:x {refusing.path}",)
    found = []
    if not mount.read_only and identity.may(wanted & ~WRITE, mode, uid, gid):
        found.append(f'mode = "ro" for {mount.target}, if it is only read')
    by_group = mode >> 3 & wanted == wanted and gid != 0 and uid != identity.uid
    if by_group and gid not in identity.groups:
        found.append(f'[container] groups = ["path:{mount.target}"]')
    if mode >> 6 & wanted == wanted and uid not in (0, identity.uid):
        found.append(f'[container] user = "{uid}:{gid}"')
    letters = "rX" if mount.read_only else "rwX"
    found.append(f"setfacl -R -m u:{identity.uid}:{letters} {path}")
    return tuple(found)
