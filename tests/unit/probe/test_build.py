"""What the probe says of a build of torch: code for each GPU, an override for all, versions of its libraries."""

from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.probe.parts.other_python import torch_elsewhere
from rocmrun.probe.parts.targets import code_for
from tests.unit.probe.runs import TWO_GPUS, found, run_probe

ONE_GPU = TWO_GPUS[:1]


def built(report: ProbeReport, name: str) -> ProbeCheck:
    check = report.find("build", name)
    assert check is not None
    return check


@pytest.fixture(scope="module")
def healthy() -> ProbeReport:
    """One GPU that torch has code for."""
    return run_probe(expect={"gpus": ONE_GPU})


def test_versions_of_the_libraries_are_recorded(healthy: ProbeReport) -> None:
    """MIOpen's number is taken apart: torch gives major, minor and patch in one."""
    evidence = built(healthy, "libraries").evidence

    assert (evidence["miopen"], evidence["rccl"]) == ("3.5.1", "2.22.3")


def test_code_for_every_planned_gpu_passes(healthy: ProbeReport) -> None:
    check = built(healthy, "arch_list")

    assert (check.status, check.evidence["code_for"]) == ("pass", {"gfx942": {"gfx942": "exact"}})


def test_a_gpu_without_code_is_named() -> None:
    """The products decide whether it works; here they do, so it is degraded and no failure."""
    report = run_probe({"archs": ["gfx1100"]}, expect={"gpus": ONE_GPU})

    check = built(report, "arch_list")
    assert check.status == "degraded"
    assert check.reason.startswith("this torch has no code for gfx942: it was built for gfx1100;")
    assert found(report, "matmul_fp32", 0).status == "pass"


def test_no_list_is_not_no_code() -> None:
    """torch lists nothing while it sees no usable GPU: that says nothing of its code."""
    check = built(run_probe({"archs": []}, expect={"gpus": ONE_GPU}), "arch_list")

    assert (check.status, check.evidence["arch_list"]) == ("skipped", [])
    assert "which says nothing" in check.reason


def overridden_run(version: str, *, kernel: str, seen: str, archs: list[str]) -> ProbeReport:
    gpus: list[dict[str, Any]] = [{"index": 0, "gfx": kernel}]
    return run_probe(
        {"gfx": seen, "archs": archs},
        environment={"HSA_OVERRIDE_GFX_VERSION": version},
        expect={"gpus": gpus},
    )


def test_an_override_that_works_is_degraded() -> None:
    """The GPU answers under another name, as it was told to: its identity is not in doubt for that."""
    report = overridden_run("10.3.0", kernel="gfx1032", seen="gfx1030", archs=["gfx1030"])

    check = built(report, "gfx_override")
    assert check.status == "degraded"
    assert check.reason == (
        "HSA_OVERRIDE_GFX_VERSION=10.3.0: GPUs gfx1032 answer as gfx1030, which AMD does not support"
    )
    assert found(report, "identity", 0).status == "pass"
    assert built(report, "arch_list").status == "pass"
    assert built(report, "arch_list").evidence["code_for"] == {"gfx1032": {"gfx1030": "exact"}}


def test_an_override_that_is_not_needed_is_said() -> None:
    """Left over from another card, on a GPU that this torch has code for."""
    report = overridden_run("10.3.0", kernel="gfx942", seen="gfx1030", archs=["gfx942", "gfx1030"])

    assert built(report, "gfx_override").reason.endswith("has code for gfx942: unset it")


def test_an_override_to_what_the_gpu_is_changes_nothing() -> None:
    report = overridden_run("9.4.2", kernel="gfx942", seen="gfx942", archs=["gfx942"])

    assert built(report, "gfx_override").status == "pass"


def test_an_override_that_is_no_version_is_said() -> None:
    report = overridden_run("gfx1030", kernel="gfx942", seen="gfx942", archs=["gfx942"])

    assert "=gfx1030 is not major.minor.step" in built(report, "gfx_override").reason


def test_an_override_does_not_hide_another_gpu() -> None:
    """Only the name that the override gives is accepted in the place of the planned one."""
    report = overridden_run("10.3.0", kernel="gfx1032", seen="gfx1100", archs=["gfx1030"])

    assert found(report, "identity", 0).reason.endswith("gfx gfx1100, not gfx1032")


@pytest.mark.parametrize(
    ("gpu", "listed", "how"),
    [
        ("gfx942", ["gfx90a", "gfx942"], "exact"),
        ("gfx942:sramecc+:xnack-", ["gfx942"], "exact"),
        ("gfx90a:sramecc+:xnack-", ["gfx90a:xnack-"], "exact"),
        ("gfx90a:sramecc+:xnack-", ["gfx90a:xnack+"], "features"),
        ("gfx90a:sramecc+:xnack-", ["gfx90a:xnack+", "gfx90a:xnack-"], "exact"),
        ("gfx90a", ["gfx90a:xnack+"], "exact"),  # the plan knows no features
        ("gfx942", ["gfx9-4-generic"], "generic"),
        ("gfx942:sramecc+:xnack-", ["gfx9-4-generic:xnack+"], "features"),
        ("gfx90a", ["gfx9-generic", "gfx9-4-generic"], "none"),
        ("gfx1103", ["gfx1100"], "none"),  # code for one runs on no other, however alike the names
        ("gfx1103", ["gfx11-generic"], "generic"),
        ("gfx1151", ["gfx11-generic"], "generic"),
        ("gfx1036", ["gfx10-3-generic"], "generic"),
        ("gfx1250", ["gfx12-generic"], "none"),
        ("gfx942", ["gfx94X-dcgpu"], "family"),
        ("gfx1103", ["gfx110X-all"], "family"),
        ("gfx942", [], "unknown"),
    ],
)
def test_what_covers_a_gpu(gpu: str, listed: list[str], how: str) -> None:
    assert code_for(gpu, listed) == how


@pytest.mark.parametrize(
    ("packages", "python"),
    [
        ("opt/venv/lib/python3.12/site-packages", "opt/venv/bin/python3.12"),
        ("opt/conda/envs/py_3.10/lib/python3.10/site-packages", "opt/conda/envs/py_3.10/bin/python3"),
        ("usr/local/lib/python3.11/dist-packages", "usr/bin/python3.11"),
        ("app/.venv/lib/python3.13/site-packages", ""),
    ],
)  # fmt: skip
def test_a_torch_of_another_python_is_found(tmp_path: Path, packages: str, python: str) -> None:
    """With the interpreter that looks there, where there is one."""
    (tmp_path / packages / "torch").mkdir(parents=True)
    (tmp_path / packages / "torch" / "__init__.py").touch()
    if python:
        (tmp_path / python).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / python).touch(mode=0o755)

    told = torch_elsewhere(tmp_path)

    assert told.pop("torch_elsewhere") == str(tmp_path / packages / "torch")
    assert told == ({"python_elsewhere": str(tmp_path / python)} if python else {})


def test_an_image_without_any_torch_names_none(tmp_path: Path) -> None:
    """Nor is a directory of that name a torch."""
    (tmp_path / "opt/venv/lib/python3.12/site-packages/torch").mkdir(parents=True)

    assert torch_elsewhere(tmp_path) == {}
