"""Who a process inside a container is to the kernel that guards files and device nodes."""

from dataclasses import dataclass

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.plan import Plan

READ, WRITE, ENTER = 0o4, 0o2, 0o1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user with its groups.

    Attributes:
        overrides: Has CAP_DAC_OVERRIDE in force: owners and modes do not count.
        searches: Has CAP_DAC_READ_SEARCH in force: everything may be read and entered.
        mapped: Ids inside are others on the host, so that no owner and no group fits.
        rootless: The engine has no rights of its own.
    """

    uid: int
    groups: frozenset[int]
    overrides: bool = False
    searches: bool = False
    mapped: bool = False
    rootless: bool = False

    @classmethod
    def of(cls, plan: Plan, engine: EngineFacts | None) -> "Identity":
        """Return the user of *plan*; Docker makes capabilities effective for root alone."""
        rootless = engine is not None and engine.rootless
        mapped = rootless or (engine is not None and engine.userns_remap)
        # A capability inside a user namespace has no say about files of ids outside of it.
        effective = frozenset(plan.cap_add) if plan.uid == 0 and not mapped else frozenset()
        return cls(
            uid=plan.uid,
            groups=frozenset({plan.gid, *plan.groups}),
            overrides="DAC_OVERRIDE" in effective,
            searches="DAC_READ_SEARCH" in effective,
            mapped=mapped,
            rootless=rootless,
        )

    def may(self, wanted: int, mode: int, uid: int, gid: int) -> bool:
        """Whether the class that fits has every bit of *wanted* (READ, WRITE, ENTER together)."""
        if self.overrides or (self.searches and not wanted & WRITE):
            return True
        return self.bits(mode, uid, gid) & wanted == wanted

    def bits(self, mode: int, uid: int, gid: int) -> int:
        """Return the three bits of the one class that the kernel looks at: owner, group or others."""
        return mode >> _SHIFTS[self._class_of(uid, gid)] & 0o7

    def refusal(self, mode: int, uid: int, gid: int) -> str:
        """Say which class a file's mode refuses."""
        if self.mapped:
            return f"mode {mode:04o}: the engine maps ids, so neither owner {uid} nor group {gid} is inside, and others may not"  # fmt: skip
        return {
            "owner": f"mode {mode:04o}: uid {uid} owns it, and the owner may not",
            "group": f"mode {mode:04o}: group {gid} owns it, and the group may not",
            "others": f"mode {mode:04o}, owner {uid}:{gid}: uid {self.uid} is neither, and others may not",
        }[self._class_of(uid, gid)]

    def _class_of(self, uid: int, gid: int) -> str:
        if self.mapped:
            return "others"
        if uid == self.uid:
            return "owner"
        return "group" if gid in self.groups else "others"


_SHIFTS = {"owner": 6, "group": 3, "others": 0}
