"""What people see of a seccomp profile that was made, or was not."""

import io

from rich.console import Console

from rocmrun.console.tailored_seccomp import print_filter
from rocmrun.core.seccomp_tailored import GroupVerdict, SeccompBase, TailoredSeccomp
from rocmrun.core.verification import Verification

BASE = SeccompBase(source="the engine's own", engine="docker 28.5.2", sha256="ab", calls=351)
KEPT = GroupVerdict(
    group="@aio", verdict="required", evidence="io_setup: \x1b[31mOperation not permitted", exposes="files"
)  # fmt: skip
GONE = GroupVerdict(
    group="@debug", verdict="removed", warning="jobs can lose without a word: speed"
)


def shown(**changes: object) -> str:
    values: dict[str, object] = {
        "status": "tailored", "file": "/srv/job.json", "sha256": "cd", "base": BASE, "groups": (KEPT, GONE),
        "kept": ("@aio",), "removed": ("@timer", "@debug"), "calls_before": 351, "calls_after": 180, "one_minimal": True,
        "verification": Verification(passes=10, runs=10, control_passes=2, control_runs=2, excluded_failure_rate=0.259),
        **changes,
    }  # fmt: skip
    text = io.StringIO()
    print_filter(Console(file=text, width=200), TailoredSeccomp.model_validate(values))
    return text.getvalue()


def test_what_was_kept_is_shown_with_its_evidence() -> None:
    """What went is named, with what may be lost; how sure it is, and what it does not say."""
    text = shown()

    assert "@aio          required  io_setup: Operation not permitted  files" in text
    assert "/srv/job.json: 180 system calls of the 351 of the engine's own; passed 10 of 10" in text
    assert "it fails in less than 26% of runs" in text
    assert "without @debug, @timer\n" in text
    assert "note: @debug: jobs can lose without a word: speed" in text
    assert "were not seen: watch the first runs" in text
    assert "can allow too much" not in text


def test_what_is_not_proven_is_said() -> None:
    """And a rule that went into the filter."""
    text = shown(one_minimal=False, groups=(), removed=(), rules=("seccomp:+mempolicy",))

    assert "without none of its groups" in text
    assert "the filter passes, and can allow too much" in text
    assert "seccomp:+mempolicy is in it: no capability need unlock that any more" in text
    assert "verdict" not in text


def test_why_there_is_none_is_said() -> None:
    """In one line."""
    text = shown(status="failed", reason="the budget was spent", base=None, verification=None)

    assert text == "no seccomp profile: the budget was spent\n"
