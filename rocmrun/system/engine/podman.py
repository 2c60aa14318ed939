"""Where Podman's answer to Docker's API is not Docker's: completed from its own API, and files in place of texts.

Told by what it answers: Podman names itself in the headers of each answer.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rocmrun.core.podman_record import in_dockers_words

_VERSION = "Libpod-API-Version"
_BY_VALUE = "seccomp={"


class PodmanDialect:
    """What has to be said, and read, otherwise of one Podman."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._profiles: dict[str, str] = {}

    def completed(
        self, record: dict[str, Any], container_id: str, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return *record*, which came with *headers*, in Docker's words; another engine's as it is."""
        version = headers.get(_VERSION)
        if version is None:
            return record
        api = self._api
        # Not below /v1.41: the API of its own has versions of its own.
        url = f"{api.base_url}/v{version}/libpod/containers/{container_id}/json"
        own = api._result(api.get(url, timeout=api.timeout), json=True)
        found = in_dockers_words(record, own)
        options = found["HostConfig"].get("SecurityOpt") or []
        found["HostConfig"]["SecurityOpt"] = [self._profiles.get(text, text) for text in options]
        return found

    @contextlib.contextmanager
    def profile_as_file(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield *request* with the path of a seccomp profile in place of its text.

        Podman takes no other, and reads the file while it creates the container: it is gone afterwards.
        """
        config = request["HostConfig"]
        options = list(config.get("SecurityOpt") or ())
        given = next((text for text in options if text.startswith(_BY_VALUE)), None)
        if given is None:
            yield dict(request)
            return
        descriptor, path = tempfile.mkstemp(prefix="rocmrun-seccomp-", suffix=".json")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(given.removeprefix("seccomp="))
            self._profiles[f"seccomp={path}"] = given
            changed = [f"seccomp={path}" if text is given else text for text in options]
            yield {**request, "HostConfig": {**config, "SecurityOpt": changed}}
        finally:
            Path(path).unlink()
