"""What a service manager is told: sd_notify(3), datagrams to the socket that it names."""

import contextlib
import os
import socket
from collections.abc import Callable, MutableMapping

VARIABLE = "NOTIFY_SOCKET"


def notifier(environment: MutableMapping[str, str] = os.environ) -> Callable[[str], None]:
    """Return what sends "READY=1" and the like; it does nothing where no service manager started us.

    The variable is removed: no program that we start, and no container, may speak in our name.
    """
    address = environment.pop(VARIABLE, "")
    if not address.startswith(("/", "@")):
        return _nobody
    # A leading @ stands for the NUL of Linux's abstract sockets.
    target = f"\0{address[1:]}" if address.startswith("@") else address

    def notify(text: str) -> None:
        # A service manager that does not listen is no reason to fail.
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection,
        ):
            connection.connect(target)
            connection.sendall(text.encode())

    return notify


def _nobody(_text: str) -> None:
    """Tell nobody."""
