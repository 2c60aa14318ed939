"""Extensions: each in a process of its own, judged by what it is linked to, by its import and by one call.

The packages are small ones of our own with the known names; the libraries in them are ELF files that
need what real ones need.
"""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.probe.parts.by_hand import parse_arguments
from rocmrun.probe.parts.checks import CheckFailed, Reporter
from rocmrun.probe.parts.operator_calls import CALLS
from rocmrun.probe.parts.operators import (
    KNOWN_OPERATORS,
    ON_ROCM,
    judge_linkage,
    judged_operator,
)
from rocmrun.probe.parts.settings import complete_settings, stages_of
from tests.elf_files import shared_library
from tests.unit.probe.runs import STUB, TIMEOUTS, run_probe

HIP, CUDA = ("libamdhip64.so.6", "libc10_hip.so"), ("libcudart.so.12", "libc10_cuda.so")


def package(folder: Path, name: str, code: str = "", **libraries: tuple[str, ...]) -> None:
    """Write a package; each library by the names that it needs."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(code)
    for library, needed in libraries.items():
        (folder / name / f"{library}.so").write_bytes(shared_library(*needed))


def tried(folder: Path, *named: str, build: str = "rocm", **settings: Any) -> ProbeReport:
    """Probe one device at standard with the packages in *folder*."""
    return run_probe(
        {"build": build},
        environment={"PYTHONPATH": f"{STUB}:{folder}"},
        accelerator=build,
        level="standard",
        operators=list(named),
        **settings,
    )


def operator(report: ProbeReport, name: str) -> ProbeCheck:
    check = report.find("operators", name)
    assert check is not None, [c.label for c in report.checks]
    return check


def result(report: ProbeReport, name: str) -> tuple[str, str]:
    check = operator(report, name)
    return check.status, check.reason


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ProbeReport:
    """A ROCm image with all kinds of packages, of which the profile names some."""
    folder = tmp_path_factory.mktemp("packages")
    package(folder, "flash_attn", "raise ImportError('libc10_cuda.so: no such file')", _C=CUDA)
    package(folder, "xformers", "raise RuntimeError('half installed')", _C=HIP)
    package(folder, "aiter", "__version__ = '0.1.2'", jit=HIP)
    package(folder, "bitsandbytes", "raise OSError('no library for HIP 6.3')", rocm=HIP, cuda=CUDA)
    package(folder, "torchaudio", f"import os; os.kill(os.getpid(), {signal.SIGSEGV:d})")
    package(folder, "ours", "__version__ = '7'", kernels=HIP)
    package(folder, "theirs", "", kernels=CUDA)
    package(folder, "hangs", "import time; time.sleep(1000)")
    package(folder, "crashes", "import os; print('the last words', flush=True); os.abort()")
    package(folder, "parent", "")
    (folder / "parent" / "kernels.py").write_text("VALUE = 1")
    named = ("ours", "theirs", "absent", "hangs", "crashes", "parent.kernels", "parent.gone")
    return tried(folder, *named, timeouts={**TIMEOUTS, "operators": 5})


def test_known_ones_are_found_without_an_import(many: ProbeReport) -> None:
    found = operator(many, "installed").evidence["found"]

    assert list(found) == ["flash_attn", "aiter", "bitsandbytes", "xformers", "torchaudio"]


def test_one_that_works_says_what_it_is(many: ProbeReport) -> None:
    ours, other = operator(many, "ours"), operator(many, "aiter")

    assert (ours.status, ours.evidence["linked"], ours.evidence["version"]) == ("pass", "rocm", "7")
    assert ours.evidence["named"] is True
    assert "no call that is known to be cheap" in ours.evidence["not_called"]
    assert (other.status, other.evidence["named"]) == ("pass", False)


def test_a_cuda_build_is_a_failure_where_it_was_named(many: ProbeReport) -> None:
    """And degraded where the image merely has it; each says what helps on ROCm, with a source."""
    status, reason = result(many, "theirs")
    assert status == "fail"
    assert reason.startswith("it is linked against CUDA, this is rocm: ")
    assert "rebuild it for this torch" in reason

    status, reason = result(many, "flash_attn")
    assert status == "degraded"
    assert "composable_kernel" in reason
    assert "github.com/Dao-AILab/flash-attention" in reason


def test_one_that_is_missing_is_a_failure_where_it_was_named(many: ProbeReport) -> None:
    assert result(many, "absent") == ("fail", "there is no module absent here")
    assert result(many, "parent.kernels")[0] == "pass"
    assert result(many, "parent.gone") == (
        "fail",
        "ModuleNotFoundError: No module named 'parent.gone'",
    )


def test_one_that_does_not_import_keeps_its_words(many: ProbeReport) -> None:
    assert result(many, "xformers")[0] == "degraded"
    assert result(many, "xformers")[1].startswith("RuntimeError: half installed; take the wheel")
    assert any(
        "half installed" in line for line in operator(many, "xformers").evidence["traceback"]
    )


def test_libraries_for_both_are_judged_by_the_import(many: ProbeReport) -> None:
    """bitsandbytes ships one for each runtime."""
    check = operator(many, "bitsandbytes")

    assert check.evidence["linked"] == "both"
    assert check.reason.startswith("OSError: no library for HIP 6.3; it needs libbitsandbytes_rocm")


def test_a_crash_is_that_operators_result(many: ProbeReport) -> None:
    assert result(many, "torchaudio")[0] == "degraded"
    assert "killed by SIGSEGV" in result(many, "torchaudio")[1]
    assert result(many, "crashes") == ("fail", "the process was killed by SIGABRT")
    assert "the last words" in operator(many, "crashes").evidence["last_lines"]
    assert result(many, "hangs") == ("fail", "not finished after 5 s")


@pytest.mark.parametrize(
    ("linked", "accelerator", "wrong"),
    [
        ({"cuda": ["a.so"]}, "rocm", True),
        ({"rocm": ["a.so"]}, "cuda", True),
        ({"rocm": ["a.so"], "none": ["b.so"]}, "rocm", False),
        ({"rocm": ["a.so"], "cuda": ["b.so"]}, "rocm", False),
        ({"none": ["b.so"]}, "rocm", False),
        ({"cuda": ["a.so"]}, "cpu", False),
    ],
)
def test_what_is_linked_to_the_other_runtime_alone_is_wrong(
    linked: dict[str, list[str]], accelerator: str, *, wrong: bool
) -> None:
    """A package that brings both, or none, is left to its import."""
    check = Reporter(os.open(os.devnull, os.O_WRONLY)).check("operators", "any")
    if not wrong:
        judge_linkage(check, linked, accelerator)
        return
    (runtime,) = linked
    with pytest.raises(CheckFailed) as caught:
        judge_linkage(check, linked, accelerator)
    assert str(caught.value) == (
        f"it is linked against {runtime.upper()}, this is {accelerator}: a.so"
    )
    assert check.evidence["linked"] == runtime


def test_quick_tries_none() -> None:
    for level, tried_at in (("quick", False), ("standard", True), ("full", True)):
        stages = stages_of(complete_settings({"level": level, "accelerator": "cpu"}))
        assert ("operators" in stages) == tried_at


def test_by_hand_an_operator_is_an_option() -> None:
    assert parse_arguments(["--operator", "ours", "--operator", "triton"])["operators"] == [
        "ours",
        "triton",
    ]


def test_the_outermost_package_decides_what_is_known() -> None:
    """Advice and calls belong to a package; a module in it is imported alone."""
    check = {"name": "flash_attn.ops", "status": "fail", "reason": "gone", "evidence": {}}

    judged = judged_operator(check, "rocm", named=False)
    assert judged["status"] == "degraded"
    assert judged["reason"].startswith("gone; build flash-attention with ROCm")
    assert judged_operator({**check, "status": "pass"}, "rocm", named=True)["status"] == "pass"
    assert judged_operator(check, "cuda", named=True)["reason"] == "gone"


def test_every_advice_has_a_source() -> None:
    assert {source.partition("//")[0] for _, source in ON_ROCM.values()} == {"https:"}
    assert set(ON_ROCM) <= set(KNOWN_OPERATORS)
    assert set(CALLS) <= set(KNOWN_OPERATORS)
