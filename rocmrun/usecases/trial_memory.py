"""Answers of earlier trials: kept after each batch, so that an interrupted search goes on where it was."""

import contextlib
import hashlib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from rocmrun.core.oracle import TrialResult
from rocmrun.core.plan import canonical_json
from rocmrun.errors import HostNotReady, RocmrunError
from rocmrun.system.caller import state_directory
from rocmrun.system.files import make_directory, read_text, write_atomic

# 2: with where runs wrote, without which a search that goes on would look for no tmpfs.
VERSION = 2


class _Kept(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    v: int = VERSION
    results: dict[str, list[TrialResult]] = {}


class TrialMemory:
    """Results by a trial's fingerprint, each in the order of its attempts."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._results: dict[str, list[TrialResult]] = _read(path) if resume else {}
        self._earlier = {key: len(found) for key, found in self._results.items()}

    @classmethod
    def of(cls, key: str, *, where: Any, resume: bool) -> "TrialMemory":
        """Return the memory of the search that *key* names, in this user's state directory.

        *where* is everything else that an answer depends on, as JSON values: after an update of the driver or the
        engine an old one would stand in a certificate of the new.
        """
        name = hashlib.sha256(canonical_json([key, where]).encode()).hexdigest()[:32]
        return cls(state_directory() / "diff-privileges" / f"{name}.json", resume=resume)

    @property
    def remembered(self) -> int:
        """How many results an earlier search left."""
        return sum(self._earlier.values())

    def find(self, fingerprint: str, attempt: int) -> TrialResult | None:
        """Return the result of one attempt; None when it was not made."""
        found = self._results.get(fingerprint, [])
        return found[attempt] if attempt < len(found) else None

    def __getitem__(self, trial: tuple[str, int]) -> TrialResult:
        """Return the result of one attempt that was made."""
        fingerprint, attempt = trial
        return self._results[fingerprint][attempt]

    def is_earlier(self, fingerprint: str, attempt: int) -> bool:
        """Whether that attempt was made by an earlier search."""
        return attempt < self._earlier.get(fingerprint, 0)

    def add(self, fingerprint: str, result: TrialResult) -> None:
        """Remember the next attempt's result."""
        self._results.setdefault(fingerprint, []).append(result)

    def save(self) -> str:
        """Write everything down; return what kept that from working, or ""."""
        try:
            make_directory(self._path.parent, error=HostNotReady)
            # What jobs printed is in there.
            with contextlib.suppress(OSError):
                self._path.parent.chmod(0o700)
            write_atomic(
                self._path, _Kept(results=self._results).model_dump_json(), error=HostNotReady
            )
        except RocmrunError as error:
            return error.message
        return ""


def _read(path: Path) -> dict[str, list[TrialResult]]:
    try:
        text = read_text(path, HostNotReady)
        kept = _Kept.model_validate_json(text) if text else _Kept()
    except (RocmrunError, ValidationError):
        return {}
    return dict(kept.results) if kept.v == VERSION else {}
