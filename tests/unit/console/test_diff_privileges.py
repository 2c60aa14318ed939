"""What people see of a search of privileges."""

import io

from rich.console import Console

from rocmrun.console.diff_privileges import (
    found_as_json,
    print_found,
    print_static,
    static_as_json,
)
from rocmrun.core.certificate import Certificate, PrivilegeVerdict, TrialRecord
from rocmrun.core.exposure.score import score_plan
from rocmrun.core.oracle import TrialResult
from rocmrun.core.plan import Grant
from rocmrun.core.privilege_report import Found, StaticDifference
from rocmrun.core.recording import Recording, RefusedCall
from rocmrun.core.run_record import EngineSummary, HostSummary
from rocmrun.core.verification import Verification
from tests.builders import DIGEST, plan, request

SIDE = {"total": 0.9, "band": "tight"}
KEPT = PrivilegeVerdict(
    privilege="seccomp:+mempolicy",
    verdict="required",
    evidence="set_mempolicy: \x1b[31mOperation not permitted",
    error="EPERM",
    cause="seccomp",
    exposes="mbind",
    instead_of=("seccomp:unconfined",),
)
GONE = PrivilegeVerdict(
    privilege="cap:SYS_PTRACE", verdict="removable", evidence="passed", effect="unlock", warning="jobs can lose speed"
)  # fmt: skip


def found(**changes: object) -> Found:
    values: dict[str, object] = {
        "profile": "job",
        "image_ref": "example.com/rocm/torch:1",
        "image_digest": DIGEST,
        "oracle": {},
        "profile_hash": "ab",
        "engine": EngineSummary(kind="docker", version="20.10.24", api_version="1.41", address=""),
        "host": HostSummary(kernel="6.8.0"),
        "base": (),
        "permissive": ("seccomp:unconfined", "cap:SYS_PTRACE"),
        "minimal": ("seccomp:+mempolicy",),
        "one_minimal": True,
        "stopped": False,
        "verification": Verification(
            passes=5, runs=5, control_passes=2, control_runs=2, excluded_failure_rate=0.451
        ),
        "verdicts": (KEPT, GONE),
        "runs": (
            TrialRecord(request="ab", items=(), purpose="gate", result=TrialResult(verdict="fail")),
        ),
        "exposure": {"permissive": {"total": 6.1, "band": "exposed"}, "minimal": SIDE},
        "started_at": "then",
        "ended_at": "now",
        **changes,
    }
    return Found(
        certificate=Certificate.model_validate(values), plan=plan(), profile=request().profile
    )


def printed(shown: Found, *forms: str) -> str:
    stream = io.StringIO()
    print_found(Console(file=stream, width=200, markup=False, highlight=False), shown, forms)
    return stream.getvalue()


def test_a_verdict_is_shown_with_its_evidence_and_who_refused() -> None:
    """In the program's own words, without what a terminal would obey."""
    text = printed(found())

    assert "seccomp:+mempolicy (instead of seccomp:unconfined)  required  set_mempolicy: Operation not permitted [seccomp]" in text  # fmt: skip
    assert "\x1b" not in text
    assert "cap:SYS_PTRACE (unlocks system calls only)" in text
    assert "note: cap:SYS_PTRACE: jobs can lose speed" in text
    assert "job needs beyond the baseline: seccomp:+mempolicy" in text
    assert "exposure 6.1 (exposed) → 0.9 (tight), of 10" in text


def test_the_most_severe_comes_first_and_what_is_not_needed_apart() -> None:
    """Its evidence is one for all; the recording has a column where it has a word."""
    mild = GONE.model_copy(update={"privilege": "cap:KILL", "effect": "effective", "severity": 1.2})
    root = GONE.model_copy(update={"privilege": "user:root", "effect": "", "severity": 6.0})
    room = KEPT.model_copy(update={"privilege": "shm:8589934592", "severity": 0.5})
    wide = KEPT.model_copy(update={"privilege": "rootfs:rw", "severity": 3.0, "instead_of": ()})

    text = printed(found(verdicts=(room, wide, mild, root)))
    kept, gone = text.split("Without these 2 it passed 5 of 5 runs:\nnot needed")
    assert kept.index("rootfs:rw") < kept.index("shm:8589934592 (8 GiB)")
    assert gone.index("user:root") < gone.index("cap:KILL")
    assert "recorded" not in gone
    assert "CAP_KILL never asked for" in printed(
        found(verdicts=(mild.model_copy(update={"seen": "CAP_KILL never asked for"}),))
    )
    assert not printed(found(verdicts=())).startswith("privilege ")


