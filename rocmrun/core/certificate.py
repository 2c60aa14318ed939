"""The certificate of a search of privileges: what was found, with everything that it holds for."""

from collections.abc import Mapping
from typing import Any, Literal

from rocmrun.core.oracle import TrialResult
from rocmrun.core.recording import NOT_ASKED, Recording
from rocmrun.core.run_record import EngineSummary, HostSummary
from rocmrun.core.seccomp_tailored import TailoredSeccomp
from rocmrun.core.tmpfs_offer import NOT_LOOKED_FOR, TmpfsTried
from rocmrun.core.verification import CertificateRecord, Verification

CERTIFICATE_VERSION = 1
_OTHER_JOB = "profile: the job is planned otherwise now: by its profile, or by an option that was or was not given then"
Need = Literal["required", "degraded", "removable", "untested"]


class PrivilegeVerdict(CertificateRecord):
    """Whether the job needs one privilege.

    Attributes:
        evidence: What happened without it, in the program's own words where it had some.
        error: "EPERM" and the like, where the evidence says it.
        seen: What a recording of the permissive side has of it; "" where there is none, or it cannot tell.
        cause: Who said no, as far as the kind of privilege tells.
        exposes: What it opens, from the catalogue.
        effect: Of a capability: "effective", or "unlock" where it only unlocks system calls.
        warning: What may be lost without a word when it is left out; of what is kept, what is narrower and was not tried.
        instead_of: What it stands in for, when the permissive side has not got it itself.
    """

    privilege: str
    verdict: Need
    evidence: str = ""
    error: str = ""
    seen: str = ""
    cause: str = ""
    exposes: str = ""
    effect: str = ""
    severity: float = 0.0
    warning: str = ""
    instead_of: tuple[str, ...] = ()


class TrialRecord(CertificateRecord):
    """One run.

    Attributes:
        request: SHA-256 of the create request, labels left out, and of what is asked of the run.
        items: What the container had beyond the minimal side; of a stage "seccomp" the groups that its filter kept.
        purpose: "gate", "search", "proof" or "canary".
        reused: Whether the result is of an earlier, interrupted search.
    """

    request: str
    items: tuple[str, ...]
    purpose: str
    stage: str = "privileges"
    attempt: int = 0
    deep: bool = False
    reused: bool = False
    result: TrialResult


class Certificate(CertificateRecord):
    """A search, with everything that its result holds for.

    Attributes:
        recipe: "amd" where AMD's usual docker line was the permissive side, else "".
        minimal_profile: The profile of the minimal side; "" for the baseline.
        profile_hash: Of the plan of the permissive side as asked for.
        base: What the minimal side has by itself.
        minimal: What it needs beyond that.
        one_minimal: Whether each of these was left out by itself and the job failed.
        stopped: Whether the budget ended the search: the set is sufficient, and can be too large.
        seccomp: What came of tailoring a seccomp filter, where one was asked for.
        tmpfs: What came of looking for a tmpfs in the place of a writable root.
        evidence: What one traced run of the permissive side asked of the kernel. It decided nothing.
    """

    certificate_version: int = CERTIFICATE_VERSION
    profile: str
    recipe: str = ""
    minimal_profile: str = ""
    image_ref: str
    image_digest: str | None = None
    image_id: str | None = None
    command: tuple[str, ...] = ()
    oracle: dict[str, Any]
    profile_hash: str
    engine: EngineSummary
    host: HostSummary
    base: tuple[str, ...]
    permissive: tuple[str, ...]
    minimal: tuple[str, ...]
    one_minimal: bool
    stopped: bool
    verification: Verification
    verdicts: tuple[PrivilegeVerdict, ...]
    seccomp: TailoredSeccomp | None = None
    tmpfs: TmpfsTried = NOT_LOOKED_FOR
    evidence: Recording = NOT_ASKED
    runs: tuple[TrialRecord, ...]
    exposure: dict[str, Any]
    started_at: str
    ended_at: str

    @property
    def needs_more(self) -> bool:
        """Whether the minimal side fails as given."""
        return bool(self.minimal)


def changes_since(old: Certificate, new: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for each thing that *old* depends on and that is otherwise now.

    Args:
        old: The certificate.
        new: The same fields, as they are now; what is not in it is not compared.
    """
    was = old.model_dump(mode="json")
    sentences = []
    for name, now in sorted(new.items()):
        if name == "profile_hash":
            sentences += [_OTHER_JOB] if was.get(name) != now else []
            continue
        sentences += _differences(name.replace("_", " "), was.get(name), now)
    return tuple(sentences)


def _differences(name: str, was: Any, now: Any) -> list[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        return [
            sentence
            for key in sorted(was.keys() | now.keys())
            for sentence in _differences(f"{name} {key.replace('_', ' ')}", was.get(key), now.get(key))
        ]  # fmt: skip
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [s for index, (one, two) in pairs for s in _differences(f"{name} {index}", one, two)]
    return [] if was == now else [f"{name}: was {was!r}, is {now!r}"]
