"""Files of a container that was created: asked for as archives."""

import base64
import contextlib
import io
import json
import re
import tarfile
from typing import Any

import docker
import docker.errors
import requests.exceptions

from rocmrun.core.run import ChangeKind, PathOwner, PathStat, WritableLayer
from rocmrun.system.engine.calls import CALL_TIMEOUT_SECONDS, translated

# The engine API's numbers (github.com/moby/moby, pkg/archive, ChangeType).
_CHANGES: dict[int, ChangeKind] = {0: "changed", 1: "added", 2: "deleted"}
_GO_SYMLINK = 1 << 27  # io/fs, ModeSymlink
# What the daemon says of a path that leads through a loop of links (github.com/moby/sys, symlink) or a file.
_NO_SUCH_PATH = re.compile(r"too many links|lstat .*: not a directory")


class EngineFiles:
    """The part of an engine that reads a container's files."""

    _api: Any

    def path_stat(self, container_id: str, path: str) -> PathStat | None:
        """Look *path* up in a container that need not run; None when it is not there."""
        api = self._api
        url = api._url("/containers/{0}/archive", container_id)
        how: dict[str, Any] = {"params": {"path": path}, "timeout": CALL_TIMEOUT_SECONDS}
        with translated(f"look up {path} in the image", container=True):
            response = api.head(url, **how)  # get_archive would send the file
            if response.status_code == requests.codes.not_found:
                return None
            if not response.ok:
                # The answer to HEAD has no body to say why.
                with api.get(url, stream=True, **how) as reason:
                    if _NO_SUCH_PATH.search(reason.text):
                        return None
                    api._raise_for_status(reason)
        header = response.headers["X-Docker-Container-Path-Stat"]
        stat = json.loads(base64.b64decode(header))
        link = stat["mode"] & _GO_SYMLINK  # Podman names a target where there is no link, too
        return PathStat(mode=stat["mode"], link_target=stat.get("linkTarget", "") if link else "")

    def path_owner(self, container_id: str, path: str) -> PathOwner | None:
        """Return whose *path* is in a container that need not run; None when it is not there.

        Only the archive's first header is read: the rest of a directory is never sent.
        """
        api = self._api
        url = api._url("/containers/{0}/archive", container_id)
        with translated(f"look up {path} in the image", container=True):
            how: dict[str, Any] = {"params": {"path": path}, "timeout": CALL_TIMEOUT_SECONDS}
            # Compressed, the first header would wait for the first block of the compressor.
            how["headers"] = {"Accept-Encoding": "identity"}
            with api.get(url, stream=True, **how) as response:
                if response.status_code == requests.codes.not_found:
                    return None
                if not response.ok:
                    if _NO_SUCH_PATH.search(response.text):
                        return None
                    api._raise_for_status(response)
                try:
                    with tarfile.open(fileobj=response.raw, mode="r|", bufsize=512) as archive:
                        found = archive.next()
                except tarfile.TarError:
                    return None
        if found is None:
            return None
        link = found.linkname if found.issym() else ""
        return PathOwner(mode=found.mode & 0o7777, uid=found.uid, gid=found.gid, link_target=link)

    def read_file(self, container_id: str, path: str, limit: int = 1 << 20) -> bytes | None:
        """Return a small file of a container that need not run; None when it is not there.

        *limit* is in bytes; a larger file is cut.
        """
        with translated(f"read {path} in the image"):
            try:
                chunks, _ = self._api.get_archive(container_id, path)
            except docker.errors.NotFound:
                return None
            data = bytearray()
            for chunk in chunks:
                data += chunk
                if len(data) > limit:
                    break
        with (
            contextlib.suppress(tarfile.TarError),
            tarfile.open(fileobj=io.BytesIO(bytes(data))) as archive,
        ):
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                return file.read(limit) if file else None
        return None

    def written(self, container_id: str) -> WritableLayer:
        """Return what a container has changed of its image so far, ended or not."""
        with translated("list what the container has changed"):
            listed = self._api.diff(container_id) or []
            summaries = self._api.containers(all=True, size=True, filters={"id": container_id})
        return WritableLayer(
            changes={entry["Path"]: _CHANGES.get(entry["Kind"], "changed") for entry in listed},
            # Docker leaves a size of nothing out.
            size_bytes=next((found.get("SizeRw") or 0 for found in summaries), None),
        )
