"""What an image says of itself: claims with their sources, and what of it changes what GPUs do."""

from dataclasses import replace

import pytest

from rocmrun.core.image_report import (
    environment_lints,
    image_claims,
    image_report,
    target_lints,
)
from rocmrun.core.lock import LockedFacts
from tests.builders import IMAGE, gpu, host, plan

REF = "docker.io/rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.9.1"
BUILT = LockedFacts(gfx=("gfx90a", "gfx942:sramecc+:xnack-"), sources={"gfx": "env:PYTORCH_ROCM_ARCH"})  # fmt: skip


def test_claims_come_with_where_they_were_read() -> None:
    image = replace(IMAGE, env=(("ROCM_VERSION", "7.2.4"), ("PYTORCH_ROCM_ARCH", "gfx942")), user="app")  # fmt: skip

    report = image_report(image, image_claims(image, None, REF))

    assert [str(claim) for claim in report.declared] == [
        "ROCm 7.2.4 (env:ROCM_VERSION)",
        "torch 2.9.1 (tag)",
        "Python 3.12 (tag)",
        "targets gfx942 (env:PYTORCH_ROCM_ARCH)",
        "user app (config)",
    ]


def test_the_lock_knows_more_than_the_local_image() -> None:
    """It was written from the registry's config, with the history in it."""
    recorded = LockedFacts(rocm="7.2.0", sources={"rocm": "history:ROCM_VERSION"})

    report = image_report(None, image_claims(None, recorded, REF))

    assert [str(claim) for claim in report.declared][:2] == ["ROCm 7.2.0 (history:ROCM_VERSION)", "torch 2.9.1 (tag)"]  # fmt: skip
    assert not report.known


def test_an_image_that_says_nothing_declares_nothing() -> None:
    claimed = image_claims(IMAGE, None, "example.com/x")

    assert image_report(IMAGE, claimed).declared == ()
    assert image_report(IMAGE, None).declared == ()


def test_its_own_settings_are_shown_where_it_is_here() -> None:
    image = replace(IMAGE, user="1000:1000", entrypoint=("/entry",), volumes=("/data",))
    shown = image_report(image, None).to_json()

    assert (shown["known"], shown["user"], shown["entrypoint"], shown["volumes"]) == (
        True, "1000:1000", ("/entry",), ("/data",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("HSA_OVERRIDE_GFX_VERSION", "11.0.0", "every GPU is taken for that target"),
        ("HSA_ENABLE_IPC_MODE_LEGACY", "1", "hipIpcGetMemHandle fails"),
        ("NCCL_P2P_DISABLE", "1", "RCCL takes it over its own choice"),
    ],
)
def test_a_baked_variable_that_changes_what_gpus_do_is_named(
    name: str, value: str, why: str
) -> None:
    (lint,) = environment_lints({name: value}, {})

    assert lint.startswith(f'the image bakes {name}="{value}": {why}')
    assert plan(image_facts=replace(IMAGE, env=((name, value),))).notes == (lint,)


@pytest.mark.parametrize(
    ("name", "value"),
    [("HSA_ENABLE_IPC_MODE_LEGACY", "0"), ("NCCL_DEBUG", "INFO"), ("NCCL_VERSION", "2"), ("PATH", "/bin")],
)  # fmt: skip
def test_a_harmless_variable_is_not(name: str, value: str) -> None:
    assert environment_lints({name: value}, {}) == ()


def test_what_the_plan_sets_itself_counts_no_more() -> None:
    """The baseline's NCCL_SOCKET_IFNAME, and a profile that says what it means."""
    baked = replace(IMAGE, env=(("HSA_OVERRIDE_GFX_VERSION", "11.0.0"), ("NCCL_SOCKET_IFNAME", "eth0")))  # fmt: skip
    meant = {"container": {"env": {"HSA_OVERRIDE_GFX_VERSION": "9.4.2"}}}

    assert plan(meant, image_facts=baked).notes == ()


def test_an_image_for_another_accelerator_is_not_read_for_rocm() -> None:
    cpu = {"gpus": {"select": ["none"]}, "accelerator": "cpu"}

    assert plan(cpu, image_facts=replace(IMAGE, env=(("NCCL_P2P_DISABLE", "1"),))).notes == ()


def test_targets_that_lack_a_selected_gpu_are_named() -> None:
    """As the image's claim; a feature after the colon does not make it another target."""
    mixed = host([gpu(0), gpu(1, gfx="gfx1100"), gpu(2, gfx=None)])

    assert plan(claims=BUILT).notes == ()
    (note,) = plan(claims=BUILT, host=mixed).notes
    assert note == (
        "the image says its kernels are built for gfx90a, gfx942:sramecc+:xnack- (env:PYTORCH_ROCM_ARCH): "
        "those for gfx1100 may be missing"
    )
    assert target_lints(LockedFacts(rocm="7"), mixed.gpus) == target_lints(None, mixed.gpus) == ()
