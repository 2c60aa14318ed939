"""A user's corner for tests on a real engine: an own home and profiles, and the installed command.

Nothing of the caller's settings reaches rocmrun, and what a test leaves in the engine is found by
what rocmrun itself wrote on its containers.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import docker

from tests import warm_start

PROGRAM = Path(sys.executable).with_name("rocmrun")
ROLE_LABEL = "io.rocmrun.role"
# What changes rocmrun's behaviour or looks; a test that wants one of them says so. And what would
# have each start compile the whole package again.
UNSET = (
    "CI", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "SUDO_UID", "SUDO_GID", "SUDO_USER",
    "PYTHONDONTWRITEBYTECODE",
)  # fmt: skip

Environment = Mapping[str, str | None]

# By image: the lock that pins it alone.
_locks: dict[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Rocmrun:
    """The installed command, run in *path* with a home of its own; remembers what it started."""

    path: Path
    started: list[str] = field(default_factory=list)

    def __call__(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002  # as subprocess.run names it
        env: Environment | None = None,
        timeout: float = 280,
        check: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end; with *check*, a code other than 0 fails the test with what was said."""
        data = None if input is None else input.encode()
        own_start = len(data or b"") > warm_start.MOST_INPUT or any(
            name.startswith(warm_start.READ_AT_START) for name in env or ()
        )
        run = self._started if own_start else self._forked
        done = run(args, data, env, timeout)
        assert not check or done.returncode == 0, f"{done.args}: {done.returncode}\n{done.stderr}"
        return done

    def _forked(
        self, args: tuple[str, ...], data: bytes | None, env: Environment | None, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        words = [str(PROGRAM), *args]
        code, out, err = warm_start.run(
            words,
            cwd=self.path,
            env=self.environment(env),
            stdin=data,
            timeout=timeout,
            on_start=self.started.append,
        )
        return subprocess.CompletedProcess(words, code, out.decode(), err.decode())

    def _started(
        self, args: tuple[str, ...], data: bytes | None, env: Environment | None, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        stdin = subprocess.DEVNULL if data is None else subprocess.PIPE
        with self.start(*args, env=env, stdin=stdin) as process:
            try:
                out, err = process.communicate(data, timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(
            process.args, process.returncode, out.decode(), err.decode()
        )

    def start(
        self,
        *args: str,
        env: Environment | None = None,
        stdin: int | IO[Any] = subprocess.DEVNULL,
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int | IO[Any] = subprocess.PIPE,
    ) -> subprocess.Popen[bytes]:
        """Start the program itself and return at once, for tests that send signals or hold a terminal."""
        process = subprocess.Popen(
            [PROGRAM, *args],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=self.path,
            env=self.environment(env),
        )
        self.started.append(warm_start.process_of(process.pid))
        return process

    def environment(self, changes: Environment | None = None) -> dict[str, str]:
        """Return the environment that rocmrun gets; a value of None in *changes* removes a name."""
        home = self.path / "home"
        home.mkdir(exist_ok=True)
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in UNSET and not name.startswith(("ROCMRUN_", "XDG_"))
        }
        docker_config = kept.get("DOCKER_CONFIG", str(Path.home() / ".docker"))
        # Root's caches and records are the machine's; these tests leave neither there.
        own = {
            "HOME": home,
            "XDG_CACHE_HOME": home / ".cache",
            "XDG_STATE_HOME": home / ".local/state",
        }
        asked = {
            **kept,
            **{name: str(path) for name, path in own.items()},
            "DOCKER_CONFIG": docker_config,
            **(changes or {}),
        }
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A folder with profiles/ and rocmrun.lock, where rocmrun runs.

    Profiles get names that no other test has, so that tests can share an engine.
    """

    path: Path
    rocmrun: Rocmrun
    token: str
    names: list[str] = field(default_factory=list)

    @property
    def profiles(self) -> Path:
        """Where the profiles are."""
        return self.path / "profiles"

    @property
    def lockfile(self) -> Path:
        """The lock that rocmrun finds beside profiles/."""
        return self.path / "rocmrun.lock"

    def write(self, toml: str, *, name: str = "job") -> str:
        """Write a profile and return the name that it has here."""
        unique = f"{name}-{self.token}"
        self.profiles.mkdir(exist_ok=True)
        (self.profiles / f"{unique}.toml").write_text(toml, encoding="utf-8")
        self.names.append(unique)
        return unique

    def profile(
        self,
        image: str,
        tables: str = "",
        *,
        name: str = "job",
        accelerator: str = "cpu",
        select: str = "none",
    ) -> str:
        """Write and lock a profile on "base" for *image*, with more *tables*; return its name.

        An image stays the same for as long as the tests run: what locked it first is written again.
        """
        unique = self.write(
            f'extends = "base"\naccelerator = "{accelerator}"\n'
            f'[image]\nref = "{image}"\n[gpus]\nselect = ["{select}"]\n{tables}\n',
            name=name,
        )
        if not self.lockfile.exists() and image in _locks:
            self.lockfile.write_text(_locks[image], encoding="utf-8")
        written = self.lockfile.read_text(encoding="utf-8") if self.lockfile.exists() else ""
        if f'ref = "{image}"\n' not in written:
            self.rocmrun("lock", unique, check=True)
            if not written:
                _locks[image] = self.lockfile.read_text(encoding="utf-8")
        return unique


def left_behind(engine: docker.DockerClient, workspace: Workspace) -> list[str]:
    """Return the containers that the workspace's processes or profiles left, and remove them."""
    started = set(workspace.rocmrun.started)
    found = []
    for container in engine.api.containers(all=True, filters={"label": ROLE_LABEL}):
        labels = container["Labels"]
        controller = labels.get("io.rocmrun.controller", "").rpartition(":")[0]
        if controller in started or labels.get("io.rocmrun.profile") in workspace.names:
            found.append(f"{container['Names'][0]} ({container['State']}, {labels[ROLE_LABEL]})")
            engine.api.remove_container(container["Id"], force=True, v=True)
    return found
