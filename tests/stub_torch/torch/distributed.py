"""A stand-in for torch.distributed: ranks that exchange lists over loopback, and the ways in which one fails.

Further keys of the scene:
    during: the collective in which the fault happens, or "each"; all_reduce where it is absent
    says: lines that a rank prints as NCCL would, when it joins
"""

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

SCENE: dict[str, Any] = json.loads(os.environ.get("STUB_TORCH", "{}"))
Values = list[float]

connections: list[socket.socket] = []
own_rank = 0


def happens(fault: str, name: str) -> bool:
    """Whether the scene has this fault on this rank in this collective."""
    here = SCENE.get("device", own_rank) == own_rank
    now = SCENE.get("during", "all_reduce") in (name, "each")
    return SCENE.get("fault") == fault and here and now


def is_available() -> bool:
    """Return whether there is anything to try."""
    return True


def init_process_group(_backend: str, *, rank: int, world_size: int, **_settings: Any) -> None:
    """Connect every rank with rank 0."""
    global own_rank  # noqa: PLW0603 - torch keeps its process group in the module too
    own_rank = rank
    for line in SCENE.get("says", ()):
        os.write(1, f"{line}\n".encode())
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
    """Add up the values of all ranks."""
    values.values[:] = [sum(same) for same in zip(*_exchanged("all_reduce", values), strict=True)]


def all_gather_into_tensor(result: Any, values: Any) -> None:
    """Put the values of all ranks one after the other."""
    result.values[:] = [value for one in _exchanged("all_gather", values) for value in one]


def reduce_scatter_tensor(result: Any, values: Any) -> None:
    """Add up the values of all ranks and keep this rank's share."""
    sums = [sum(same) for same in zip(*_exchanged("reduce_scatter", values), strict=True)]
    result.values[:] = _share(sums, own_rank, len(result))


def broadcast(values: Any, root: int) -> None:
    """Take the values of one rank."""
    values.values[:] = _exchanged("broadcast", values)[root]


def all_to_all_single(result: Any, values: Any) -> None:
    """Take this rank's share of the values of each."""
    every = _exchanged("all_to_all", values)
    size = len(result) // len(every)
    result.values[:] = [value for one in every for value in _share(one, own_rank, size)]


def destroy_process_group() -> None:
    """Close the connections."""
    break_down("destroy_process_group")
    _send_all(socket.socket.close)
    connections.clear()


def break_down(name: str) -> None:
    """Die, hang or raise as the scene wants it."""
    if happens("rank_dies", name):
        os.write(1, b"NCCL WARN the last words of this rank\n")
        os.kill(os.getpid(), signal.SIGKILL)
    if happens("rank_hangs", name):
        time.sleep(1000)
    if happens("rank_raises", name):
        raise RuntimeError(SCENE["message"])


def _exchanged(name: str, values: Any) -> list[Values]:
    """Return the values of all ranks, by way of rank 0."""
    break_down(name)
    mine = [own_rank, *values.values]
    if own_rank > 0:
        _send(connections[0], mine)
        told: list[Values] = _receive(connections[0])
        return told
    every = [one[1:] for one in sorted([mine, *map(_receive, connections)])]
    if happens("wrong_sum", name):
        every[-1][2] += 1
    _send_all(lambda connection: _send(connection, every))
    return every


def _share(values: Values, position: int, size: int) -> Values:
    return values[position * size : (position + 1) * size]


def _send_all(function: Callable[[socket.socket], None]) -> None:
    for connection in connections:
        function(connection)


def _send(connection: socket.socket, values: Any) -> None:
    connection.sendall(json.dumps(values).encode() + b"\n")


def _receive(connection: socket.socket) -> Any:
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(65536)
        if not part:
            message = "Connection closed by peer"
            raise RuntimeError(message)
        data += part
    return json.loads(data)
