"""What became of a support bundle: written here, or judged elsewhere."""

from dataclasses import dataclass

from rocmrun.core.bundle import Bundle
from rocmrun.core.doctor import Diagnosis


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBundle:
    """A bundle that was written.

    Attributes:
        differs: What is found without masking and cutting, where that is something else; "" where it is not.
    """

    path: str
    size_bytes: int
    bundle: Bundle
    differs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBundle:
    """A bundle that was read, judged by the rules of this version."""

    bundle: Bundle
    found: Diagnosis
