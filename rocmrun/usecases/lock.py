"""Lock: keep the pins there are, ask for what is missing, write the file whole. Profiles are never rewritten."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from rocmrun.core.lock import Lock, LockedFacts, PinnedImage
from rocmrun.core.lock_changes import (
    Question,
    apply_answers,
    changes,
    merge,
    moving_tag_warnings,
    questions,
    select_upgrades,
)
from rocmrun.core.lock_check import combine
from rocmrun.core.lock_report import FileReport, LockReport
from rocmrun.core.measured import with_measured
from rocmrun.core.signature import VerifiedSignature
from rocmrun.errors import LockUnreadable, LockUnwritable
from rocmrun.system.files import guarded, make_directory, read_text, write_atomic
from rocmrun.usecases.lock_ask import Inquiry, Sources, ask_all
from rocmrun.usecases.lock_files import LockFile, by_lock, read_lock_file
from rocmrun.usecases.lock_selection import Selection
from rocmrun.usecases.locks import LockPlaces, read_lock
from rocmrun.usecases.proofs import measured_in
from rocmrun.usecases.signatures import Verify, verify_signature

GUARD_SECONDS = 30.0
DEFAULT_JOBS = 8
DEFAULT_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRequest:
    """What the command line asks for.

    Attributes:
        upgrade: Ask for every tag again.
        upgrade_images: Ask again for these: profile names or references.
        facts: Read what images claim to hold.
        jobs: Questions at once.
        timeout_seconds: For each question.
    """

    selection: Selection
    upgrade: bool = False
    upgrade_images: tuple[str, ...] = ()
    facts: bool = False
    dry_run: bool = False
    jobs: int = DEFAULT_JOBS
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


@dataclass(slots=True, kw_only=True)
class _Round:
    """The questions of one run, each asked once however many files want it, and the answers."""

    questions: dict[Question, PinnedImage | None] = field(default_factory=dict)
    answers: dict[Question, PinnedImage] = field(default_factory=dict)
    verified: tuple[VerifiedSignature, ...] = ()
    warnings: list[str] = field(default_factory=list)


def lock_profiles(
    request: LockRequest,
    *,
    places: LockPlaces,
    open_sources: Callable[[Callable[[str], None]], Sources],
    on_ask: Callable[[int], None] = lambda _count: None,
    verify: Verify = verify_signature,
    measured: Callable[[str], LockedFacts | None] = measured_in,
) -> LockReport:
    """Bring the locks of the selected profiles up to date.

    Args:
        request: What is asked for.
        places: Where locks stand.
        open_sources: Returns whom to ask, given what takes warnings; not called when there is no question.
        on_ask: Called with the number of questions before they go out.
        verify: Verifies the signatures that profiles ask for, of every pin that was asked about.
        measured: Returns what probes measured in an image, by its digest or a local image's id.

    Raises:
        PlanRefused: a profile refuses moving tags and has one.
        UsageError: --upgrade-image names nothing.
        LockUnreadable: a lock is there and cannot be read.
        LockBusy: another process changed the same pins meanwhile.
        RocmrunError: what could not be resolved or verified, all of it; then nothing was written.
    """
    files = tuple(
        read_lock_file(path, references, places)
        for path, references in by_lock(request.selection.references, places).items()
    )
    wanted = [item for file in files for item in file.wanted]
    warnings = [*request.selection.notes, *moving_tag_warnings(wanted)]
    asked = {file.path: _questions(request, file, _upgrades(request, files)) for file in files}
    around = _Round(warnings=warnings)
    for file in files:
        around.questions |= {q: file.pins.get(q.ref) for q in asked[file.path]}
    if around.questions:
        on_ask(len(around.questions))
        _answer(around, request, open_sources)
        around.verified = _verify(around, files, request, verify)
    reports = tuple(
        _finish(file, {q.ref: around.answers[q] for q in asked[file.path]}, request, measured)
        for file in files
    )
    return LockReport(
        files=reports,
        warnings=tuple(dict.fromkeys(around.warnings)),
        asked=len(around.questions),
        verified=around.verified,
        dry_run=request.dry_run,
    )


def _upgrades(request: LockRequest, files: tuple[LockFile, ...]) -> frozenset[str]:
    wanted = [item for file in files for item in file.wanted]
    locked = [image.ref for file in files for image in file.pins.images]
    if not request.upgrade:
        return select_upgrades(request.upgrade_images, wanted, locked)
    used = request.selection.used
    others = () if used is None else (ref for ref in locked if ref in used)
    return frozenset((*(item.ref for item in wanted), *others))


def _questions(
    request: LockRequest, file: LockFile, upgrades: frozenset[str]
) -> tuple[Question, ...]:
    return questions(file.pins, file.wanted, upgrade=upgrades, facts=request.facts)


def _answer(
    around: _Round,
    request: LockRequest,
    open_sources: Callable[[Callable[[str], None]], Sources],
) -> None:
    inquiry = Inquiry(
        sources=open_sources(around.warnings.append),
        timeout_seconds=request.timeout_seconds,
        facts=request.facts,
        warnings=around.warnings,
    )
    asked = list(around.questions)
    found, failures = ask_all(
        asked, lambda question: inquiry.pin(question, around.questions[question]), jobs=request.jobs
    )
    if failures:
        summary = f"{len(failures)} of {len(asked)} images could not be locked; nothing was written"
        raise combine(failures, summary)
    around.answers = dict(zip(asked, found, strict=True))


def _verify(
    around: _Round, files: tuple[LockFile, ...], request: LockRequest, verify: Verify
) -> tuple[VerifiedSignature, ...]:
    """Verify the answers whose profiles ask for a signature, each with every rule once."""
    rules = {item.ref: item.rules for file in files for item in file.wanted}
    asked = dict.fromkeys(
        (pin, rule) for pin in around.answers.values() for rule in rules.get(pin.ref, ())
    )
    found, failures = ask_all(asked, lambda item: verify(*item), jobs=request.jobs)
    if failures:
        summary = f"{len(failures)} signatures could not be verified; nothing was written"
        raise combine(failures, summary)
    return tuple(found)


def _finish(
    file: LockFile,
    answers: Mapping[str, PinnedImage],
    request: LockRequest,
    measured: Callable[[str], LockedFacts | None],
) -> FileReport:
    used = request.selection.used
    keep = None if used is None else used | {item.ref for item in file.wanted}
    after = apply_answers(file.pins, answers, keep=keep)
    if request.facts:
        after = _with_measured(after, {item.ref for item in file.wanted}, measured)
    own = file.own(after, answers)
    return FileReport(
        path=str(file.path),
        changes=changes(file.own(file.pins, answers), own),
        written=False if request.dry_run else _write(file, own),
        inherited=tuple(item for item in file.inherited if item.pin.ref not in answers),
    )


def _with_measured(
    lock: Lock, refs: Collection[str], measured: Callable[[str], LockedFacts | None]
) -> Lock:
    """Return *lock* with what probes measured in the images of *refs*: nobody needs to be asked for that."""

    def improved(pin: PinnedImage) -> PinnedImage:
        found = measured(pin.digest or pin.image_id or "") if pin.ref in refs else None
        return pin.model_copy(update={"facts": with_measured(pin.facts, found)})

    return Lock.of(map(improved, lock.images))


def _write(file: LockFile, after: Lock) -> bool:
    """Write *after*, together with what another process wrote since the file was read."""
    if file.before is None and not after.images:
        return False
    if file.before == after and read_text(file.path, LockUnreadable) == after.text():
        return False  # nothing to do, and no need for a directory that can be written
    make_directory(file.path.parent, error=LockUnwritable)
    with guarded(file.path, timeout_seconds=GUARD_SECONDS, error=LockUnwritable):
        before, now = file.before or Lock(), read_lock(file.path) or Lock()
        merged = after if now == before else merge(before, after, now)
        return write_atomic(file.path, merged.text(), error=LockUnwritable)
