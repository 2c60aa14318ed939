"""An engine that is not quite what it seems: the real one behind a proxy that changes requests or answers.

One request a connection: both sides are asked to close, so that every request can be looked at.
A request that upgrades (attach) becomes a plain pipe in both directions.
"""

import contextlib
import json
import re
import selectors
import socket
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Change = Callable[[Any], Any]

CREATE = re.compile(r"POST (/v[\d.]+)?/containers/create\b")
INFO = re.compile(r"GET (/v[\d.]+)?/info\b")
ENGINE = "/var/run/docker.sock"


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """What to change: bodies of requests, and bodies of answers, by the first line of the request.

    Attributes:
        hold: Requests that are kept until the event is set; `held` is set when one arrives. One whose sender
            was killed meanwhile goes nowhere.
    """

    address: str
    engine: str = ENGINE
    requests: dict[re.Pattern[str], Change] = field(default_factory=dict)
    answers: dict[re.Pattern[str], Change] = field(default_factory=dict)
    hold: dict[re.Pattern[str], threading.Event] = field(default_factory=dict)
    held: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def engine_proxy(
    *,
    engine: str = ENGINE,
    requests: dict[re.Pattern[str], Change] | None = None,
    answers: dict[re.Pattern[str], Change] | None = None,
    hold: dict[re.Pattern[str], threading.Event] | None = None,
) -> Iterator[Proxy]:
    """Serve a proxy of the engine on a socket of its own."""
    with tempfile.TemporaryDirectory(prefix="rrt-") as folder:  # socket paths are short
        path = f"{folder}/s"
        proxy = Proxy(
            address=f"unix://{path}",
            engine=engine,
            requests=requests or {},
            answers=answers or {},
            hold=hold or {},
        )
        with _Server(path, proxy) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            try:
                yield proxy
            finally:
                for event in proxy.hold.values():
                    event.set()
                server.shutdown()
                thread.join()


class _Server(socketserver.ThreadingUnixStreamServer):
    # Its threads are waited for: the processes that they serve have ended by then.
    daemon_threads = False

    def __init__(self, path: str, proxy: Proxy) -> None:
        self.proxy = proxy
        super().__init__(path, _Connection)


class _Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        proxy: Proxy = self.server.proxy  # type: ignore[attr-defined]
        head, body = _read_message(self.request)
        if not head:
            return
        first = head.split(b"\r\n", 1)[0].decode()
        for pattern, event in proxy.hold.items():
            if pattern.match(first):
                proxy.held.set()
                event.wait()
                if _is_gone(self.request):
                    return
        change = _first_match(proxy.requests, first)
        if change:
            body = _changed(body, change)
        upgrades = b"\r\nupgrade:" in head.lower()
        with socket.socket(socket.AF_UNIX) as engine:
            engine.connect(proxy.engine)
            engine.sendall(_with_length(head, len(body), close=not upgrades) + body)
            answer = _first_match(proxy.answers, first)
            if answer:
                self._change_answer(engine, answer)
            else:
                _pipe(self.request, engine)

    def _change_answer(self, engine: socket.socket, change: Change) -> None:
        data = b""
        while chunk := engine.recv(65536):
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        if b"chunked" in head.lower():
            body = _unchunked(body)
        if head.startswith(b"HTTP/1.1 200"):
            body = _changed(body, change)
        self.request.sendall(_with_length(head + b"\r\n\r\n", len(body), close=True) + body)


def _is_gone(client: socket.socket) -> bool:
    """Whether the sender of a request has closed its end."""
    try:
        return not client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def _first_match(changes: dict[re.Pattern[str], Change], line: str) -> Change | None:
    return next((change for pattern, change in changes.items() if pattern.match(line)), None)


def _changed(body: bytes, change: Change) -> bytes:
    return json.dumps(change(json.loads(body))).encode()


def _read_message(connection: socket.socket) -> tuple[bytes, bytes]:
    """Read one request: head up to the empty line, and as much body as it announces."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return b"", b""
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    while found and len(body) < int(found[1]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n", body


def _with_length(head: bytes, length: int, *, close: bool) -> bytes:
    dropped = (b"content-length:", b"transfer-encoding:") + ((b"connection:",) if close else ())
    lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith(dropped)]
    if length or not head.startswith((b"GET", b"HEAD")):
        lines.append(b"Content-Length: %d" % length)
    if close:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _unchunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        whole, body = whole + rest[:length], rest[length + 2 :]
    return whole


def _pipe(client: socket.socket, engine: socket.socket) -> None:
    """Copy both ways until the engine is done; the end of the client's half is passed on."""
    with selectors.DefaultSelector() as selector:
        selector.register(client, selectors.EVENT_READ, engine)
        selector.register(engine, selectors.EVENT_READ, client)
        while selector.get_map():
            for key, _ in selector.select():
                source, target = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                with contextlib.suppress(OSError):
                    if data := source.recv(65536):
                        target.sendall(data)
                        continue
                selector.unregister(source)
                if source is engine:
                    return
                with contextlib.suppress(OSError):
                    engine.shutdown(socket.SHUT_WR)
