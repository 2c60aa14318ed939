"""Clean: trace instances in the kernel that nobody reads any more."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from rocmrun.system.caller import process_label, process_runs
from rocmrun.system.tracefs import PREFIX, TraceUnavailable, owners, remove_instance, tracefs


def owner_name(token: str) -> str:
    """Return what an instance of this process is called after: *token*, and enough to tell whether it still runs."""
    return f"{token}.{process_label().replace(':', '.')}"


def clean_traces(
    *,
    dry_run: bool,
    runs: Callable[[str], bool] = process_runs,
    root: Path | None = None,
    uid: int | None = None,
) -> list[tuple[str, str]]:
    """Remove instances whose rocmrun is gone; return (name, why) of each. Who may not trace has made none.

    Args:
        dry_run: Only say what would be removed.
        runs: Says whether the process that a label names is still there.
        root: The kernel's tracing files; None for where they are.
        uid: Who cleans; None for who we are.
    """
    found = []
    with contextlib.suppress(TraceUnavailable), tracefs(root, uid=uid) as place:
        for owner in owners(place):
            if runs(owner.partition(".")[2].replace(".", ":")):
                continue
            kept = "" if dry_run else remove_instance(place, owner)
            stays = f"; it stays: {kept}" if kept else ""
            why = f"left by a rocmrun that is gone{stays}"
            found.append((f"trace instance {PREFIX}{owner}", why))
    return found
