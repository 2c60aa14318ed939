"""What a `rocmrun lock` did, and what its check found: values for people and scripts to be told from."""

from dataclasses import dataclass

from rocmrun.core.lock import PinnedImage
from rocmrun.core.lock_changes import Change
from rocmrun.core.lock_check import Finding, combine
from rocmrun.core.signature import VerifiedSignature
from rocmrun.errors import RocmrunError


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """A pin that counts for a profile and stands in another lock, at *path*."""

    pin: PinnedImage
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What happened to the lock file at *path*, and which pins other locks provided."""

    path: str
    changes: tuple[Change, ...]
    written: bool
    inherited: tuple[Inherited, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LockReport:
    """What a run did.

    Attributes:
        asked: How many images somebody was asked about.
        verified: Signatures of what was asked for, where profiles want one.
    """

    files: tuple[FileReport, ...]
    warnings: tuple[str, ...] = ()
    asked: int = 0
    verified: tuple[VerifiedSignature, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check found.

    Attributes:
        paths: The locks that were looked at.
        checked: References whose profiles and pins agree, whether or not their tags do.
        findings: What is wrong, sorted by reference.
        warnings: What is worth saying and no failure.
        verified: Signatures of locked digests, where profiles want one.
        offline: Whether no registry was asked.
    """

    paths: tuple[str, ...]
    checked: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    verified: tuple[VerifiedSignature, ...] = ()
    offline: bool = False

    @property
    def failure(self) -> RocmrunError | None:
        """The one error that stands for all findings; None when there are none."""
        if not self.findings:
            return None
        summary = f"the check found {len(self.findings)} things wrong"
        return combine([finding.error for finding in self.findings], summary)
