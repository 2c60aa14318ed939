"""One attached run of a created container, bounded in time and in what is kept of its output."""

import contextlib
import threading
import time
from dataclasses import dataclass, field

from rocmrun.core.oracle import Outcome
from rocmrun.core.text import MIB
from rocmrun.system import signals
from rocmrun.usecases.engine_protocol import Attachment, Engine

STDOUT = 1
KEPT_BYTES = MIB // 4


@dataclass(slots=True)
class Attempt:
    """A run whose thread reads, so that the main thread can be interrupted and several runs go on at once."""

    engine: Engine
    container_id: str
    attachment: Attachment
    timeout_seconds: float
    _streams: tuple["_Kept", "_Kept"] = field(init=False)
    _thread: threading.Thread = field(init=False)
    _watchdog: threading.Timer = field(init=False)
    _code: int | Exception | None = field(init=False, default=None)
    _timed_out: bool = field(init=False, default=False)
    _began: float = field(init=False, default=0.0)
    _seconds: float = field(init=False, default=0.0)

    def start(self) -> None:
        """Start the container and read what it writes."""
        self._streams = (_Kept(), _Kept())
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._watchdog = threading.Timer(self.timeout_seconds, self._time_out)
        self._watchdog.daemon = True
        self._began = time.monotonic()
        self.engine.start(self.container_id)
        self._watchdog.start()
        self._thread.start()

    def join(self) -> None:
        """Wait for its end."""
        signals.wait_until(self._ended)
        self._watchdog.cancel()

    def close(self) -> None:
        """Drop the connection."""
        self.attachment.close()

    def outcome(self) -> Outcome:
        """Return what it did.

        Raises:
            RocmrunError: the engine did not say how it ended.
        """
        if isinstance(self._code, Exception):
            raise self._code
        killed = self._code not in {0, None}
        out, err = self._streams
        return Outcome(
            exit_code=self._code,
            stdout=out.text,
            stderr=err.text,
            seconds=self._seconds,
            timed_out=self._timed_out,
            oom_killed=killed and self.engine.state(self.container_id).oom_killed,
        )

    def _ended(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _follow(self) -> None:
        try:
            for stream, data in self.attachment.frames():
                self._streams[0 if stream == STDOUT else 1].add(data)
            self._code = self.engine.wait(self.container_id)
        except Exception as error:  # noqa: BLE001  # raised again in the main thread
            self._code = error
        self._seconds = time.monotonic() - self._began

    def _time_out(self) -> None:
        self._timed_out = True
        with contextlib.suppress(Exception):
            self.engine.kill(self.container_id, "SIGKILL")


class _Kept:
    """The first and the last part of a stream."""

    def __init__(self) -> None:
        self._first, self._last = bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        """Keep *data*, as far as there is room."""
        room = KEPT_BYTES - len(self._first)
        self._first += data[: max(0, room)]
        self._last += data[max(0, room) :]
        del self._last[: max(0, len(self._last) - KEPT_BYTES)]

    @property
    def text(self) -> str:
        """What was kept."""
        return (bytes(self._first) + bytes(self._last)).decode(errors="replace")
