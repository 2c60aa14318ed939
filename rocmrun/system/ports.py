"""Whether a port of this machine is free: found out by taking it for a moment, which sends nothing."""

import errno
import socket


def is_taken(address: str, port: int, protocol: str) -> bool:
    """Whether somebody listens at *address*:*port* ("tcp" or "udp") now.

    False where that cannot be told: a port below 1024 that this user may not take, an address of another machine.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    try:
        with socket.socket(family, kind) as trial:
            if kind == socket.SOCK_STREAM:
                # As engines listen: connections that are closing hold nothing.
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            trial.bind((address, port))
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False
