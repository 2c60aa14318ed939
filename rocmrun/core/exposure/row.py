"""What a row of the exposure table is."""

from collections.abc import Callable
from typing import NamedTuple

from rocmrun.core.exposure.container_rights import ContainerRights


class Finding(NamedTuple):
    """How bad one kind of right is in a container, from 0 to 1, and why, in one sentence."""

    badness: float
    sentence: str


class NotApplicable(NamedTuple):
    """Why a row says nothing of a container."""

    sentence: str


class RowKind(NamedTuple):
    """One row of the table: its name, its weight, and how a container is judged."""

    id: str
    weight: int
    assess: Callable[[ContainerRights], Finding | NotApplicable]
