"""What a seccomp profile must say to be one: an engine takes a profile without a default for no filter at all."""

import json
from typing import Any

# seccomp_rule_add(3) of libseccomp: the actions that keep a call from running. LOG and ALLOW let it run.
RESTRICTING = (
    "SCMP_ACT_ERRNO",
    "SCMP_ACT_KILL",
    "SCMP_ACT_KILL_PROCESS",
    "SCMP_ACT_KILL_THREAD",
    "SCMP_ACT_TRACE",
    "SCMP_ACT_TRAP",
)
_OPEN = ("SCMP_ACT_ALLOW", "SCMP_ACT_LOG")


def compact_seccomp(text: str) -> str:
    """Return the seccomp profile *text* as compact JSON.

    Raises:
        ValueError: it is not JSON, or refuses no system call by default; with what is wrong.
    """
    try:
        profile = json.loads(text, object_pairs_hook=_object)
        compact = json.dumps(profile, separators=(",", ":"), sort_keys=True)
    except json.JSONDecodeError as error:
        msg = f"is not JSON: {error}"
        raise ValueError(msg) from error
    except RecursionError as error:
        msg = "is no seccomp profile: it is nested too deeply"
        raise ValueError(msg) from error
    if not isinstance(profile, dict):
        msg = "is no seccomp profile: it is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004  # the text is wrong, not a caller's type
    action = profile.get("defaultAction")
    if action in _OPEN:
        msg = f'lets every system call run by default ("{action}"); to have no filter, write seccomp:unconfined'
        raise ValueError(msg)
    if action not in RESTRICTING:
        msg = f'is no seccomp profile: "defaultAction" is not one of {", ".join(RESTRICTING)}'
        raise ValueError(msg)
    return compact


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse keys that an engine, which ignores case, would take for one: the last would win there."""
    seen: dict[str, str] = {}
    for key, _ in pairs:
        other = seen.setdefault(key.casefold(), key)
        if other != key:
            msg = f'is no seccomp profile: its keys "{other}" and "{key}" differ in case alone'
            raise ValueError(msg)
    return dict(pairs)
