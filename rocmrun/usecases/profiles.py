"""Find, read and merge profiles; load one for planning, or say what is in them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from rocmrun.core.profile.image import Verify
from rocmrun.core.profile.loaded import LoadedProfile, load, provenance
from rocmrun.core.profile.merge import (
    MergedProfile,
    ProfileFile,
    ProfileLayer,
    merge,
    merged_tables,
)
from rocmrun.core.profile.model import Profile
from rocmrun.core.profile.parameters import (
    filled_in,
    has_reference,
    missing_parameters,
    parameter_values,
    partly_filled_in,
)
from rocmrun.core.profile.parse import find_mistakes, invalid
from rocmrun.core.profile.paths import absolute_key
from rocmrun.core.profile.summary import ProfileSummary, ShownProfile
from rocmrun.core.reference import parse_reference
from rocmrun.core.signature import SignatureRule
from rocmrun.errors import InputError, LockError, ParameterMissing, ProfileInvalid, ProfileNotFound
from rocmrun.system.profile_search import ProfileSearch, is_path, read_profile
from rocmrun.usecases.locks import LockPlaces, read_lock


def load_profile(
    name: str, *, search: ProfileSearch, settings: Mapping[str, str] | None = None
) -> LoadedProfile:
    """Return profile *name*, its parents merged and its parameters filled in from *settings*.

    Raises:
        ProfileNotFound: it, or a parent.
        ProfileInvalid: with every mistake.
        ParameterMissing: with every parameter that has no value.
        UsageError: a setting names no parameter.
    """
    return load(
        read_merged(name, search),
        settings or {},
        directory=str(search.working_directory),
        home=search.home,
    )


def read_merged(name: str, search: ProfileSearch) -> MergedProfile:
    """Return profile *name* with its parents merged and its parameters open.

    Raises:
        ProfileNotFound: it, or a parent.
        ProfileInvalid: a file cannot be read, or a profile extends itself.
    """
    layers: list[ProfileLayer] = []
    parent: object = name
    while isinstance(parent, str):
        file = _find(parent, search, layers)
        layer = ProfileLayer(file=file, data=read_profile(file))
        _refuse_cycle(layer, layers)
        layers.append(layer)
        # What is not a string is a mistake of the model's to name.
        parent = layer.data.get("extends")
        if isinstance(parent, str) and is_path(parent):
            parent = str(PurePosixPath(file.path).parent / parent)
    return merge(layers)


def list_profiles(
    search: ProfileSearch, *, places: LockPlaces | None = None
) -> tuple[ProfileSummary, ...]:
    """Return a summary of every profile; one that cannot be used is in it with its problem.

    Without *places* nobody looks whether images are locked.
    """
    return tuple(_summary(file, search, places) for file in search.all())


def show_profile(
    name: str, *, search: ProfileSearch, settings: Mapping[str, str] | None = None
) -> ShownProfile:
    """Return what profile *name* comes to, also while parameters are missing.

    Raises:
        ProfileNotFound: it, or a parent.
        ProfileInvalid: with every mistake.
        UsageError: a setting names no parameter.
    """
    merged = read_merged(name, search)
    values = parameter_values(merged.data, settings or {}, merged.file.name)
    data = partly_filled_in(merged.data, values)
    mistakes = find_mistakes(data)
    if mistakes:
        raise invalid(mistakes, name=merged.file.name, file_of=merged.path_of)
    return ShownProfile(
        chain=tuple(layer.file for layer in merged.layers),
        data=merged_tables(Profile().as_data(defaults=True), data),
        provenance=provenance(merged, settings or {}),
        missing=missing_parameters(merged.data, values),
    )


def signature_rule(
    name: str, *, search: ProfileSearch, settings: Mapping[str, str]
) -> SignatureRule | None:
    """Return whose signature profile *name* asks for, also while parameters are missing elsewhere in it.

    Raises:
        ParameterMissing: what it asks for depends on one.
        ProfileInvalid: the key's path has no meaning here.
    """
    merged = read_merged(name, search)
    asked = merged.data.get("image", {}).get("verify")
    if asked is None:
        return None
    values = parameter_values(merged.data, settings, merged.file.name)
    declared = merged.data.get("parameters", {})
    if missing := missing_parameters({"parameters": declared, "image": asked}, values):
        msg = f"whose signature profile {merged.file.name} asks for depends on {', '.join(missing)}"
        raise ParameterMissing(msg, hint=" ".join(f"--set {name}=…" for name in missing))
    rule = Verify.model_validate(filled_in(asked, values)).rule
    if rule.key is None:
        return rule
    key = absolute_key(
        rule.key, merged, settings, directory=str(search.working_directory), home=search.home
    )
    return replace(rule, key=key)


def check_profiles(names: Iterable[str], search: ProfileSearch) -> tuple[ProfileFile, ...]:
    """Check the profiles of *names*, or all that are found, and return their files.

    Raises:
        ProfileInvalid: with every mistake of every profile.
    """
    wanted = tuple(names) or tuple(file.name for file in search.all())
    good: list[ProfileFile] = []
    problems: list[InputError] = []
    for name in wanted:
        try:
            good.append(_checked(name, search))
        except InputError as error:
            problems.append(error)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        msg = f"{len(problems)} of {len(wanted)} profiles have mistakes"
        raise ProfileInvalid(
            msg,
            hint=problems[0].hint,
            details=tuple(
                line for problem in problems for line in problem.details or (problem.message,)
            ),
        )
    return tuple(good)


def _find(name: str, search: ProfileSearch, children: list[ProfileLayer]) -> ProfileFile:
    try:
        return search.find(name)
    except ProfileNotFound as error:
        if not children:
            raise
        child = f"{children[-1].file.path}: extends = {children[-1].data['extends']!r}"
        raise ProfileNotFound(
            error.message, hint=error.hint, details=(child, *error.details)
        ) from error


def _refuse_cycle(layer: ProfileLayer, children: list[ProfileLayer]) -> None:
    chain = [child.file.path for child in children]
    if layer.file.path not in chain:
        return
    names = " → ".join(child.file.name for child in (*children, layer))
    msg = f"profile {children[0].file.name} extends itself: {names}"
    raise ProfileInvalid(
        msg,
        hint="a profile that builds on a shipped one needs a name of its own",
        details=tuple(
            f"{child.file.path}: extends = {child.data['extends']!r}" for child in children
        ),
    )


def _checked(name: str, search: ProfileSearch) -> ProfileFile:
    merged = read_merged(name, search)
    mistakes = find_mistakes(merged.data)
    if mistakes:
        raise invalid(mistakes, name=merged.file.name, file_of=merged.path_of)
    return merged.file


def _summary(file: ProfileFile, search: ProfileSearch, places: LockPlaces | None) -> ProfileSummary:
    try:
        shown = show_profile(file.name, search=search)
    except InputError as error:
        first = f": {error.details[0]}" if error.details else ""
        return ProfileSummary(file=file, problem=error.message + first)
    image = shown.data["image"].get("ref")
    lockable = image is not None and not has_reference(image)
    return ProfileSummary(
        file=file,
        description=shown.data["description"],
        accelerator=shown.data["accelerator"],
        image=image,
        locked=_is_locked(file, image, places) if lockable and places else None,
    )


def _is_locked(file: ProfileFile, image: str, places: LockPlaces) -> bool | None:
    """Return whether a lock that answers for *file* holds *image*; None when a lock on the way cannot be read."""
    ref = parse_reference(image).canonical
    try:
        locks = [read_lock(path) for path in places.candidates(file.origin, Path(file.path))]
    except LockError:
        return None
    return any(lock.get(ref) is not None for lock in locks if lock is not None)
