"""Whole reports that real containers gave, read as rocmrun reads them: parser, verdict, table, JUnit, causes.

What made each is in recorded/README.md.
"""

import io
import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from rich.console import Console

from rocmrun.console.probe import print_report
from rocmrun.core.diagnosis.from_report import report_text
from rocmrun.core.report.junit import junit_xml
from rocmrun.core.report.model import ProbeReport
from rocmrun.core.report.parser import ReportParser
from rocmrun.core.run_record import RunRecord
from rocmrun.usecases.doctor import causes_in
from tests.builders import ENGINE, host, plan

RECORDED = Path(__file__).parent / "recorded"
CPU = {
    "quick": {"environment", "isolation", "build", "device"},
    "standard": {"environment", "isolation", "build", "device", "collectives", "operators"},
    "full": {"environment", "isolation", "build", "device", "collectives", "operators", "model"},
}
EVERY = sorted(path.name for path in RECORDED.glob("*.jsonl"))


def read(name: str) -> ProbeReport:
    """Return a recorded report; where it failed the process ended with 1."""
    text = (RECORDED / name).read_bytes()
    parser = ReportParser()
    parser.feed(text)
    passed = json.loads(text.splitlines()[-1])["status"] != "fail"
    return parser.finish(exit_code=0 if passed else 1)


def record(report: ProbeReport) -> RunRecord:
    begun = RunRecord.begin(plan(), host(), ENGINE, started_at="2026-01-01T00:00:00+00:00")
    return begun.with_probe(report)


def reasons(report: ProbeReport, group: str) -> dict[str, str]:
    """Return why checks of a group did not pass."""
    return {
        check.name: check.reason
        for check in report.checks
        if check.group == group and check.status in {"fail", "degraded"}
    }


@pytest.mark.parametrize("level", CPU)
def test_real_torch_on_a_processor_passes_each_level(level: str) -> None:
    """With all stages of the level, nothing degraded, and no line that is none of the report."""
    report = read(f"cpu-torch-2.13.0-{level}.jsonl")

    assert (report.status, report.level, report.noise_lines) == ("pass", level, 0)
    assert {check.group for check in report.checks} == CPU[level]
    assert {check.status for check in report.checks} <= {"pass", "skipped"}
    assert all(check.reason for check in report.checks if check.status == "skipped")
    assert report.version_of("torch") == "2.13.0+cpu"


def test_bounds_are_kept_with_the_numbers_that_they_judge() -> None:
    """Each product within its bound and not exactly right, at every size that a level takes."""
    for level in CPU:
        report = read(f"cpu-torch-2.13.0-{level}.jsonl")
        for precision in ("fp32", "fp16", "bf16"):
            check = report.find("device", f"matmul_{precision}", "cpu")
            assert check is not None
            assert 0 < check.evidence["worst_share_of_bound"] < 1
            assert check.threshold_source


def test_a_promise_of_rocm_that_torch_does_not_keep() -> None:
    """A plan with a GPU, Debian's tools and a torch for processors: each says its own, and the first cause is named."""
    report = read("rocm-without-a-gpu.jsonl")

    assert report.status == "fail"
    environment, tools = reasons(report, "environment"), reasons(report, "tools")
    assert environment["kfd_topology"].startswith("KFD shows no topology here")
    assert environment["open:/dev/kfd"].startswith("cannot open /dev/kfd: ENOENT, no such node")
    assert "ROCk module is NOT loaded" in tools["rocminfo"]
    assert "Driver not initialized (amdgpu not found in modules)" in tools["rocm_smi"]
    assert reasons(report, "build")["accelerator"] == (
        "this is a CPU build of torch (2.13.0+cpu), rocm was promised"
    )
    skipped = report.find("hip", "runtime")
    assert skipped is not None
    assert (skipped.status, skipped.reason) == ("skipped", "there is no libamdhip64.so here")
    assert report.find("device", "device", 0) is not None
    causes = [cause.kind.slug for cause in causes_in(report_text(report))]
    assert causes[0] == "driver-not-loaded"
    assert {"not-rocm-build", "python-torch-wheel-overwrote-rocm"} & set(causes)


def test_current_tools_without_a_gpu_degrade_with_their_own_words() -> None:
    """ROCm 10's amd-smi and its Python module, asked as the job's user: what that means for servers is said."""
    report = read("rocm-tools-without-a-gpu.jsonl")

    tools = reasons(report, "tools")
    assert {name: reason.partition("; it is no proof")[0] for name, reason in tools.items()} == {
        "rocminfo": "rocminfo shows no GPU: exit code 1: ROCk module is NOT loaded, possibly no GPU devices",
        "rocm_smi": "rocm-smi shows no GPU: ERROR:root:Driver not initialized (amdgpu not found in modules)",
        "amd_smi": (
            "amd-smi shows no GPU: exit code 255: ERROR:root:Drivers not loaded (amdgpu, amd_hsmp, ionic, "
            "bnxt_en drivers not found in modules)"
        ),
        "amdsmi": (
            "amdsmi does not work: AmdSmiLibraryException: Error code: 34 | "
            "AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded. vLLM takes a machine for ROCm only when "
            "amdsmi initialises and lists a GPU: it will find no device here"
        ),
    }
    assert {check.group for check in report.failures} == {"environment", "build"}
    assert reasons(report, "build")["torch"].endswith("(Python 3.14.8) has no torch")
    user = report.find("environment", "user")
    assert user is not None
    assert user.evidence["uid"] == 65532


