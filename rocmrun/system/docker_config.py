"""Logins from Docker's own configuration (config.json and credential helpers) and from Podman's. Writes nothing."""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rocmrun.core.credentials import (
    Credentials,
    helper_for,
    login_of_helper,
    server_key,
    stored_login,
)
from rocmrun.core.text import printable

Runner = Callable[[list[str], str], subprocess.CompletedProcess[str]]
HELPER_TIMEOUT_SECONDS = 20


def docker_config_path(environment: Mapping[str, str], home: Path) -> Path:
    """Return where Docker's client keeps its configuration."""
    directory = environment.get("DOCKER_CONFIG")
    return (Path(directory) if directory else home / ".docker") / "config.json"


def podman_auth_path(environment: Mapping[str, str]) -> Path | None:
    """Return where `podman login` keeps its logins, in the same form; None where it has no place for them."""
    if named := environment.get("REGISTRY_AUTH_FILE"):
        return Path(named)
    directory = environment.get("XDG_RUNTIME_DIR")
    return Path(directory) / "containers" / "auth.json" if directory else None


class DockerLogins:
    """Looks up logins, each registry once. What is broken is warned about once and then means "anonymous"."""

    def __init__(
        self,
        path: Path,
        *,
        warn: Callable[[str], None],
        other: Path | None = None,
        run: Runner | None = None,
    ) -> None:
        """*other* is a file of the same form that is asked where the one at *path* has nothing."""
        self._paths = (path,) if other is None else (path, other)
        self._warn = warn
        self._run = run or _run
        self._lock = threading.Lock()
        self._configs: tuple[Mapping[str, Any], ...] | None = None
        self._found: dict[str, Credentials | None] = {}

    def __call__(self, domain: str) -> Credentials | None:
        """Return the login for registry *domain*, or None: ask anonymously."""
        with self._lock:
            if domain not in self._found:
                self._found[domain] = self._look_up(domain)
            return self._found[domain]

    def _look_up(self, domain: str) -> Credentials | None:
        if self._configs is None:
            self._configs = tuple(map(self._read, self._paths))
        for config in self._configs:
            helper = helper_for(config, domain)
            login = self._ask(f"docker-credential-{helper}", domain) if helper else None
            if login := login or stored_login(config, domain):
                return login
        return None

    def _read(self, path: Path) -> Mapping[str, Any]:
        try:
            config = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as error:
            self._warn(f"{path} cannot be read ({error}): registries are asked without a login")
            return {}
        return config if isinstance(config, dict) else {}

    def _ask(self, helper: str, domain: str) -> Credentials | None:
        try:
            done = self._run([helper, "get"], server_key(domain))
        except FileNotFoundError:
            self._warn(f"{helper} is not installed: {domain} is asked without a login")
            return None
        except (OSError, subprocess.SubprocessError) as error:
            self._warn(
                f"{helper} failed ({type(error).__name__}): {domain} is asked without a login"
            )
            return None
        if done.returncode != 0:
            said = printable(" ".join(f"{done.stdout} {done.stderr}".split()), limit=200)
            # The helpers' protocol for "I have none" is an error with this text.
            if "credentials not found" not in said.lower():
                self._warn(f"{helper} failed ({said}): {domain} is asked without a login")
            return None
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self._warn(
                f"{helper} answered with something that is not JSON: {domain} is asked without a login"
            )
            return None
        return login_of_helper(answer)


def _run(command: list[str], standard_input: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        input=standard_input,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=HELPER_TIMEOUT_SECONDS,
        env={**os.environ, "LC_ALL": "C"},
    )
