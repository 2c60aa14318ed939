"""A stand-in for torch.distributed: ranks that add up over loopback, and the ways in which one fails."""

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

connections: list[socket.socket] = []
own_rank = 0


def happens(fault: str) -> bool:
    """Whether the scene has this fault on this rank."""
    scene = json.loads(os.environ.get("STUB_TORCH", "{}"))
    return bool(scene.get("fault") == fault and scene.get("device", own_rank) == own_rank)


def is_available() -> bool:
    """Return whether there is anything to try."""
    return True


def init_process_group(_backend: str, *, rank: int, world_size: int, **_settings: Any) -> None:
    """Connect every rank with rank 0."""
    global own_rank  # noqa: PLW0603 - torch keeps its process group in the module too
    own_rank = rank
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        with socket.create_server(address) as listener:
            connections.extend(listener.accept()[0] for _ in range(world_size - 1))
        return
    while not connections:
        try:
            connections.append(socket.create_connection(address))
        except ConnectionRefusedError:
            time.sleep(0.01)


def all_reduce(values: Any) -> None:
    """Add up the values of all ranks, in rank 0."""
    if happens("rank_dies"):
        os.write(1, b"NCCL WARN the last words of this rank\n")
        os.kill(os.getpid(), signal.SIGKILL)
    if happens("rank_hangs"):
        time.sleep(1000)
    mine = list(values.values)
    if own_rank == 0:
        for connection in connections:
            mine = [a + b for a, b in zip(mine, _receive(connection), strict=True)]
        if happens("wrong_sum"):
            mine[2] += 1
        _send_all(lambda connection: _send(connection, mine))
    else:
        _send(connections[0], mine)
        mine = _receive(connections[0])
    values.values[:] = mine


def destroy_process_group() -> None:
    """Close the connections."""
    _send_all(socket.socket.close)
    connections.clear()


def _send_all(function: Callable[[socket.socket], None]) -> None:
    for connection in connections:
        function(connection)


def _send(connection: socket.socket, values: list[float]) -> None:
    connection.sendall(json.dumps(values).encode() + b"\n")


def _receive(connection: socket.socket) -> list[float]:
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(65536)
        if not part:
            message = "Connection closed by peer"
            raise RuntimeError(message)
        data += part
    values: list[float] = json.loads(data)
    return values
