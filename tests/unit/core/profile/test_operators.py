"""[probe] operators: what may stand there, and what the probe is told."""

import json

import pytest

from rocmrun.core.probing.protocol import probe_input
from rocmrun.core.profile.parse import parse_profile
from rocmrun.errors import ProfileInvalid
from tests.builders import plan


def test_modules_are_named_as_python_names_them() -> None:
    profile = parse_profile({"probe": {"operators": ["flash_attn", "ours.kernels"]}})

    assert profile.probe.operators == ("flash_attn", "ours.kernels")


@pytest.mark.parametrize("name", ["flash-attn", "os; print()", "", "a..b", ".a", "1a", "a b"])
def test_what_is_no_module_is_refused(name: str) -> None:
    """The name of a package on an index is not the name that is imported."""
    with pytest.raises(ProfileInvalid) as caught:
        parse_profile({"probe": {"operators": [name]}})

    assert caught.value.details == (
        f'probe.operators[0]: "{name}" is not the name of a Python module, '
        "as in flash_attn or mypackage.kernels",
    )


def test_hip_alone_has_no_operators() -> None:
    with pytest.raises(ProfileInvalid) as caught:
        parse_profile({"probe": {"runtime": "hip", "operators": ["triton"]}})

    assert 'with runtime "hip" none is' in caught.value.details[0]


def test_the_probe_is_told_each_once() -> None:
    job = plan({"probe": {"operators": ["triton", "ours", "triton"], "level": "full"}})

    settings = json.loads(probe_input(job, b"").partition(b"\n")[0])
    assert settings["operators"] == ["triton", "ours"]


@pytest.mark.parametrize(("level", "noted"), [("quick", True), ("standard", False)])
def test_a_level_that_does_not_try_them_is_noted(level: str, *, noted: bool) -> None:
    job = plan({"probe": {"operators": ["triton"], "level": level}})

    assert any("probe.operators" in note for note in job.notes) == noted
