"""From a chain of profile files to one set of values, each with the file that set it. Reads no file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rocmrun.core.toml import KeyPath, key_path

T = TypeVar("T")

# What a file says of itself; a child without them has none.
NOT_INHERITED = ("description", "extends")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """A profile file that was found.

    Attributes:
        name: The file's name without ".toml".
        path: Where it is, absolute.
        origin: Which part of the search path it came from: "--profile-dir", "project", "user",
            "system", "shipped", or "file" when it was given as a path.
        shadows: The shipped file of the same name that it hides, None when it hides none.
    """

    name: str
    path: str
    origin: str
    shadows: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileLayer:
    """A profile file and the values in it."""

    file: ProfileFile
    data: Mapping[str, Any]

    @property
    def source(self) -> str:
        """How provenance names this file: "profile base"."""
        return f"profile {self.file.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedProfile:
    """The values of a profile and its parents, parameters not filled in yet.

    Attributes:
        layers: The profile first, then its parent, and so on.
        data: The merged values.
        set_by: For every key path in *data* the layer that set it.
    """

    layers: tuple[ProfileLayer, ...]
    data: dict[str, Any]
    set_by: Mapping[str, ProfileLayer]

    @property
    def file(self) -> ProfileFile:
        """The profile's own file."""
        return self.layers[0].file

    def layer_of(self, key: str) -> ProfileLayer:
        """Return the layer to ask about *key*: who set it, what holds it, or what is in it."""
        return nearest(self.set_by, key) or self.layers[0]

    def path_of(self, key: str) -> str:
        """Return the file to ask about *key*."""
        return self.layer_of(key).file.path


def merge(layers: Sequence[ProfileLayer]) -> MergedProfile:
    """Merge *layers* (the profile first, then its parents): tables merge key by key, anything else is replaced."""
    data: dict[str, Any] = {}
    set_by: dict[str, ProfileLayer] = {}
    for layer in reversed(layers):
        own = layer is layers[0]
        values = {
            key: value for key, value in layer.data.items() if own or key not in NOT_INHERITED
        }
        data = merged_tables(data, values)
        set_by |= {key_path(path): layer for path in leaves(values)}
    present = {key_path(path) for path in leaves(data)}
    return MergedProfile(
        layers=tuple(layers),
        data=data,
        set_by={key: layer for key, layer in set_by.items() if key in present},
    )


def merged_tables(parent: Mapping[str, Any], child: Mapping[str, Any]) -> dict[str, Any]:
    """Return *parent* with *child* laid over it."""
    merged = dict(parent)
    for key, value in child.items():
        below = merged.get(key)
        both_tables = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[key] = merged_tables(below, value) if both_tables and below is not None else value
    return merged


def leaves(data: Mapping[str, Any], path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of every value that is not itself a table; an empty table counts as one."""
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def nearest(by_key: Mapping[str, T], key: str) -> T | None:
    """Return the entry of *key*, else of what holds it ("mounts" for "mounts[0].target"), else of what it holds."""
    holder = key
    while holder:
        if holder in by_key:
            return by_key[holder]
        holder = holder[: max(holder.rfind("."), holder.rfind("["), 0)]
    inside = [value for other, value in by_key.items() if other.startswith((f"{key}.", f"{key}["))]
    return inside[-1] if inside else None
