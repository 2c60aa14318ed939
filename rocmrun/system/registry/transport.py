"""One HTTP request to a registry: bounded in time and in size, its failures in our words."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import requests
import urllib3

from rocmrun import __version__
from rocmrun.core.manifest import ACCEPT
from rocmrun.core.reference import Reference
from rocmrun.core.registry_errors import classify
from rocmrun.core.text import MIB
from rocmrun.errors import RegistryUnavailable

# What the distribution specification lets registries refuse above.
MANIFEST_LIMIT_BYTES = 4 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    headers: "requests.structures.CaseInsensitiveDict[str]"
    body: bytes

    @property
    def text(self) -> str:
        """The body for messages."""
        return self.body.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One question with all the requests that it takes: what it is about, until when, how much to read."""

    reference: Reference
    deadline: float
    limit: int

    @classmethod
    def about(
        cls, reference: Reference, timeout_seconds: float, limit: int = MANIFEST_LIMIT_BYTES
    ) -> Self:
        """Return a question about *reference* that is given up after *timeout_seconds*."""
        return cls(reference=reference, deadline=time.monotonic() + timeout_seconds, limit=limit)


class Transport:
    """Sends requests over sessions that are kept. Safe to share between threads.

    Attributes:
        sent: How many requests there were.
    """

    def __init__(self, certificates: Path) -> None:
        """Make one that trusts what Docker does: *certificates* has a directory for each registry."""
        self._certificates = certificates
        self._sessions: dict[bool, list[requests.Session]] = {True: [], False: []}
        self._lock = threading.Lock()
        self.sent = 0

    def send(
        self,
        method: str,
        url: str,
        exchange: Exchange,
        *,
        authorization: str | None = None,
        fields: dict[str, str] | None = None,
    ) -> Answer:
        """Return the answer to one request, in the time that is left of its *exchange*.

        Raises:
            RocmrunError: as core.registry_errors.classify names it.
        """

        def authorize(request: requests.PreparedRequest) -> requests.PreparedRequest:
            # Given as a callable, so that requests does not look for a login in ~/.netrc instead.
            if authorization:
                request.headers["Authorization"] = authorization
            return request

        reference, seconds = exchange.reference, max(exchange.deadline - time.monotonic(), 0.001)
        session = self._take_session(reference)

        def ask() -> Answer:
            response = session.request(
                method,
                url,
                params=fields if method == "GET" else None,
                data=fields if method == "POST" else None,
                headers={"Accept": ACCEPT, "Accept-Encoding": "identity"},
                auth=authorize,
                timeout=seconds,
                stream=True,
                verify=self._trust(reference),
            )
            with response:
                body = _read(response, exchange)
            return Answer(status=response.status_code, headers=response.headers, body=body)

        with _translated(reference):
            answer = _within(seconds, ask)
        self._give_back(reference, session)
        return answer

    def _take_session(self, reference: Reference) -> requests.Session:
        """Return a session that nobody uses: requests promises nothing about sharing one."""
        with self._lock:
            self.sent += 1
            if free := self._sessions[reference.loopback]:
                return free.pop()
        session = requests.Session()
        session.headers["User-Agent"] = f"rocmrun/{__version__}"
        session.trust_env = not reference.loopback  # no proxy stands before this machine itself
        return session

    def _give_back(self, reference: Reference, session: requests.Session) -> None:
        """Keep a session for the next request. One whose request failed or still hangs is not given back."""
        with self._lock:
            self._sessions[reference.loopback].append(session)

    def _trust(self, reference: Reference) -> str | bool:
        authority = self._certificates / reference.domain / "ca.crt"
        return str(authority) if authority.is_file() else True


def _within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """Return what *work* does, in a thread that is left alone when it takes longer than *seconds*.

    A socket's own time limit is for each piece that comes: a registry that sends its headers byte by
    byte never reaches it, and neither does a name that takes forever to resolve.
    """
    ended: queue.SimpleQueue[Answer | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            ended.put(work())
        except Exception as error:  # noqa: BLE001  # raised again where it is waited for
            ended.put(error)

    threading.Thread(target=run, daemon=True, name="rocmrun-registry").start()
    try:
        outcome = ended.get(timeout=seconds)
    except queue.Empty:
        raise requests.exceptions.ReadTimeout from None
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _read(response: requests.Response, exchange: Exchange) -> bytes:
    """Return the body: bounded, and by the deadline however slowly it trickles."""
    # read1 returns what one receive brings; before urllib3 2 there are only whole reads.
    read = getattr(response.raw, "read1", response.raw.read)
    body = bytearray()
    while chunk := read(65536, decode_content=True):
        body += chunk
        if len(body) > exchange.limit:
            reference = exchange.reference
            msg = f"{reference.domain} sent more than {exchange.limit >> 20} MiB for {reference.canonical}"
            raise RegistryUnavailable(msg)
        if time.monotonic() > exchange.deadline:
            raise requests.exceptions.ReadTimeout
    return bytes(body)


@contextmanager
def _translated(reference: Reference) -> Iterator[None]:
    """Turn what requests and urllib3 raise into our errors."""
    try:
        yield
    except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError) as error:
        raise classify(None, "timeout", reference.canonical, via_engine=False) from error
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
        raise classify(None, str(error), reference.canonical, via_engine=False) from error
