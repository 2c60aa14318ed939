"""Which profiles a `rocmrun lock` is about, and which images they name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rocmrun.core.lock_changes import Wanted
from rocmrun.core.profile.merge import ProfileFile
from rocmrun.core.reference import parse_reference
from rocmrun.core.signature import SignatureRule
from rocmrun.errors import (
    InputError,
    ParameterMissing,
    ProfileInvalid,
    ReferenceInvalid,
    UsageError,
)
from rocmrun.system.profile_search import ProfileSearch
from rocmrun.usecases.profiles import show_profile, signature_rule

_OWN = ("--profile-dir", "project")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileReference:
    """An image that a profile names.

    Attributes:
        profile: The profile's name.
        ref: Canonical reference.
        origin: Which part of the search path the profile came from.
        path: The profile's file.
        rule: Whose signature the profile asks for.
    """

    profile: str
    ref: str
    platform: str
    moving_tags: Literal["warn", "refuse"]
    origin: str
    path: Path
    rule: SignatureRule | None = None

    @property
    def wanted(self) -> Wanted:
        """What it asks of a lock."""
        return Wanted(
            ref=self.ref,
            platform=self.platform,
            profiles=(self.profile,),
            moving_tags=self.moving_tags,
            rules=() if self.rule is None else (self.rule,),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What one call is about.

    Attributes:
        references: What is to be locked.
        used: Every reference that any profile on the search path uses, so that others can be dropped;
            None when nothing may be dropped, since profiles were named or not all could be read.
        notes: What is worth saying.
    """

    references: tuple[ProfileReference, ...]
    used: frozenset[str] | None = None
    notes: tuple[str, ...] = ()


def select(
    names: Iterable[str],
    *,
    search: ProfileSearch,
    settings: Mapping[str, str],
    platform: str | None = None,
) -> Selection:
    """Return what the profiles *names* ask for; without names, the project's own profiles.

    Args:
        names: Profiles on the command line.
        search: The search path.
        settings: What --set says.
        platform: What --platform says, in place of each profile's.

    Raises:
        InputError: a profile cannot be read, or what it names is no reference.
        UsageError: no name, and the project has no profiles.
    """
    names = tuple(names)
    if names:
        found = [
            reference
            for name in names
            for reference in _references(name, search, settings, platform, named=True)
        ]
        return Selection(references=tuple(found))
    return _own_profiles(search, settings, platform)


def _own_profiles(
    search: ProfileSearch, settings: Mapping[str, str], platform: str | None
) -> Selection:
    files = search.all()
    own = [file for file in files if file.origin in _OWN]
    if not own:
        looked = [str(d.path) for d in search.directories if d.origin in _OWN]
        msg = f"there are no profiles in {', '.join(looked)}"
        raise UsageError(
            msg, hint="name a profile: rocmrun lock PROFILE (see rocmrun profiles list)"
        )
    references: list[ProfileReference] = []
    used: set[str] | None = set()
    notes: list[str] = []
    problems: list[InputError] = []
    for file in files:
        try:
            found = _references(file.name, search, settings if file in own else {}, platform)
        except ParameterMissing as error:
            # One of the project's own keeps every pin that it may use. A shipped one whose image is a
            # parameter (cuda-check) fits any image, and would keep every project from ever dropping one.
            if file in own:
                used = None
                notes.append(
                    f"{error.message}; lock it by name: rocmrun lock {file.name} {error.hint}"
                )
            continue
        except InputError as error:
            used = None
            if file in own:
                problems.append(error)
            continue
        if file in own:
            references += found
        if used is not None:
            used |= {reference.ref for reference in found}
    if problems:
        raise _all_of(problems)
    return Selection(
        references=tuple(references),
        used=None if used is None else frozenset(used),
        notes=tuple(notes),
    )


def _references(
    name: str,
    search: ProfileSearch,
    settings: Mapping[str, str],
    platform: str | None,
    *,
    named: bool = False,
) -> list[ProfileReference]:
    """Return the images of profile *name*: its own, and the one it is probed with."""
    shown = show_profile(name, search=search, settings=settings)
    file, image = shown.chain[0], shown.data["image"]
    ref, probed_with = image.get("ref"), shown.data["probe"].get("image")
    texts = [text for text in (ref, probed_with) if text]
    if named and not texts:
        msg = f"profile {file.name} names no image: it is meant to be extended"
        raise ProfileInvalid(
            msg, hint=f'write a profile with extends = "{file.name}" and an [image] ref'
        )
    found = [_reference(text, file, image, shown.missing, platform) for text in texts]
    if not ref:
        return found
    rule = signature_rule(name, search=search, settings=settings)
    return [replace(found[0], rule=rule), *found[1:]]


def _reference(
    text: str,
    file: ProfileFile,
    image: Mapping[str, Any],
    missing: Mapping[str, str],
    platform: str | None,
) -> ProfileReference:
    needed = [name for name in missing if f"${{{name}}}" in text]
    if needed:
        msg = f"the image of profile {file.name} depends on {', '.join(needed)}"
        raise ParameterMissing(msg, hint=" ".join(f"--set {name}=…" for name in needed))
    try:
        ref = parse_reference(text).canonical
    except ReferenceInvalid as error:
        msg = f"{file.path}: {error.message}"
        raise ReferenceInvalid(msg, hint=error.hint) from error
    return ProfileReference(
        profile=file.name,
        ref=ref,
        platform=platform or image["platform"],
        moving_tags=image["moving_tags"],
        origin=file.origin,
        path=Path(file.path),
    )


def _all_of(problems: list[InputError]) -> InputError:
    if len(problems) == 1:
        return problems[0]
    lines = [line for problem in problems for line in (problem.message, *problem.details)]
    msg = f"{len(problems)} profiles have mistakes"
    return ProfileInvalid(msg, hint=problems[0].hint, details=tuple(lines))