def test_how_sure_it_is_is_said() -> None:
    """Five passes exclude 45 %, one says little, and a job that fails at times is named."""
    seen = {"control_passes": 2, "control_runs": 2, "excluded_failure_rate": 0.451}
    once = found(verification={**seen, "passes": 1, "runs": 1})
    flaky = found(verification={**seen, "passes": 4, "runs": 5})

    assert "5 of 5, the permissive side 2 of 2: it fails in less than 45% of runs (at 95 %)" in printed(found())  # fmt: skip
    assert "seen once, which says little of how often it fails" in printed(once)
    assert "the job fails at times, whatever it may" in printed(flaky)
    assert "can be too large" in printed(found(one_minimal=False))


def test_what_a_traced_run_saw_stands_beside_the_verdict() -> None:
    """With how much it was, what was lost, and why where there is nothing; without a word when nobody asked."""
    seen = KEPT.model_copy(update={"seen": "mbind refused with EPERM 3 times"})
    refused = RefusedCall(call="mbind", error="EPERM", times=3, program="job")
    whole = Recording(recorded=True, complete=True, calls=("brk", "mbind"), refused=(refused,), capabilities=())  # fmt: skip
    partly = whole.model_copy(update={"complete": False, "capabilities": None, "why": "the kernel had no room for 7 events"})  # fmt: skip
    absent = Recording(why="the kernel lets only root trace")

    text = printed(found(verdicts=(seen,), evidence=whole))
    assert "Operation not permitted [seccomp]; recorded: mbind refused with EPERM 3 times" in text
    assert "recorded in one run: 2 system calls, 3 refusals, 0 capabilities asked for\n" in text
    text = printed(found(evidence=partly))
    assert "no word of capabilities from this kernel; incomplete: the kernel had no room for 7 events" in text  # fmt: skip
    assert "nothing was recorded: the kernel lets only root trace" in printed(found(evidence=absent))  # fmt: skip
    assert "recorded" not in printed(found())


def test_the_forms_that_are_asked_for_are_shown() -> None:
    """None by default; JSON has all."""
    assert "docker run" not in printed(found())
    assert "docker run" in printed(found(), "docker")
    assert "hostIPC: false" in printed(found(), "kubernetes")
    body = found_as_json(found())
    assert {"docker", "compose", "kubernetes"} == set(body["forms"])
    assert {"verdicts", "minimal", "runs", "exposure"} <= body.keys()
    assert body["needs_more"] is True


def test_two_sides_are_shown_with_what_each_grant_exposes() -> None:
    """A mount is no privilege of the catalogue; a capability is explained for the user that has it."""
    grants = tuple(
        Grant(what=what, reason="r", asked_by="p") for what in ("cap:SYS_NICE", "mount:/m:ro")
    )
    score = score_plan(plan(), request().host, None)
    difference = StaticDifference(
        names=("a", "b"),
        only=(grants, ()),
        both=("user:root",),
        exposures=(score, score),
        untested={"cap:SYS_ADMIN": "together with root"},
    )
    stream = io.StringIO()

    first, second = static_as_json(difference)["sides"]
    print_static(Console(file=stream, width=200, markup=False, highlight=False), difference)

    assert [grant["exposes"] for grant in first["only"]] == ["priorities above others'", ""]
    assert second["only"] == []
    assert "Only a (2)" in stream.getvalue()
    assert "cap:SYS_ADMIN is in no plan: together with root" in stream.getvalue()
