"""Check: profiles against locks without any network, then tags against their registries. Writes nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rocmrun.core.lock import PinnedImage
from rocmrun.core.lock_changes import moving_tag_warnings, pin_label
from rocmrun.core.lock_check import Finding, drift, gone, offline_findings
from rocmrun.core.lock_report import CheckReport
from rocmrun.core.reference import Reference, parse_reference
from rocmrun.core.signature import SignatureRule, VerifiedSignature
from rocmrun.core.text import short_digest
from rocmrun.errors import ImageGone, LockError, RocmrunError
from rocmrun.usecases.lock import DEFAULT_JOBS, DEFAULT_TIMEOUT_SECONDS
from rocmrun.usecases.lock_ask import Inquiry, Sources, ask_all, locked_digests
from rocmrun.usecases.lock_files import by_lock, read_lock_file
from rocmrun.usecases.lock_selection import Selection
from rocmrun.usecases.locks import LockPlaces
from rocmrun.usecases.signatures import Verify, verify_again

OpenSources = Callable[[Callable[[str], None], dict[str, str]], Sources]


@dataclass(slots=True, kw_only=True)
class _Found:
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    pins: dict[str, PinnedImage] = field(default_factory=dict)
    rules: dict[str, tuple[SignatureRule, ...]] = field(default_factory=dict)
    verified: list[VerifiedSignature] = field(default_factory=list)


def check_locks(
    selection: Selection,
    *,
    places: LockPlaces,
    open_sources: OpenSources | None,
    jobs: int = DEFAULT_JOBS,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    verify: Verify = verify_again,
) -> CheckReport:
    """Compare the selected profiles with their locks, and the locked tags with their registries.

    Args:
        selection: The profiles.
        places: Where locks stand.
        open_sources: Returns whom to ask, given what takes warnings and the digests that are expected;
            None to ask nobody (--offline).
        jobs: Questions at once.
        timeout_seconds: For each question.
        verify: Verifies the signatures that profiles ask for.

    Raises:
        PlanRefused: a profile refuses moving tags and has one.
    """
    found = _Found(warnings=[*selection.notes])
    paths = _compare_with_profiles(selection, places, found)
    if open_sources is not None and found.pins:
        _compare_with_registries(found, open_sources, jobs, timeout_seconds)
        _verify(found, verify, jobs)
    return CheckReport(
        paths=tuple(str(path) for path in paths),
        checked=tuple(sorted(found.pins)),
        findings=tuple(sorted(found.findings, key=lambda finding: finding.ref)),
        warnings=tuple(dict.fromkeys(found.warnings)),
        verified=tuple(found.verified),
        offline=open_sources is None,
    )


def _compare_with_profiles(
    selection: Selection, places: LockPlaces, found: _Found
) -> tuple[Path, ...]:
    grouped = by_lock(selection.references, places)
    for path, references in grouped.items():
        try:
            file = read_lock_file(path, references, places)
        except LockError as error:
            found.findings.append(Finding(ref=str(path), error=error))
            continue
        found.warnings += moving_tag_warnings(file.wanted)
        lock = file.pins if file.before is not None or file.inherited else None
        findings = offline_findings(lock, str(path), file.wanted, selection.used)
        found.findings += findings
        wrong = {finding.ref for finding in findings}
        right = (item.ref for item in file.wanted if item.ref not in wrong)
        found.rules |= {item.ref: item.rules for item in file.wanted}
        found.pins |= {ref: pin for ref in right if (pin := file.pins.get(ref))}
    return tuple(grouped)


def _compare_with_registries(
    found: _Found, open_sources: OpenSources, jobs: int, timeout_seconds: float
) -> None:
    asked = [pin for pin in found.pins.values() if pin.source == "registry"]
    if not asked:
        return
    sources = open_sources(found.warnings.append, dict(locked_digests(asked)))
    inquiry = Inquiry(sources=sources, timeout_seconds=timeout_seconds, warnings=found.warnings)
    results, _ = ask_all(asked, lambda pin: _check(inquiry, pin), jobs=jobs)
    found.findings += [finding for finding in results if finding is not None]


def _verify(found: _Found, verify: Verify, jobs: int) -> None:
    """Verify the locked digests anew: a key may have been exchanged, or a signature withdrawn."""
    asked = [(pin, rule) for pin in found.pins.values() for rule in found.rules.get(pin.ref, ())]

    def ask(item: tuple[PinnedImage, SignatureRule]) -> VerifiedSignature | Finding:
        try:
            return verify(*item)
        except RocmrunError as error:
            return Finding(ref=item[0].ref, error=error)

    results, _ = ask_all(asked, ask, jobs=jobs)
    found.verified += [result for result in results if isinstance(result, VerifiedSignature)]
    found.findings += [result for result in results if isinstance(result, Finding)]


def _check(inquiry: Inquiry, pin: PinnedImage) -> Finding | None:
    try:
        error = _drift(inquiry, pin, parse_reference(pin.ref))
    except RocmrunError as failure:
        error = failure
    return None if error is None else Finding(ref=pin.ref, error=error)


def _drift(inquiry: Inquiry, pin: PinnedImage, reference: Reference) -> RocmrunError | None:
    """Return what is wrong with *pin* now, or None. A digest in the reference is a claim that no tag outranks."""
    if reference.digest is not None:
        if reference.tag is not None:
            _compare_claim(inquiry, pin, reference)
        try:
            inquiry.resolve(reference.at(reference.digest))
        except ImageGone:
            return gone(pin, still_there=False)
        return None
    try:
        now = inquiry.resolve(reference)
    except ImageGone:
        return gone(pin, still_there=_is_there(inquiry, pin, reference))
    if now.digest == pin.digest:
        return None
    return drift(pin, now, still_there=_is_there(inquiry, pin, reference))


def _compare_claim(inquiry: Inquiry, pin: PinnedImage, reference: Reference) -> None:
    try:
        now = inquiry.resolve(reference.without_digest())
    except RocmrunError:
        return  # the tag decides nothing here
    if now.digest != pin.digest:
        inquiry.warnings.append(
            f"{reference.without_digest().canonical} is {short_digest(now.digest or '')} by now; "
            f"the profile's digest {pin_label(pin)} is what counts"
        )


def _is_there(inquiry: Inquiry, pin: PinnedImage, reference: Reference) -> bool | None:
    """Return whether the registry has the locked digest; None when it cannot be asked."""
    try:
        inquiry.resolve(reference.at(pin.digest or ""))
    except ImageGone:
        return False
    except RocmrunError:
        return None
    return True
