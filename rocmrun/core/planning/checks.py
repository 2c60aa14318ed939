"""The checks of a profile's own on their way into the plan and to the probe."""

import hashlib
from collections.abc import Mapping
from typing import Any

from rocmrun.core.plan import PlannedCheck
from rocmrun.core.profile.checks import OwnCheck

LONGEST_FILE_BYTES = 1 << 20


def planned_check(check: OwnCheck, files: Mapping[str, str]) -> PlannedCheck:
    """Return *check* as a plan holds it; *files* has the text of every file."""
    return PlannedCheck(
        name=check.name,
        command=check.command,
        file=check.file,
        sha256=text_hash(files[check.file]) if check.file else "",
        timeout_seconds=check.timeout,
        expect_exit=check.expect_exit,
        expect_output=check.expect_output,
        metrics=tuple(
            (name, bounds.min, bounds.max) for name, bounds in sorted(check.metrics.items())
        ),
        level=check.level,
        device=check.device,
        writable_mounts=check.writable_mounts,
    )


def sent_check(check: PlannedCheck, files: Mapping[str, str]) -> dict[str, Any]:
    """Return *check* as the probe is told of it: a file's text travels in it."""
    return {
        "name": check.name,
        "command": list(check.command),
        "source": files[check.file] if check.file else "",
        "timeout": check.timeout_seconds,
        "expect_exit": check.expect_exit,
        "expect_output": check.expect_output,
        "metrics": {
            name: {
                word: bound for word, bound in (("min", low), ("max", high)) if bound is not None
            }
            for name, low, high in check.metrics
        },
        "level": check.level,
        "device": check.device,
    }


def text_hash(text: str) -> str:
    """Return the SHA-256 of *text* in hex."""
    return hashlib.sha256(text.encode()).hexdigest()
