"""A registry on loopback that answers as a test says, also in every wrong way."""

import contextlib
import hashlib
import http.server
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rocmrun.core.manifest import OCI_MANIFEST
from rocmrun.core.reference import Reference, parse_reference

CONFIG = b'{"os":"linux","architecture":"amd64","config":{"Env":["ROCM_VERSION=7.1.0"]}}'


def digest(body: bytes) -> str:
    return "sha256:" + hashlib.sha256(body).hexdigest()


def image(media_type: str = OCI_MANIFEST, **changes: Any) -> bytes:
    config = {
        "mediaType": "application/vnd.oci.image.config.v1+json",
        "digest": digest(CONFIG),
        "size": len(CONFIG),
    }
    data = {"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": []}
    return json.dumps({**data, **changes}).encode()


@dataclass
class Request:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    seconds_before: float = 0
    seconds_a_byte: float = 0
    seconds_a_header_byte: float = 0
    announced_length: int | None = None
    chunked: bool = False


Script = Callable[[Request], Reply]


class ScriptedRegistry:
    """A registry that answers as a test says, and remembers what it was asked."""

    def __init__(self) -> None:
        self.script: Script = lambda _request: Reply(status=404)
        self.requests: list[Request] = []
        self.stopped = threading.Event()
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                path, _, query = self.path.partition("?")
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Request(self.command, path, query, dict(self.headers), body)
                registry.requests.append(request)
                registry.reply(self, request)

            do_GET = do_HEAD = do_POST = answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def reply(self, handler: http.server.BaseHTTPRequestHandler, request: Request) -> None:
        reply = self.script(request)
        self.stopped.wait(reply.seconds_before)
        if reply.seconds_a_header_byte:
            self.trickle(
                handler, b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 80, reply.seconds_a_header_byte
            )
            handler.close_connection = True
            return
        length = reply.announced_length if reply.announced_length is not None else len(reply.body)
        handler.send_response(reply.status)
        framing = (
            {"Transfer-Encoding": "chunked"} if reply.chunked else {"Content-Length": str(length)}
        )
        for name, value in {**framing, **reply.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if request.method == "HEAD":
            return
        if reply.seconds_a_byte:
            self.trickle(handler, reply.body, reply.seconds_a_byte)
        else:
            whole = b"%x\r\n%s\r\n0\r\n\r\n" % (length, reply.body)
            with contextlib.suppress(OSError):
                handler.wfile.write(whole if reply.chunked else reply.body)
        if length != len(reply.body):
            handler.close_connection = True

    def trickle(
        self, handler: http.server.BaseHTTPRequestHandler, data: bytes, seconds: float
    ) -> None:
        """Write *data* byte by byte, until the other side or the test has had enough."""
        with contextlib.suppress(OSError):
            for byte in data:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                if self.stopped.wait(seconds):
                    break

    def ref(self, text: str = "a/b:t") -> Reference:
        return parse_reference(f"{self.host}/{text}")

    def asked(self) -> list[str]:
        return [f"{request.method} {request.path}" for request in self.requests]

    def close(self) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def serving(
    body: bytes, content_type: str = OCI_MANIFEST, *, header: str | None = "right"
) -> Script:
    """Serve *body* as the manifest of everything; *header* is the digest header, right, absent or as given."""
    headers = {"Content-Type": content_type}
    if header is not None:
        headers["Docker-Content-Digest"] = digest(body) if header == "right" else header
    return lambda _request: Reply(body=body, headers=headers)
