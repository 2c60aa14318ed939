"""Which registry login goes with a request, as the docker command would choose it."""

import re
import threading
import warnings
from typing import Any

import docker
import docker.auth
import docker.errors


class Logins:
    """Logins of this user, each registry looked up once: a helper may ask for a password each time."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._found: dict[str, dict[str, str]] = {}

    def login(self, name: str) -> tuple[dict[str, str], str]:
        """Return the login for the registry of *name*, {} for none, and a warning: once where a helper does not work."""
        registry, _ = docker.auth.resolve_repository_name(name.partition("@")[0])
        with self._lock:
            if registry in self._found:
                return self._found[registry], ""
            warning = ""
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the SDK's own words for a missing helper
                    found = docker.auth.resolve_authconfig(self._api._auth_configs, registry)
            except docker.errors.DockerException as error:
                # The SDK gives up even where the image is public.
                found, warning = (
                    None,
                    f"{_helper_in(str(error))}: {registry} is asked without a login",
                )
            self._found[registry] = found or {}
            return self._found[registry], warning


def _helper_in(text: str) -> str:
    helper = re.search(r"docker-credential-[A-Za-z0-9._-]+", text)
    missing = "not installed" in text
    return f"{helper[0] if helper else 'the credential helper'} {'is not installed' if missing else 'failed'}"
