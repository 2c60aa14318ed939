"""Profiles that ask for nothing, one an image: locked once, launched by many tests."""

import contextlib
import fcntl
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.docker.waiting import started
from tests.workspace import Rocmrun, Workspace

PROFILE = (
    'extends = "base"\naccelerator = "cpu"\n[image]\nref = "{image}"\n[gpus]\nselect = ["none"]\n'
)


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """Names of locked profiles in one workspace."""

    workspace: Workspace
    tiny: str
    python: str
    demo: str

    @classmethod
    def locked(cls, workspace: Workspace, *, tiny: str, python: str, demo: str) -> "Jobs":
        """Write and lock a profile for each of the images."""
        names = {
            name: workspace.write(PROFILE.format(image=image), name=name)
            for name, image in (("tiny", tiny), ("python", python), ("demo", demo))
        }
        workspace.rocmrun("lock", *names.values(), check=True)
        return cls(workspace=workspace, **names)

    @property
    def rocmrun(self) -> Rocmrun:
        """The installed command, run in the workspace."""
        return self.workspace.rocmrun

    def launch(self, profile: str, *words: str, **how: Any) -> subprocess.CompletedProcess[str]:
        """Launch without a probe: what is tested is not the GPUs."""
        return self.rocmrun("launch", profile, "--no-probe", *words, **how)

    def started(
        self, profile: str, *words: str, **streams: Any
    ) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """Launch without a probe and do not wait for the end."""
        return started(self.rocmrun, "launch", profile, "--no-probe", *words, **streams)

    @contextlib.contextmanager
    def strays(self) -> Iterator[None]:
        """Have the engine's strays to oneself: `clean` of another test would take them away."""
        with Path("/tmp/rocmrun-tests-strays.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @staticmethod
    def new_name(what: str = "job") -> str:
        """Return a name that no container has."""
        return f"rocmrun-test-{what}-{secrets.token_hex(4)}"
