"""diff-privileges: find by experiment which privileges a job needs, as the list of steps that it is."""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rocmrun.core.certificate import Certificate
from rocmrun.core.exposure.score import score_plan
from rocmrun.core.privilege_report import Evidence, Found, needed_items, verdicts
from rocmrun.core.privilege_sides import ROOT
from rocmrun.core.recording import NOT_ASKED, Recording
from rocmrun.core.recording_signs import guesses_of
from rocmrun.core.run_record import EngineSummary, HostSummary
from rocmrun.core.search import Search
from rocmrun.core.search_estimate import expected_runs, forecast, time_left
from rocmrun.core.search_space import Finding, Question, Settings, Space
from rocmrun.core.tmpfs_offer import NOT_LOOKED_FOR, ROOTFS
from rocmrun.core.verification import Verification
from rocmrun.core.voice import Voice
from rocmrun.errors import Interrupted, Unavailable, UsageError
from rocmrun.system import signals
from rocmrun.system.package_data import read_probe_source
from rocmrun.system.sysfs import read_host
from rocmrun.usecases.announce import announce
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.gpu_guard import gpus_reserved
from rocmrun.usecases.mount_sources import check_unchanged
from rocmrun.usecases.prepare import load
from rocmrun.usecases.privilege_gate import (
    check_sight,
    leave_out_what_cannot_start,
    never_passes,
)
from rocmrun.usecases.privilege_request import DiffRequest, check_policy, refuse_wider
from rocmrun.usecases.privilege_sides import Sides, load_minimal, make_sides
from rocmrun.usecases.privilege_tmpfs import TmpfsOffer, make_offer
from rocmrun.usecases.privilege_trials import PrivilegeTrials, Spending
from rocmrun.usecases.record_evidence import record_evidence
from rocmrun.usecases.run_report import now
from rocmrun.usecases.seccomp_base import BaseReader
from rocmrun.usecases.seccomp_tailoring import Tailored, Tailoring
from rocmrun.usecases.trial_memory import TrialMemory
from rocmrun.usecases.trials import Trial, Trials

# Before a run has shown how long it takes: a container and a short command; a probe with one import of torch.
COMMAND_SECONDS, PROBE_SECONDS = 5, 20


def diff_privileges(request: DiffRequest, *, connect: Callable[[], Engine], voice: Voice) -> Found:
    """Search the smallest set of privileges with which the job passes, and prove it.

    Raises:
        RocmrunError: the sides cannot be compared, or the job fails on the permissive side too.
    """
    with signals.as_exceptions():
        loaded = load(request.ask)
        minimal = load_minimal(request.minimal) if request.minimal else None
        check_policy(request, loaded)
        engine = connect()
        sides = make_sides(
            request.ask,
            loaded,
            minimal,
            engine,
            recipe=request.recipe,
            prove=request.oracle is None or request.seccomp is not None,
            on_pull=voice.on_pull,
        )
        announce(sides.prepared, voice)
        refuse_wider(loaded, sides)
        plan = sides.plan(())
        reserved = gpus_reserved(
            plan,
            engine,
            exclusive=loaded.profile.gpus.exclusive and not request.share,
            wait_seconds=request.wait_seconds,
            read_host=lambda: read_host(request.ask.host_root),
            lock_directory=request.lock_directory,
            say=voice.say,
        )
        with reserved:
            return _Diff(request=request, sides=sides, engine=engine, voice=voice).run()


