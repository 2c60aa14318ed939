"""What an image claims to hold, and where each claim was read."""

from typing import Any

import pytest

from rocmrun.core.claims import claims, claims_of_config
from rocmrun.core.lock import LockedFacts

TITLE, VERSION = "org.opencontainers.image.title", "org.opencontainers.image.version"


def found(**sources: Any) -> LockedFacts:
    given = {"env": {}, "labels": {}, "history": (), "user": "", "tag": None, **sources}
    facts = claims(**given)
    assert facts is not None
    return facts


@pytest.mark.parametrize(
    ("tag", "rocm", "python", "torch"),
    [
        ("rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.9.1", "7.2.4", "3.12", "2.9.1"),
        ("rocm10.0_ubuntu26.04_py3.14_pytorch_release_2.13.0", "10.0", "3.14", "2.13.0"),
        ("rocm6.2.3_ubuntu20.04_py3.9_pytorch_2.1.2", "6.2.3", "3.9", "2.1.2"),
        ("rocm6.4.1_vllm_0.9.1_20250702", "6.4.1", None, None),
        ("v0.28.0", None, None, None),
    ],
)
def test_tags_are_the_last_resort(
    tag: str, rocm: str | None, python: str | None, torch: str | None
) -> None:
    """The grammar of rocm/pytorch's tags; each claim is marked as one of the tag."""
    facts = claims(env={}, labels={}, history=(), user="", tag=tag)

    values = (facts.rocm, facts.python, facts.torch) if facts else (None, None, None)
    assert (rocm, python, torch) == values
    assert set(facts.sources.values() if facts else ()) <= {"tag"}


def test_nothing_claimed_is_none() -> None:
    """An absent fact is not an empty one."""
    assert claims(env={"PATH": "/bin"}, labels={}, history=(), user="", tag="latest") is None


def test_the_best_source_wins() -> None:
    """Label, then environment, then history, then tag."""
    env, history = {"ROCM_VERSION": "7.1"}, ["ARG ROCM_VERSION=7.0"]
    labels, tag = {TITLE: "ROCm runtime", VERSION: "7.2"}, "rocm6.9_x"

    assert (found(labels=labels, env=env, history=history, tag=tag).rocm) == "7.2"
    assert found(env=env, history=history, tag=tag).sources == {"rocm": "env:ROCM_VERSION"}
    assert found(history=history, tag=tag).sources == {"rocm": "history:ROCM_VERSION"}
    assert found(tag=tag).sources == {"rocm": "tag"}
    assert found(labels=labels).sources == {"rocm": f"label:{VERSION}"}


def test_ubuntus_version_label_is_not_rocms() -> None:
    """Images inherit their base's labels."""
    labels = {TITLE: "ubuntu", VERSION: "24.04"}

    assert claims(env={}, labels=labels, history=(), user="", tag=None) is None


@pytest.mark.parametrize("separator", [";", ",", " ", "; "])
def test_targets_are_split_sorted_and_filtered(separator: str) -> None:
    """People separate them in every way; what is no target is left out."""
    text = separator.join(["gfx1100", "gfx90a", "gfx942:sramecc+:xnack-", "native", "gfx90a"])

    assert found(env={"PYTORCH_ROCM_ARCH": text}).gfx == (
        "gfx90a",
        "gfx942:sramecc+:xnack-",
        "gfx1100",
    )


@pytest.mark.parametrize(
    ("step", "rocm"),
    [
        ("ARG ROCM_VERSION=7.0.2", "7.0.2"),
        ("RUN |2 ROCM_VERSION=7.0 AMDGPU_VERSION=7.0 /bin/sh -c apt # buildkit", "7.0"),
        ("|1 ROCM_VERSION=5.3 /bin/sh -c apt", "5.3"),
        ('ARG ROCM_VERSION="6.4"', "6.4"),
    ],
)
def test_build_arguments_in_the_history(step: str, rocm: str) -> None:
    """As both builders write them."""
    assert rocm == found(history=[step]).rocm


def test_the_last_build_argument_counts() -> None:
    """Later steps build on earlier ones."""
    assert found(history=["ARG ROCM_VERSION=6.0", "ARG ROCM_VERSION=6.1"]).rocm == "6.1"


@pytest.mark.parametrize("value", ["", "latest", "7.0\n8", "\x1b[31m7", "7" * 200, "$VERSION"])
def test_what_is_no_version_is_no_fact(value: str) -> None:
    """Strangers build images; the next source is asked instead."""
    assert found(env={"ROCM_VERSION": value}, tag="rocm6.0_x").rocm == "6.0"


def test_a_registrys_config() -> None:
    """All of it in one blob."""
    config = {
        "config": {"Env": ["ROCM_VERSION=7.1.0", "X", 5], "User": "1000:1000", "Labels": None},
        "history": [{"created_by": "ARG PYTHON_VERSION=3.12"}, {}, "odd"],
    }

    facts = claims_of_config(config, "x_pytorch_2.9")

    assert facts == LockedFacts(
        user="1000:1000",
        rocm="7.1.0",
        python="3.12",
        torch="2.9",
        sources={
            "user": "config",
            "rocm": "env:ROCM_VERSION",
            "python": "history:PYTHON_VERSION",
            "torch": "tag",
        },
    )


@pytest.mark.parametrize("config", [{}, {"config": None}, {"config": {"User": 5, "Env": "x"}}])
def test_an_empty_or_odd_config_claims_nothing(config: dict[str, Any]) -> None:
    """Garbage is no crash."""
    assert claims_of_config(config, None) is None
