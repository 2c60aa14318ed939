"""An image whose layer arrives byte by byte: time to look at a pull while it goes on."""

import contextlib
import gzip
import io
import json
import secrets
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from rocmrun.core.manifest import OCI_MANIFEST
from tests.scripted_registry import Reply, Request, ScriptedRegistry, digest

CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True, kw_only=True)
class StallingImage:
    """Attributes: its reference and digest, and an event that is set when its layer is asked for."""

    reference: str
    digest: str
    asked: threading.Event = field(default_factory=threading.Event)

    @property
    def lock(self) -> str:
        """A lock that pins it."""
        return (
            f'version = 1\n\n[[image]]\nref = "{self.reference}"\ndigest = "{self.digest}"\n'
            'platform = "linux/amd64"\n'
        )


@contextlib.contextmanager
def stalling_image() -> Iterator[StallingImage]:
    """Serve one on loopback."""
    layer, config, manifest = _image()
    registry = ScriptedRegistry()
    image = StallingImage(reference=f"{registry.host}/stalling:1", digest=digest(manifest))
    headers = {"Docker-Distribution-Api-Version": "registry/2.0"}

    def script(request: Request) -> Reply:
        if "/manifests/" in request.path:
            described = {"Content-Type": OCI_MANIFEST, "Docker-Content-Digest": digest(manifest)}
            return Reply(body=manifest, headers=headers | described)
        if request.path.endswith(digest(config)):
            return Reply(body=config, headers=headers)
        if request.path.endswith(digest(layer)):
            image.asked.set()
            return Reply(body=layer, headers=headers, seconds_a_byte=1)
        return Reply(body=b"{}", headers=headers)

    registry.script = script
    try:
        yield image
    finally:
        registry.close()


def _image() -> tuple[bytes, bytes, bytes]:
    """Return layer, config and manifest of an image that no engine has."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        content = secrets.token_bytes(100_000)
        member = tarfile.TarInfo("random")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    layer = gzip.compress(stream.getvalue())
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": ["true"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(stream.getvalue())]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": {"mediaType": CONFIG_TYPE, "digest": digest(config), "size": len(config)},
            "layers": [{"mediaType": LAYER_TYPE, "digest": digest(layer), "size": len(layer)}],
        }
    ).encode()
    return layer, config, manifest