@dataclass(slots=True)
class _Diff:
    """One diff on its way."""

    request: DiffRequest
    sides: Sides
    engine: Engine
    voice: Voice
    _asked: PrivilegeTrials = field(init=False)
    _settings: Settings = field(init=False)
    _hash: str = field(init=False)
    _tailoring: Tailoring | None = field(init=False, default=None)
    _recording: Recording = field(init=False, default=NOT_ASKED)
    _offer: TmpfsOffer | None = field(init=False, default=None)
    _timed: bool = field(init=False, default=False)
    _started_at: str = field(init=False, default_factory=now)

    def __post_init__(self) -> None:
        """Set the experiment up; nothing runs yet."""
        request, sides = self.request, self.sides
        probe = request.oracle is None
        # Ports of the host are there once, and GPUs are proved by one probe at a time.
        alone = probe or bool(sides.plan(()).ports)
        self._settings = replace(
            request.settings,
            jobs=1 if alone else request.settings.jobs,
            deep=probe and request.level != "quick",
        )
        if alone and request.settings.jobs > 1:
            why = "probes want the GPUs for themselves" if probe else "ports can be published once"
            self.voice.say(f"one run at a time: {why}")
        trials = Trials(
            engine=self.engine,
            oracle=request.oracle,
            levels=("quick", request.level),
            timeout_seconds=request.timeout_seconds,
            voice=self.voice,
            run_id=secrets.token_hex(4),
            profile_file=sides.prepared.loaded.path,
            check_files=sides.prepared.check_files,
            ready=sides.make_cache,
        )
        self._hash = sides.plan(sides.permissive).hash
        key = trials.fingerprint(Trial(plan=sides.plan(sides.permissive)))
        self._asked = PrivilegeTrials(
            sides=sides,
            trials=trials,
            memory=TrialMemory.of(key, where=self._where(), resume=request.resume),
            spending=Spending(request.budget),
            say=self.voice.say,
        )
        if request.seccomp is not None:
            self._tailoring = self._make_tailoring(request.seccomp, trials)

    def _make_tailoring(self, file: Path, trials: Trials) -> Tailoring:
        reader = BaseReader(
            trials=trials,
            engine=self.engine,
            host=self.sides.prepared.host,
            file=self.request.seccomp_base,
            root=self.request.ask.host_root,
        )
        return Tailoring(
            sides=self.sides,
            reader=reader,
            file=file,
            asked=self._asked,
            settings=self._settings,
            voice=self.voice,
            check=lambda: check_unchanged(self.sides.prepared, self.engine),
        )

    def _where(self) -> list[Any]:
        """Return what answers depend on beside the containers themselves."""
        host = HostSummary.of(self.sides.prepared.host, self.sides.plan(()))
        engine = EngineSummary.of(self.engine.facts())
        probe = hashlib.sha256(read_probe_source()).hexdigest() if not self.request.oracle else ""
        return [host.model_dump(mode="json"), engine.model_dump(mode="json"), probe]

    def run(self) -> Found:
        """Estimate, look for blindness, take out what cannot start, search, and write down what was found."""
        self._announce()
        try:
            if self._tailoring is not None:
                self._tailoring.prepare()
            check_sight(self.sides, self._asked, self.voice)
            leave_out_what_cannot_start(self.sides, self._asked.trials, self.voice)
            self._record()
            retries = self._settings.retries
            self._offer = make_offer(self.sides, self._asked, retries, self.voice, self._space)
            search = Search(self._space(), self._ask, self._settings, self._offer)
            finding = search.run()
            tailored = self._tailored(finding)
        except (Interrupted, Unavailable) as error:
            again = "go on where it stopped: the same line with --resume"
            error.hint = f"{error.hint}; {again}" if error.hint else again
            raise
        if finding.status == "never":
            raise never_passes(self.request, self.sides, self._asked)
        if finding.status == "stopped" and not finding.control_passes:
            msg = "the budget was spent before the permissive side had passed once"
            runs = expected_runs(len(search.space.asked), self._settings)
            raise UsageError(msg, hint=f"--budget {runs}")
        if finding.status == "unstable":
            self.voice.warn(
                "runs of the same container contradict each other; the result is the permissive side"
            )
        return self._found(search.space, finding, tailored)

    def _record(self) -> None:
        """Look at what the job asks the kernel for, where that is wanted."""
        if self.request.recorder is not None:
            self._recording = record_evidence(self.request.recorder, self._asked, self.voice)
        if self._tailoring is not None:
            self._tailoring.hints = self._recording.calls_seen

    def _space(self) -> Space:
        """Return what is searched, with guesses where something was recorded."""
        space = self.sides.space
        root = ROOT in {*self.sides.base, *self.sides.permissive}
        return replace(space, guesses=guesses_of(space.elements, self._recording, root=root))

    def _tailored(self, finding: Finding) -> Tailored | None:
        """Make the filter for the set that was found; a set that nothing is known of gets none."""
        if self._tailoring is None or not finding.control_passes:
            return None
        why_not = {
            "stopped": "the budget was spent before it was the filter's turn",
            "unstable": "runs of the same container contradict each other",
        }.get(finding.status, "")
        return self._tailoring.run(finding.minimal, why_not)

    def _announce(self) -> None:
        """Say what varies, and how many runs that may take, before the first."""
        seconds = PROBE_SECONDS if self.request.oracle is None else COMMAND_SECONDS
        recorded = self.request.recorder is not None
        varying, rootfs = len(self.sides.permissive), ROOTFS in self.sides.permissive
        self.voice.say(
            forecast(varying, self._settings, seconds=seconds, recorded=recorded, rootfs=rootfs)
        )
        for item, why in self.sides.untested.items():
            self.voice.warn(f"{item} is untested: {why}")
        remembered = self._asked.memory.remembered
        if remembered:
            self.voice.say(f"{remembered} results of an earlier search are remembered")

    def _ask(self, questions: Sequence[Question]) -> list[bool]:
        check_unchanged(self.sides.prepared, self.engine)
        if not self._timed and questions[0].purpose == "search":
            self._say_how_long()
        return self._asked(questions)

    def _say_how_long(self) -> None:
        """Say how long the search may take, now that runs have shown how long one takes."""
        self._timed = True
        records, varying = self._asked.records, len(self.sides.permissive)
        seconds = max(record.result.seconds for record in records)
        self.voice.say(time_left(varying, self._settings, done=len(records), seconds=seconds))

    def _found(self, space: Space, finding: Finding, tailored: Tailored | None) -> Found:
        sides, request = self.sides, self.request
        permissive, minimal = sides.plan(sides.permissive), sides.plan(finding.minimal)
        profile = sides.profile(finding.minimal)
        if tailored is not None:
            minimal, profile = tailored.plan or minimal, tailored.profile or profile
        host, facts = sides.prepared.host, self.engine.facts()
        tmpfs = self._offer.tried if self._offer else NOT_LOOKED_FOR
        evidence = Evidence(
            space=space,
            finding=finding,
            base=sides.base,
            results=self._asked.results,
            untested=sides.untested,
            recording=self._recording,
            tmpfs=tmpfs,
            ambient=facts.podman,
        )
        certificate = Certificate(
            profile=permissive.profile,
            recipe=request.recipe or "",
            minimal_profile=request.minimal.profile if request.minimal else "",
            image_ref=permissive.image.ref,
            image_digest=permissive.image.digest,
            image_id=permissive.image.image_id,
            command=permissive.command,
            oracle=request.oracle.to_json() if request.oracle else {"probe": request.level},
            profile_hash=self._hash,
            engine=EngineSummary.of(facts),
            host=HostSummary.of(host, permissive),
            base=sides.base,
            permissive=sides.permissive,
            minimal=needed_items(sides.base, finding.minimal),
            one_minimal=finding.status == "found" and set(finding.minimal) == set(finding.proven),
            stopped=finding.status == "stopped",
            verification=Verification.of(finding),
            verdicts=verdicts(evidence),
            seccomp=tailored.record if tailored else None,
            tmpfs=tmpfs,
            evidence=self._recording,
            runs=tuple(self._asked.records),
            exposure={
                "permissive": score_plan(permissive, host, facts).to_json(),
                "minimal": score_plan(minimal, host, facts).to_json(),
            },
            started_at=self._started_at,
            ended_at=now(),
        )
        text = tailored.text if tailored else ""
        return Found(certificate=certificate, plan=minimal, profile=profile, seccomp_text=text)
