"""Parameters: ${name} and what it stands for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.profile.parameters import (
    escaped_texts,
    filled_in,
    missing_error,
    missing_parameters,
    parameter_values,
    partly_filled_in,
)
from rocmrun.core.profile.parse import parse_profile
from rocmrun.errors import UsageError

DECLARED = {
    "parameters": {"dir": {"help": "a directory"}, "port": {"help": "a port", "default": 8000}}
}


def test_settings_win_over_defaults() -> None:
    assert parameter_values(DECLARED, {}, "p") == {"port": "8000"}
    assert parameter_values(DECLARED, {"port": "1", "dir": "/x"}, "p") == {"port": "1", "dir": "/x"}


@pytest.mark.parametrize(
    ("default", "text"), [(True, "true"), (8000, "8000"), (0.5, "0.5"), ("a", "a")]
)
def test_a_default_becomes_the_text_that_set_would_give(default: object, text: str) -> None:
    data = {"parameters": {"x": {"help": "x", "default": default}}}

    assert {"x": text} == parameter_values(data, {}, "p")


def test_an_unknown_setting_names_the_closest() -> None:
    with pytest.raises(
        UsageError, match="profile p has no parameter 'prot'; did you mean \"port\""
    ):
        parameter_values(DECLARED, {"prot": "1"}, "p")

    with pytest.raises(UsageError, match="its parameters are dir, port"):
        parameter_values(DECLARED, {"zzz": "1"}, "p")

    with pytest.raises(UsageError, match="it has none"):
        parameter_values({}, {"x": "1"}, "p")


def test_all_missing_ones_come_in_one_error() -> None:
    data = {
        "parameters": {
            "a": {"help": "first"},
            "b": {"help": "second"},
            "unused": {"help": "third"},
        },
        "mounts": [{"source": "${a}/${b}"}],
    }

    missing = missing_parameters(data, {})
    error = missing_error(missing, "p")

    assert missing == {"a": "first", "b": "second"}
    assert error.message == "profile p needs 2 parameters that are not set"
    assert error.details == ("a: first", "b: second")
    assert error.hint == "add --set a=… --set b=…"


def test_references_are_filled_in_wherever_text_stands() -> None:
    data = {
        "container": {"command": ["a", "${x}-${x}"], "env": {"A": "${x}"}, "pids": 3},
        "mounts": [{"source": "${x}", "target": "/t"}],
    }

    assert filled_in(data, {"x": "1"}) == {
        "container": {"command": ["a", "1-1"], "env": {"A": "1"}, "pids": 3},
        "mounts": [{"source": "1", "target": "/t"}],
    }


def test_what_describes_a_profile_is_left_alone() -> None:
    data: dict[str, Any] = {
        "description": "${x}",
        "extends": "${x}",
        "parameters": {"x": {"help": "${x}", "default": "${x}"}},
    }

    assert data == filled_in(data, {"x": "1"})


def test_a_value_is_not_read_again() -> None:
    """What --set says is text, whatever it looks like."""
    assert filled_in({"a": "${x}"}, {"x": "${y}$${", "y": "no"}) == {"a": "${y}$${"}


def test_a_literal_is_escaped_by_doubling_the_dollar() -> None:
    assert filled_in({"a": "$${HOME} $x 5$"}, {}) == {"a": "${HOME} $x 5$"}


@given(st.text(alphabet="${}x", max_size=12))
def test_an_escaped_text_comes_back(text: str) -> None:
    assert {"a": text} == filled_in(escaped_texts({"a": text}), {"x": "no"})


def test_a_partly_filled_profile_can_still_be_filled() -> None:
    """`profiles show` prints it while parameters are missing, and what it prints is a profile."""
    data = {"a": "${x}/${y}/$${z}"}

    partly = partly_filled_in(data, {"x": "${y}"})

    assert partly == {"a": "$${y}/${y}/$${z}"}
    assert filled_in(data, {"x": "${y}", "y": "2"}) == filled_in(partly, {"y": "2"})


def test_only_a_parameter_may_write_a_number_as_text() -> None:
    data = {"container": {"pids": "${n}", "cpus": "${n}"}, "gpus": {"exclusive": "${yes}"}}

    profile = parse_profile(filled_in(data, {"n": "64", "yes": "false"}))

    assert (profile.container.pids, profile.container.cpus, profile.gpus.exclusive) == (
        64,
        64.0,
        False,
    )
