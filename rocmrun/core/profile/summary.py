"""What the commands that look at profiles find: values between a use-case and the console."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.core.profile.merge import ProfileFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSummary:
    """One line of `profiles list`.

    Attributes:
        file: Where it is.
        image: Reference as far as it is known without --set; None for a profile without an image.
        locked: Whether its image is in the lock file; None when nobody looked, there is
            nothing to look for, or a lock cannot be read.
        problem: Why it cannot be used; None when it can.
    """

    file: ProfileFile
    description: str = ""
    accelerator: str = ""
    image: str | None = None
    locked: bool | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProfile:
    """A merged profile for people: every value that holds, and who set it.

    Attributes:
        data: The values as TOML, defaults included; a parameter without a value stays as "${name}".
        provenance: Key path → who set it; what is not in it is a default.
        missing: Parameters without a value, with their help.
    """

    chain: tuple[ProfileFile, ...]
    data: Mapping[str, Any]
    provenance: Mapping[str, str]
    missing: Mapping[str, str]
