"""A registry in memory, for the use-cases that ask one."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import Resolved
from rocmrun.core.reference import Reference, parse_reference
from rocmrun.errors import ImageGone, RocmrunError
from rocmrun.usecases.lock_ask import Described, Sources


def digest(letter: str) -> str:
    """Return a digest that is easy to tell from others."""
    return f"sha256:{letter * 64}"


@dataclass
class FakeRegistry:
    """Answers as a resolver, a describer and the images of an engine.

    Attributes:
        tags: Canonical reference → digest.
        lost: Digests that it no longer has.
        platforms: What every image is for; None: not told.
        configs: Digest → config, for describe.
        failures: Canonical reference → what asking for it raises.
        images: What an engine holds, by canonical name.
        histories: Image id → the steps that it was built by.
        seconds: How long an answer takes.
        asked: What it was asked, in order.
    """

    tags: dict[str, str] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    platforms: tuple[str, ...] | None = ("linux/amd64",)
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    failures: Mapping[str, RocmrunError] = field(default_factory=dict)
    images: dict[str, ImageFacts] = field(default_factory=dict)
    histories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seconds: float = 0
    asked: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def resolve(self, reference: str, timeout_seconds: float) -> Resolved:  # noqa: ARG002
        """Return what *reference* names."""
        with self._lock:
            self.asked.append(reference)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(self.seconds)
        with self._lock:
            self.at_once -= 1
        if reference in self.failures:
            raise self.failures[reference]
        found = parse_reference(reference).digest or self.tags.get(reference)
        if found is None or found in self.lost:
            msg = f"the registry has no {reference}"
            raise ImageGone(msg)
        return Resolved(digest=found, media_type="a/b", platforms=self.platforms)

    def describe(
        self,
        reference: Reference,
        platform: str,
        timeout_seconds: float,  # noqa: ARG002
        *,
        facts: bool,
    ) -> Described:
        """Return the config of *reference*."""
        with self._lock:
            self.asked.append(f"config of {reference.canonical}")
        if reference.canonical in self.failures:
            raise self.failures[reference.canonical]
        config = self.configs.get(reference.digest or "", {})
        return Described(image_id=digest("1"), platform=platform, config=config if facts else None)

    def image(self, name: str) -> ImageFacts | None:
        """Return what the engine holds under *name*."""
        return self.images.get(name)

    def history(self, image_id: str) -> tuple[str, ...]:
        """Return how the image with *image_id* was built."""
        return self.histories.get(image_id, ())

    def opener(self, *, describe_always: bool = False) -> Callable[..., Sources]:
        """Return what opens this registry as the sources of a run."""
        return lambda *_: Sources(
            resolver=self, describer=self, describe_always=describe_always, local=self
        )


def no_sources(*_: object) -> Sources:
    """Stand for sources that must not be opened."""
    msg = "nobody was to be asked"
    raise AssertionError(msg)