def test_real_extensions_say_why_they_do_not_work() -> None:
    """Builds for CUDA on a torch for processors: what an import says is not always why it failed."""
    report = read("extensions-torch-2.13.0-cpu.jsonl")
    found = {check.name: check for check in report.checks}

    assert found["bitsandbytes"].evidence["called"] == "functional.quantize_blockwise"
    assert found["bitsandbytes"].evidence["linked"] == "none"
    assert found["triton"].evidence["linked"] == "none"
    assert (found["xformers"].status, found["xformers"].evidence["linked"]) == ("pass", "cuda")
    assert (found["vllm"].status, found["vllm"].evidence["linked"]) == ("pass", "cuda")
    wrong = reasons(report, "operators")
    assert wrong["torchvision"] == (
        "RuntimeError: operator torchvision::nms does not exist; its libraries are linked against "
        "CUDA, which is not here"
    )
    assert "(because of OSError: lib" in wrong["torchaudio"]
    assert wrong["aiter"].startswith("RuntimeError: ROCm version file not found")
    assert wrong["flashinfer"] == "ModuleNotFoundError: No module named 'tvm_ffi'"


def test_real_gpus_pass_full_alone_and_together() -> None:
    """Two of one model: each identified, right in every format, fast, and as fast as the other."""
    report = read("cuda-torch-2.11.0-two-gpus-full.jsonl")

    assert (report.status, report.level, report.noise_lines) == ("pass", "full", 0)
    assert {check.status for check in report.checks} == {"pass"}
    addresses = []
    for device in (0, 1):
        for precision in ("fp32", "fp64", "fp16", "bf16", "fp8"):
            product = report.find("device", f"matmul_{precision}", device)
            assert product is not None
            assert 0 <= product.evidence["worst_share_of_bound"] < 1
        for name in ("memory_pattern", "convolution", "reduction", "attention", "compile"):
            assert report.find("device", name, device) is not None
        identity = report.find("device", "identity", device)
        assert identity is not None
        addresses.append(identity.evidence["pci_address"])
        siblings = report.find("device", "siblings", device)
        assert siblings is not None
        assert all(0.8 < share < 1.25 for share in siblings.evidence["share_of_others_median"].values())  # fmt: skip
    assert len(set(addresses)) == 2
    for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"):
        together = report.find("collectives", name)
        assert together is not None
        assert together.evidence["sizes"][-1]["busbw_gb_per_s"] > 0


def test_one_real_gpu_is_proved_without_rights() -> None:
    """At quick: no capability, nothing of the host reached, and nothing to do together."""
    report = read("cuda-torch-2.11.0-one-gpu-quick.jsonl")

    assert (report.status, report.failures) == ("pass", ())
    capabilities = report.find("environment", "capabilities")
    assert capabilities is not None
    assert capabilities.evidence["CapBnd"] == "0" * 16
    isolation = [check for check in report.checks if check.group == "isolation"]
    assert (len(isolation), {check.status for check in isolation}) == (13, {"pass"})
    together = report.find("collectives", "all_reduce")
    assert together is not None
    assert together.reason == "there is only one device"


def test_extensions_were_called_on_a_real_gpu() -> None:
    """What computes, what is built for another torch, and what is not there are told apart."""
    report = read("extensions-torch-2.11.0-cuda.jsonl")
    found = {check.name: check for check in report.checks}

    assert found["triton"].evidence["wrong"] == 0
    assert found["bitsandbytes"].evidence["linked"] == "cuda"
    assert found["bitsandbytes"].evidence["largest_error"] < (found["bitsandbytes"].threshold or 0)
    assert found["torchvision"].evidence["kept"] == [0, 2]
    wrong = reasons(report, "operators")
    assert wrong["flash_attn"] == "there is no module flash_attn here"
    assert "xFormers wasn't build with CUDA support" in wrong["xformers"]
    assert set(wrong) == {"flash_attn", "xformers"}


@pytest.mark.parametrize("name", EVERY)
def test_a_recorded_report_becomes_a_table_and_junit(name: str) -> None:
    """Every check has a case and every failure its words; the table shows what failed with its reason."""
    report = read(name)
    shown = io.StringIO()
    print_report(Console(file=shown, width=400, no_color=True, markup=False), record(report))
    cases = list(Xml.fromstring(junit_xml(record(report))).iter("testcase"))

    assert len(cases) == len(report.checks) + 1
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert [check.name for check in report.failures] == failed[: len(report.failures)]
    for check in report.failures:
        assert check.reason.split(":")[0] in shown.getvalue()
    for check in report.checks:
        assert check.name in shown.getvalue()


def test_every_recording_says_what_made_it() -> None:
    told = (RECORDED / "README.md").read_text(encoding="utf-8")

    assert [
        name for name in sorted(p.name for p in RECORDED.iterdir()) if f"`{name}`" not in told
    ] == ["README.md"]
