"""What the plan grants, and how something that can be reached is judged."""

from __future__ import annotations

from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed

NO_PLAN = "recorded, not judged: there is no plan to compare with"
CAP_NET_RAW, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_MKNOD = 13, 19, 21, 27  # linux/capability.h
MOST_REACHED, MOST_NAMED = 40, 5


class Grants:
    """The plan's grants; *known* is False for a run by hand that was told of none."""

    def __init__(self, expect: dict[str, Any]) -> None:
        given = expect.get("granted")
        self.known = given is not None
        self._given: dict[str, Any] = given or {}
        self._effective = int(str(expect.get("cap_eff") or "0"), 16)
        self.read_only_root = bool(expect.get("read_only_root"))
        self.devices: dict[str, str] = self._given.get("devices") or {}

    def word(self, key: str) -> Any:
        """Return what the plan says of *key*."""
        return self._given.get(key)

    def capability(self, number: int) -> bool:
        """Whether the plan makes a capability effective."""
        return bool(self._effective >> number & 1)

    def judge(self, check: Check, reached: list[str], *, granted: bool = False) -> None:
        """Fail for what was reached, one sentence each, unless the plan grants it all."""
        check.evidence["reached"] = reached[:MOST_REACHED]
        if not reached:
            return
        if self.known:
            check.evidence["granted"] = granted
        if granted:
            return
        if not self.known:
            check.skip(f"{NO_PLAN} ({'; '.join(reached[:MOST_NAMED])})")
            return
        left = len(reached) - MOST_NAMED
        more = f" and {left} more" if left > 0 else ""
        raise CheckFailed("; ".join(reached[:MOST_NAMED]) + more + ": the plan does not grant it")
