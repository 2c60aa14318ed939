"""Every failure has a name and a code of its own, and the tree in the docstring is the tree."""

import inspect
import re
from collections.abc import Iterator

import pytest

from rocmrun import errors
from rocmrun.errors import Interrupted, RocmrunError, all_slugs

CODES = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 70, 126, 127, 130}


def classes(top: type[RocmrunError] = RocmrunError) -> Iterator[type[RocmrunError]]:
    for child in top.__subclasses__():
        yield child
        yield from classes(child)


CLASSES = tuple(classes())


def documented() -> dict[str, tuple[int, str]]:
    """Return class name → depth and what stands behind it, off the docstring."""
    rows = re.findall(r"^((?:[│ ]   )*[├└]── )(\w+)\s+(\S.*)$", errors.__doc__ or "", re.MULTILINE)
    return {name: (len(lead) // 4, text.strip()) for lead, name, text in rows}


def depth(error: type[RocmrunError]) -> int:
    return inspect.getmro(error).index(RocmrunError)


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_class_stands_in_the_tree(error: type[RocmrunError]) -> None:
    """At its depth; a leaf with its slug, a class of several with its code."""
    place, text = documented()[error.__name__]

    assert place == depth(error)
    shown = text.split()
    assert error.slug in shown or str(error.exit_code) in shown


def test_nothing_else_stands_in_the_tree() -> None:
    assert documented().keys() == {error.__name__ for error in CLASSES}


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_every_class_has_a_slug_of_its_own_a_known_code_and_a_line_of_meaning(
    error: type[RocmrunError],
) -> None:
    assert "slug" in vars(error)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", error.slug)
    assert error.exit_code in CODES
    assert error.__doc__


def test_slugs_are_unique_and_complete() -> None:
    slugs = [error.slug for error in CLASSES]

    assert len(slugs) == len(set(slugs))
    assert all_slugs() == {error.slug: error.exit_code for error in CLASSES} | {"bug": 70}


def test_a_class_of_failures_has_one_code() -> None:
    """But for those that stand alone."""
    codes = {error: error.exit_code for error in CLASSES}

    assert [
        error.__name__
        for error in CLASSES
        for parent in codes
        if error.__base__ is parent and codes[error] != codes[parent]
    ] == []


def test_an_error_keeps_what_people_and_scripts_need() -> None:
    error = errors.ProfileInvalid("a mistake", hint="do this", details=("one", "two"))

    assert (str(error), error.message, error.hint, error.details) == (
        "a mistake", "a mistake", "do this", ("one", "two"),
    )  # fmt: skip


def test_an_interruption_knows_its_signal() -> None:
    assert Interrupted("x").signal_number == 2
    assert Interrupted("x", signal_number=15).signal_number == 15
