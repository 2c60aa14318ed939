"""A plan is a value: equal plans are equal bytes, and any change is another hash."""

import json
from dataclasses import FrozenInstanceError, asdict

import pytest

from rocmrun.core.plan import Grant, Plan, canonical_json
from tests.builders import host, plan, privileges


def test_equal_plans_have_one_hash_and_one_text() -> None:
    assert plan().hash == plan().hash
    assert canonical_json(asdict(plan())) == canonical_json(asdict(plan()))
    assert len(plan().hash) == 64


def test_any_change_is_another_hash() -> None:
    made = plan()
    changes = {
        "workdir": "/elsewhere", "uid": 7, "cap_add": ("SYS_PTRACE",), "env": (("A", "1"),),
        "grants": (), "tty": True, "labels": (), "pids": 1,
    }  # fmt: skip

    hashes = {made.hash} | {
        made.with_changes(**{name: value}).hash for name, value in changes.items()
    }

    assert len(hashes) == len(changes) + 1


def test_a_plan_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        plan().uid = 0  # type: ignore[misc]  # the very thing that must not work


def test_json_is_sorted_short_and_ascii() -> None:
    assert canonical_json({"b": [1, None], "a": "é"}) == '{"a":"\\u00e9","b":[1,null]}'


def test_every_field_of_a_plan_is_json() -> None:
    made = plan(privileges("nnp:off"))

    assert json.loads(canonical_json(asdict(made)))["uid"] == 1000


def test_short_forms() -> None:
    made: Plan = plan(host=host(3))

    assert made.user == "1000:1000"
    assert made.render_minors == (128, 129, 130)


def test_grants_are_ordered_by_what_they_give() -> None:
    one = Grant(what="cap:A", reason="z", asked_by="z")
    other = Grant(what="cap:B", reason="a", asked_by="a")

    assert sorted([other, one]) == [one, other]
