"""From plain TOML values to a Profile, with every mistake named at once, and back to text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rocmrun.core.closest import closest, did_you_mean
from rocmrun.core.profile.contradictions import contradictions
from rocmrun.core.profile.model import Profile
from rocmrun.core.profile.parameters import escaped_texts, has_reference, undeclared_references
from rocmrun.core.profile.values import describe
from rocmrun.core.toml import KeyPath, dump_toml, key_path
from rocmrun.errors import ProfileInvalid

_EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a table",
    "model_type": "a table",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "at most {le}",
    "string_too_short": "at least {min_length} character",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing that is wrong in a profile: where, and what, with the nearest right spelling."""

    key: str
    text: str


def parse_profile(
    data: Mapping[str, Any], *, name: str = "given", file_of: Callable[[str], str] | None = None
) -> Profile:
    """Return the profile that *data* (parents merged, parameters filled in) describes.

    Args:
        data: Plain TOML values.
        name: What to call the profile in an error.
        file_of: Says for a key path which file set it.

    Raises:
        ProfileInvalid: with every mistake as a detail.
    """
    profile, mistakes = _validated(data, waiting=False)
    if profile is None or mistakes:
        raise invalid(mistakes, name=name, file_of=file_of)
    return profile


def find_mistakes(data: Mapping[str, Any]) -> tuple[Mistake, ...]:
    """Return what is wrong in *data* whatever its parameters will be: values that wait for one are not judged."""
    undeclared = [Mistake(key=key, text=text) for key, text in undeclared_references(data)]
    return (*undeclared, *_validated(data, waiting=True)[1])


def invalid(
    mistakes: tuple[Mistake, ...], *, name: str, file_of: Callable[[str], str] | None = None
) -> ProfileInvalid:
    """Return the error that names all *mistakes* of profile *name*."""
    count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    return ProfileInvalid(
        f"profile {name} has {count}",
        hint="the keys and their values: rocmrun profiles schema",
        details=tuple(
            f"{file_of(mistake.key)}: {mistake.key}: {mistake.text}"
            if file_of
            else f"{mistake.key}: {mistake.text}"
            for mistake in mistakes
        ),
    )


def dump_profile(profile: Profile) -> str:
    """Return *profile* as the text of a profile file: reading that gives an equal profile."""
    return dump_toml(escaped_texts(profile.as_data()))


def _validated(
    data: Mapping[str, Any], *, waiting: bool
) -> tuple[Profile | None, tuple[Mistake, ...]]:
    """Return the profile, or None, and all mistakes. With *waiting*, text that waits for a parameter is none."""
    profile, errors = _attempt(data)
    wrong = [error["loc"] for error in errors]
    rest, removed = (profile, wrong) if profile else _what_is_left(data, wrong)
    found = _mistakes(errors, waiting=waiting)
    if rest:
        found += _contradictions(rest, [key_path(place) for place in removed])
    return profile, tuple(found)


def _what_is_left(
    data: Mapping[str, Any], wrong: list[KeyPath]
) -> tuple[Profile | None, list[KeyPath]]:
    """Return the profile without its *wrong* keys, so that contradictions show in the same run, and what was cut."""
    rest, errors = _attempt(_without(data, wrong))
    if rest is None:
        # Without its wrong keys an item of a list can lack what it needs: then the list goes.
        wrong = [*wrong, *(_list_of(error["loc"]) for error in errors)]
        rest, _ = _attempt(_without(data, wrong))
    return rest, wrong


def _attempt(data: Mapping[str, Any]) -> tuple[Profile | None, list[ErrorDetails]]:
    try:
        return Profile.model_validate(data), []
    except ValidationError as error:
        return None, error.errors(include_url=False)


def _list_of(place: KeyPath) -> KeyPath:
    """Return the path of the outermost list on the way to *place*, or *place*."""
    return next((place[:at] for at, part in enumerate(place) if isinstance(part, int)), place)


def _contradictions(profile: Profile, wrong: list[str]) -> list[Mistake]:
    return [
        Mistake(key=found.keys[0], text=found.text)
        for found in contradictions(profile)
        if not any(_concerns(key, other) for key in found.keys for other in wrong)
    ]


def _mistakes(errors: list[ErrorDetails], *, waiting: bool) -> list[Mistake]:
    return [
        Mistake(key=key_path(_place(error)), text=_in_words(error))
        for error in errors
        if not (waiting and has_reference(error["input"]))
    ]


def _without(data: Mapping[str, Any], places: list[KeyPath]) -> dict[str, Any]:
    """Return *data* without the keys at *places*. List items stay, so that the others keep their numbers."""
    reduced: dict[str, Any] = _copy(data)
    for place in places:
        holder: Any = reduced
        for part in place[:-1]:
            inside = isinstance(holder, list) or (isinstance(holder, dict) and part in holder)
            holder = holder[part] if inside else {}
        if isinstance(holder, dict):
            holder.pop(place[-1], None)
    return reduced


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value


def _concerns(key: str, other: str) -> bool:
    """Whether one key path is the other, or holds it."""
    short, long = sorted((key, other), key=len)
    return long == short or long.startswith((f"{short}.", f"{short}["))


def _place(error: ErrorDetails) -> KeyPath:
    """Return where the error is; pydantic marks a wrong key of a free table with a last "[key]"."""
    place = error["loc"]
    return place[:-1] if place[-1:] == ("[key]",) else place


def _in_words(error: ErrorDetails) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(error["loc"])
    if kind == "missing":
        return "is required"
    if kind == "literal_error":
        return _not_one_of(value, context["expected"])
    if kind == "value_error":
        return str(context["error"])
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind].format(**context)}, and is {value!r}"
    if kind in _EXPECTED:
        wanted = _EXPECTED[kind]
        if kind == "tuple_type" and isinstance(value, Mapping):
            return f"expected a list of tables; write [[{key_path(error['loc'])}]]"
        quoted = (
            f'; write "{value}"' if kind == "string_type" and type(value) in {int, float} else ""
        )
        return f"expected {wanted}, got {describe(value)}{quoted}"
    return error["msg"]


def _unknown_key(place: KeyPath) -> str:
    # Here, for pydantic's schema module costs every start what only a mistake needs.
    from rocmrun.core.profile.keys import known_keys, table_of  # noqa: PLC0415

    key, known = str(place[-1]), known_keys(place[:-1])
    near = closest(key.replace("-", "_"), known)
    if near:
        return f'unknown key; did you mean "{near}"?'
    table = table_of(key)
    if table:
        return f"unknown key here; it belongs in [{table}]"
    return f"unknown key; the keys here are {', '.join(known)}"


def _not_one_of(value: object, expected: str) -> str:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    if not isinstance(value, str):
        return f"expected one of {', '.join(words)}, got {describe(value)}"
    return f'"{value}" is not one of {", ".join(words)}{did_you_mean(value, words)}'
