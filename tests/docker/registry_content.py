"""What tests put into a registry by hand: the bytes of every manifest are known."""

import gzip
import hashlib
import io
import json
import os
import tarfile
from dataclasses import dataclass
from typing import Any, NoReturn

import pytest
import requests

from rocmrun.core.manifest import DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST

CONFIG_TYPES = {
    DOCKER_MANIFEST: "application/vnd.docker.container.image.v1+json",
    OCI_MANIFEST: "application/vnd.oci.image.config.v1+json",
}
LAYER_TYPES = {
    DOCKER_MANIFEST: "application/vnd.docker.image.rootfs.diff.tar.gzip",
    OCI_MANIFEST: "application/vnd.oci.image.layer.v1.tar+gzip",
}


def digest(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """A manifest in a registry: where, its digest, and its image's id (None for an index)."""

    ref: str
    digest: str
    image_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository that is filled by hand: the bytes of every manifest are known."""

    address: str
    name: str
    login: tuple[str, str] | None = None

    def manifest(
        self,
        tag: str,
        media_type: str = DOCKER_MANIFEST,
        *,
        platform: str = "linux/amd64",
        env: tuple[str, ...] = (),
    ) -> Pushed:
        """Push an image with one file in it."""
        layer = _layer(tag)
        os, architecture = platform.split("/")[:2]
        config = json.dumps(
            {
                "os": os,
                "architecture": architecture,
                "config": {"Env": list(env), "User": "1000"},
                "rootfs": {"type": "layers", "diff_ids": [digest(gzip.decompress(layer))]},
                "history": [{"created_by": "ARG PYTHON_VERSION=3.12.3"}],
            }
        ).encode()
        body = {
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": self._blob(config, CONFIG_TYPES[media_type]),
            "layers": [self._blob(layer, LAYER_TYPES[media_type])],
        }
        return self._put(tag, media_type, body, digest(config))

    def index(self, tag: str, media_type: str = OCI_INDEX, *, attestation: bool = False) -> Pushed:
        """Push an index of an amd64 and an arm64 image, and with *attestation* what BuildKit adds."""
        kind = OCI_MANIFEST if media_type == OCI_INDEX else DOCKER_MANIFEST
        children = []
        for architecture in ("amd64", "arm64"):
            child = self.manifest(f"{tag}-{architecture}", kind, platform=f"linux/{architecture}")
            platform = {"os": "linux", "architecture": architecture}
            children.append(self._descriptor(child.digest, kind) | {"platform": platform})
        if attestation:
            child = self.manifest(f"{tag}-attestation", kind, platform="unknown/unknown")
            children.append(
                self._descriptor(child.digest, kind)
                | {"platform": {"os": "unknown", "architecture": "unknown"}}
                | {"annotations": {"vnd.docker.reference.type": "attestation-manifest"}}
            )
        body = {"schemaVersion": 2, "mediaType": media_type, "manifests": children}
        return self._put(tag, media_type, body, None)

    def copy(self, ref: str, found: str) -> Pushed:
        """Push what *ref*, in another repository of this registry, has as *found*."""
        source = ref.partition("/")[2].rpartition(":")[0]
        url = f"http://{self.address}/v2/{source}/manifests/{found}"
        answer = requests.get(url, headers={"Accept": DOCKER_MANIFEST}, timeout=30)
        answer.raise_for_status()
        manifest = answer.json()
        for blob in (manifest["config"], *manifest["layers"]):
            mount = {"mount": blob["digest"], "from": source}
            assert self._ask("POST", "blobs/uploads/", params=mount).status_code == 201
        headers = {"Content-Type": DOCKER_MANIFEST}
        self._ask("PUT", "manifests/1", data=answer.content, headers=headers)
        config = manifest["config"]["digest"]
        return Pushed(ref=f"{self.address}/{self.name}:1", digest=found, image_id=config)

    def delete(self, found: str) -> None:
        """Delete a manifest with its tags."""
        self._ask("DELETE", f"manifests/{found}")

    def _put(self, tag: str, media_type: str, body: dict[str, Any], image_id: str | None) -> Pushed:
        data = json.dumps(body).encode()
        self._ask("PUT", f"manifests/{tag}", data=data, headers={"Content-Type": media_type})
        ref = f"{self.address}/{self.name}:{tag}"
        return Pushed(ref=ref, digest=digest(data), image_id=image_id)

    def _descriptor(self, found: str, media_type: str) -> dict[str, Any]:
        size = int(
            self._ask("HEAD", f"manifests/{found}", headers={"Accept": media_type}).headers[
                "Content-Length"
            ]
        )
        return {"mediaType": media_type, "digest": found, "size": size}

    def _blob(self, body: bytes, media_type: str) -> dict[str, Any]:
        upload = self._ask("POST", "blobs/uploads/").headers["Location"]
        requests.put(
            upload,
            params={"digest": digest(body)},
            data=body,
            headers={"Content-Type": "application/octet-stream"},
            auth=self.login,
            timeout=30,
        ).raise_for_status()
        return {"mediaType": media_type, "digest": digest(body), "size": len(body)}

    def _ask(self, method: str, path: str, **more: Any) -> requests.Response:
        url = f"http://{self.address}/v2/{self.name}/{path}"
        response = requests.request(method, url, auth=self.login, timeout=30, **more)
        response.raise_for_status()
        return response


def _layer(text: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("which")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(buffer.getvalue(), mtime=0)


def unavailable(reason: str) -> NoReturn:
    """Skip what this machine cannot run, or fail where it must be able to."""
    if os.environ.get("ROCMRUN_REQUIRE_DOCKER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)
