"""A profile ready for planning: validated, its paths absolute, with the source of every value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rocmrun.core.profile.merge import MergedProfile, ProfileFile, leaves, merged_tables, nearest
from rocmrun.core.profile.model import Profile
from rocmrun.core.profile.parameters import (
    filled_in,
    missing_error,
    missing_parameters,
    parameter_references,
    parameter_values,
)
from rocmrun.core.profile.parse import find_mistakes, invalid, parse_profile
from rocmrun.core.profile.paths import with_absolute_paths
from rocmrun.core.toml import KeyPath, key_path
from rocmrun.errors import PlanRefused

DEFAULT = "default"
COMMAND_LINE = "command line"
SET = "--set"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProfile:
    """A profile and where all of it came from.

    Attributes:
        profile: The values: parents merged, parameters filled in, paths absolute.
        file: The profile's own file.
        chain: Its file, its parent's file, and so on.
        provenance: Key path → who set it: "profile base", "profile serve, --set model_dir",
            "command line". A key that nobody set is not in it.
    """

    profile: Profile
    file: ProfileFile
    chain: tuple[ProfileFile, ...]
    provenance: Mapping[str, str]

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.file.name

    @property
    def path(self) -> str:
        """The profile's own file, absolute."""
        return self.file.path

    @property
    def origin(self) -> str:
        """Which part of the search path it came from."""
        return self.file.origin

    @property
    def shadows(self) -> tuple[str, ...]:
        """What to say aloud: a sentence for each file of the chain that hides a shipped profile."""
        return shadow_notes(self.chain)

    def source(self, key: str) -> str:
        """Return who set *key*, or the list or table that holds it; "default" when nobody did."""
        return nearest(self.provenance, key) or DEFAULT


def load(
    merged: MergedProfile, settings: Mapping[str, str], *, directory: str, home: str | None
) -> LoadedProfile:
    """Fill in parameters, validate, and make paths absolute.

    Args:
        merged: The profile and its parents.
        settings: What --set says.
        directory: Where relative paths of --set start.
        home: What ~ stands for; None when the caller has no home.

    Raises:
        UsageError: a setting names no parameter.
        ProfileInvalid: with every mistake.
        ParameterMissing: a parameter that is used has no value.
    """
    name = merged.file.name
    values = parameter_values(merged.data, settings, name)
    mistakes = find_mistakes(merged.data)
    if mistakes:
        raise invalid(mistakes, name=name, file_of=merged.path_of)
    missing = missing_parameters(merged.data, values)
    if missing:
        raise missing_error(missing, name)
    profile = parse_profile(filled_in(merged.data, values), name=name, file_of=merged.path_of)
    return LoadedProfile(
        profile=with_absolute_paths(profile, merged, settings, directory=directory, home=home),
        file=merged.file,
        chain=tuple(layer.file for layer in merged.layers),
        provenance=provenance(merged, settings),
    )


def provenance(merged: MergedProfile, settings: Mapping[str, str]) -> dict[str, str]:
    """Return for every key path that is set who set it; where --set filled something in, both."""
    sources = {key: layer.source for key, layer in merged.set_by.items()}
    for path, parameter in parameter_references(merged.data):
        if parameter in settings:
            key = key_path(path)
            sources[key] = f"{merged.layer_of(key).source}, {SET} {parameter}"
    return sources | {f"parameters.{parameter}": SET for parameter in settings}


def override(
    loaded: LoadedProfile,
    *,
    replacing: Mapping[str, Any] | None = None,
    adding: Mapping[str, Any] | None = None,
) -> LoadedProfile:
    """Return *loaded* with what the command line says.

    Args:
        loaded: The profile.
        replacing: Keys that get another value, as tables: {"container": {"network": "none"}}.
        adding: Lists whose items go to the end of the profile's, in the same form.

    Raises:
        PlanRefused: the profile forbids overrides.
        ProfileInvalid: the result is no valid profile.
    """
    replaced, added = list(leaves(replacing or {})), list(leaves(adding or {}))
    asked = [key_path(path) for path in (*replaced, *added)]
    refuse_overrides(loaded, asked)
    before = loaded.profile.as_data()
    data = merged_tables(before, replacing or {})
    sources = dict(loaded.provenance)
    for path in replaced:
        sources = _replaced(sources, key_path(path))
    for path in added:
        known, new = _at(data, path) or [], _at(adding, path)
        data = merged_tables(data, _nested(path, [*known, *new]))
        for index in range(len(known), len(known) + len(new)):
            sources[key_path((*path, index))] = COMMAND_LINE
    changed = replace(loaded, provenance=sources)
    profile = parse_profile(data, name=loaded.name, file_of=changed.source)
    return replace(changed, profile=profile)


def refuse_overrides(loaded: LoadedProfile, asked: Iterable[str]) -> None:
    """Refuse what the command line asks for where the profile lets nobody change it.

    Raises:
        PlanRefused: with every key or option.
    """
    details = tuple(f"asked for: {what}" for what in asked)
    if details and not loaded.profile.policy.overrides:
        msg = f"profile {loaded.name} may not be changed from the command line: policy.overrides is false"
        hint = f'write a profile with extends = "{loaded.name}" and change it there'
        raise PlanRefused(msg, hint=hint, details=details)


def shadow_notes(chain: Iterable[ProfileFile]) -> tuple[str, ...]:
    """Return a sentence for each file of *chain* that hides a shipped profile."""
    return tuple(
        f"profile {file.name} is {file.path}, not the shipped one" for file in chain if file.shadows
    )


def _replaced(sources: Mapping[str, str], key: str) -> dict[str, str]:
    others = {other: who for other, who in sources.items() if not other.startswith(f"{key}[")}
    return others | {key: COMMAND_LINE}


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        data = (data or {}).get(part)
    return data


def _nested(path: KeyPath, value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    return dict(value)
