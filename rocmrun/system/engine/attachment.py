"""The streams of a container, while it runs."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from docker.utils.socket import frames_iter as _frames_iter

frames_iter: Any = _frames_iter


@dataclass(slots=True)
class Attachment:
    """The streams of one container, attached before it starts."""

    raw: Any
    tty: bool

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """Yield (1 for stdout or 2 for stderr, bytes) until the container closes its streams."""
        with contextlib.suppress(ConnectionResetError):
            yield from frames_iter(self.raw, self.tty)

    def send(self, data: bytes) -> None:
        """Write *data* to the container's stdin."""
        self._socket.sendall(data)

    def end_input(self) -> None:
        """Close the container's stdin and keep reading its output."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Drop the connection; a reader in another thread sees the end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self.raw.close()

    @property
    def _socket(self) -> socket.socket:
        # urllib3 hands out the file object around the socket; only the socket can be half-closed.
        found: socket.socket = getattr(self.raw, "_sock", self.raw)
        return found
