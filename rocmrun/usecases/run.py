"""One launch on its way: what was asked, what was planned, and what is known of it by now."""

import contextlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from rocmrun.core import labels
from rocmrun.core.plan import Plan, Role
from rocmrun.core.run_record import RecordedError, RunRecord
from rocmrun.core.voice import Voice
from rocmrun.core.workloads import Workload, successor_name
from rocmrun.errors import ReportUnwritable, RocmrunError
from rocmrun.system.caller import process_label, read_caller
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.launch_request import LaunchRequest
from rocmrun.usecases.prepare import Prepared
from rocmrun.usecases.run_report import now, write_junit, write_report


@dataclass(slots=True)
class Run:
    """One launch on its way."""

    engine: Engine
    request: LaunchRequest
    prepared: Prepared
    voice: Voice
    record: RunRecord
    replaced: Workload | None = None
    leftovers: tuple[Workload, ...] = ()
    run_id: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def plan(self) -> Plan:
        """What is launched."""
        return self.prepared.plan

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Write the report when the block ends, however it ends."""
        try:
            yield
        except RocmrunError as error:
            self.record = self.record.ended(ended_at=now(), error=RecordedError.of(error))
            raise
        finally:
            self._write_report()

    def _write_report(self) -> None:
        """Write the report; once the workload has run, its exit code matters more than a lost record."""
        try:
            write_report(self.request.report, self.record)
            write_junit(self.request.junit, self.record)
        except ReportUnwritable as error:
            if self.record.exit_code is None:
                raise
            self.voice.warn(error.message)

    def labels(self, role: Role) -> dict[str, str]:
        """Return what lets others find, and `clean` judge, this run's containers."""
        workload = role == "workload"
        # Every label of ours is set, also when it says nothing: an image may bake one.
        return {
            labels.RUN: self.run_id,
            labels.ROLE: role,
            labels.PLAN: self.plan.hash,
            labels.PROFILE_FILE: self.prepared.loaded.path,
            labels.CONTROLLER: process_label(),
            labels.UID: str(read_caller().uid),
            labels.DETACHED: "1" if self.request.detach and workload else "",
            labels.KEEP: "1" if self.request.keep and workload else "",
            labels.SUCCESSOR_OF: self.final_name if self.replaced and workload else "",
            labels.MINORS: ",".join(str(minor) for minor in self.plan.render_minors),
        }

    @property
    def final_name(self) -> str:
        """The workload's name in the end: the old one's, where it replaces one."""
        if self.replaced is not None:
            return self.request.name or self.replaced.final_name
        return self.container_name("workload")

    def container_name(self, role: Role) -> str:
        """Return a name that people recognise."""
        if role == "workload" and self.replaced is not None:
            # The name is the old one's until that has gone.
            return successor_name(self.final_name, self.run_id)
        if role == "workload" and self.request.name:
            return self.request.name
        suffix = "-probe" if role == "probe" else ""
        return f"rocmrun-{self.plan.profile}-{self.run_id}{suffix}"
