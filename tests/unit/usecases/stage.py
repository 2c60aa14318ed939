"""A launch with everything around it: a profile, a lock, a host, a fake engine, and somebody who listens."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocmrun.core.lock import Lock, PinnedImage
from rocmrun.core.report.model import Doing, ProbeCheck, ProbeEvent
from rocmrun.core.run import PullEvent
from rocmrun.core.voice import Voice
from rocmrun.system.profile_search import default_search
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.launch import launch, probe
from rocmrun.usecases.launch_request import LaunchRequest
from tests.builders import DIGEST, IMAGE, IMAGE_ID
from tests.fakes import FakeEngine
from tests.hosts import FakeGpu, build_host

REF = "example.com/rocm/torch:1"
PULLED = f"example.com/rocm/torch@{DIGEST}"
PIN = PinnedImage(ref=REF, digest=DIGEST)
CPU_JOB = (
    'accelerator = "cpu"\n[image]\nref = "example.com/rocm/torch:1"\n[gpus]\nselect = ["none"]\n'
)
GPU_JOB = 'accelerator = "rocm"\n[image]\nref = "example.com/rocm/torch:1"\n'


@dataclass(kw_only=True)
class Heard:
    """What was said, by whom it is for."""

    said: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    pulls: list[PullEvent] = field(default_factory=list)
    checks: list[ProbeCheck] = field(default_factory=list)
    doings: list[Doing] = field(default_factory=list)

    @property
    def voice(self) -> Voice:
        """The voice that is listened to."""
        return Voice(
            say=self.said.append,
            detail=self.details.append,
            warn=self.warnings.append,
            hint=self.hints.append,
            result=self.results.append,
            on_pull=lambda: nullcontext(self.pulls.append),
            on_probe=lambda: nullcontext(self._probe_event),
        )

    def _probe_event(self, event: ProbeEvent) -> None:
        if isinstance(event, ProbeCheck):
            self.checks.append(event)
        else:
            self.doings.append(event)

    @property
    def words(self) -> str:
        """All of it."""
        return "\n".join((*self.said, *self.details, *self.warnings, *self.hints, *self.results))


@dataclass(kw_only=True)
class Stage:
    """A folder with a profile "job" and its lock, and a host tree."""

    path: Path
    heard: Heard = field(default_factory=Heard)
    connected: int = 0

    def __post_init__(self) -> None:
        (self.path / "profiles").mkdir()
        self.profile(CPU_JOB)
        self.lock(PIN)
        self.host()

    @property
    def report_path(self) -> Path:
        """Where reports go."""
        return self.path / "report.json"

    @property
    def report(self) -> dict[str, Any]:
        """The report that was written."""
        found: dict[str, Any] = json.loads(self.report_path.read_text())
        return found

    def profile(self, toml: str) -> None:
        """Write profile "job"."""
        (self.path / "profiles/job.toml").write_text(toml)

    def lock(self, *pins: PinnedImage) -> None:
        """Write the lock."""
        (self.path / "rocmrun.lock").write_text(Lock.of(pins).text())

    def host(self, *gpus: FakeGpu, **facts: Any) -> None:
        """Build a host tree."""
        build_host(self.path / f"host{len(gpus)}", gpus, **facts)
        self.root = self.path / f"host{len(gpus)}"

    def ask(self, **changes: Any) -> Ask:
        """Return the request to plan the profile here."""
        search = default_search(
            environ={}, working_directory=self.path, system_directory=self.path / "none"
        )
        values: dict[str, Any] = {
            "profile": "job",
            "search": search,
            "lockfile": self.path / "rocmrun.lock",
            "host_root": self.root,
        }
        return Ask(**(values | changes))

    def request(self, *, ask: Ask | None = None, **changes: Any) -> LaunchRequest:
        """Return a request to launch; it wants a report."""
        values: dict[str, Any] = {
            "report": self.report_path,
            "lock_directory": self.path / "locks",
        }
        return LaunchRequest(ask=ask or self.ask(), **(values | changes))

    def launch(self, engine: FakeEngine, *, ask: Ask | None = None, **changes: Any) -> int:
        """Launch, and return the exit code."""
        asked = self.request(ask=ask, **changes)
        return launch(asked, connect=self.connect(engine), voice=self.heard.voice)

    def probe(self, engine: FakeEngine, **changes: Any) -> Any:
        """Probe, and return the record."""
        return probe(self.request(**changes), connect=self.connect(engine), voice=self.heard.voice)

    def connect(self, engine: FakeEngine) -> Callable[[], FakeEngine]:
        """Return what connects to *engine*, and counts."""

        def connect() -> FakeEngine:
            self.connected += 1
            return engine

        return connect


def an_engine(**options: Any) -> FakeEngine:
    """Return an engine that has the locked image."""
    return FakeEngine(**{"images": {PULLED: IMAGE, IMAGE_ID: IMAGE, REF: IMAGE}, **options})
