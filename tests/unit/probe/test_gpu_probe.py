"""The real script as a real process; a stub torch shows the faults that no machine shows on demand."""

import ast
import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.probing.protocol import BOOTSTRAP, bootstrap_command
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.probe.parts.machine import is_visibility
from rocmrun.probe.parts.processes import device_environment
from tests.unit.probe.runs import (
    SCRIPT,
    TIMEOUTS,
    TWO_GPUS,
    clean_environment,
    finished,
    found,
    gpus,
    run_probe,
)

# One GPU a fault: the fault, the check that finds it, and what it says.
FAULTS = [
    ("SIGABRT", "matmul_fp32", "the process was killed by SIGABRT (in matmul_fp32)"),
    ("SIGSEGV", "matmul_fp32", "the process was killed by SIGSEGV (in matmul_fp32)"),
    ("SIGKILL", "matmul_fp32", "the process was killed by SIGKILL (in matmul_fp32)"),
    ("exit0", "matmul_fp32", "the process ended with exit code 0 and no result (in matmul_fp32)"),
    ("nan", "matmul_fp32", "1 of 64 results are not finite"),
    ("wrong", "matmul_fp16", "1 of 64 results are wrong"),
    ("ulp", "repeat_fp32", "1 of 64 results differ between two runs on the same input"),
    ("memory", "allocate", "1 of 256 bytes do not hold what was written"),
    ("error", "matmul_fp32", "RuntimeError: HIP error: invalid device function"),
    ("oom", "allocate", "OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 GiB."),
    ("fallback", "matmul_fp32", "the product is on cpu, not on cuda:0: it was computed elsewhere"),
    ("nowhere", "cpu_fallback", "at most 0 bytes of the device were ever in use, three matrices of fp32 need 768"),
]  # fmt: skip


def names(report: ProbeReport, group: str, device: int | str | None = None) -> list[str]:
    return [c.name for c in report.checks if c.group == group and c.device == device]


def assert_only_device_1_failed(report: ProbeReport, check: str) -> ProbeCheck:
    """The fault is device 1's result, under the name of what it was doing; device 0 finished everything."""
    failed = [c for c in report.failures if c.group != "environment"]
    assert [(1, check)] == [(c.device, c.name) for c in failed]
    assert found(report, "repeat_bf16", 0).status == "pass"
    collective = report.find("collectives", "all_reduce")
    assert collective is not None
    assert (collective.status, collective.reason) == ("skipped", "device 1 failed on its own")
    return failed[0]


@pytest.fixture(scope="module")
def healthy() -> ProbeReport:
    """Two healthy GPUs; only KFD is missing on the machine that runs the tests."""
    return run_probe({"devices": 2}, expect={"gpus": TWO_GPUS})


def test_two_healthy_gpus_pass_alone_and_together(healthy: ProbeReport) -> None:
    """Every device is identified, multiplied on in three formats, repeated, and joined by one all_reduce."""
    expected = ["identity", "allocate"]
    for name in ("fp32", "fp16", "bf16"):
        expected += [f"matmul_{name}", f"repeat_{name}", f"speed_{name}"]
    for index in (0, 1):
        assert names(healthy, "device", index) == [*expected, "peak_memory", "cpu_fallback"]
    build = ["torch", "accelerator", "libraries", "arch_list", "device_count"]
    assert names(healthy, "build") == build
    assert [c for c in healthy.failures if c.group != "environment"] == []
    collective = healthy.find("collectives", "all_reduce")
    assert collective is not None
    assert (
        collective.status,
        collective.evidence["world"],
        collective.evidence["backend"],
    ) == ("pass", 2, "nccl")


def test_each_child_sees_its_device_alone(healthy: ProbeReport) -> None:
    """The identities differ because the visibility variables did."""
    seen = [found(healthy, "identity", index).evidence for index in (0, 1)]

    assert [evidence["visible"] for evidence in seen] == [1, 1]
    assert [evidence["pci_address"] for evidence in seen] == ["0000:63:00", "0000:64:00"]
    assert [e["unique_id"] for e in seen] == ["f330dc0000000063", "f330dc0000000064"]


def test_a_numeric_check_says_where_its_threshold_comes_from(healthy: ProbeReport) -> None:
    check = found(healthy, "matmul_fp16", 0)

    assert check.threshold == 1.0
    assert "Higham and Mary" in check.threshold_source
    assert 0 < check.evidence["worst_share_of_bound"] < 1


def test_the_start_names_the_stages_and_nothing_more(healthy: ProbeReport) -> None:
    assert healthy.stages == ("environment", "isolation", "build", "device", "collectives")
    assert (healthy.level, healthy.accelerator) == ("quick", "rocm")


@pytest.fixture(scope="module")
def faulty() -> ProbeReport:
    """One healthy GPU, and one for each fault: all in one run."""
    faults = {str(index): fault for index, (fault, _, _) in enumerate(FAULTS, 1)}
    count = len(FAULTS) + 1
    return run_probe({"devices": count, "faults": faults}, expect={"gpus": gpus(count)})


@pytest.mark.parametrize(
    ("device", "check", "reason"), [(index, *fault[1:]) for index, fault in enumerate(FAULTS, 1)]
)
def test_a_fault_is_its_devices_result(
    faulty: ProbeReport, device: int, check: str, reason: str
) -> None:
    """Under the name of what it was doing, and the first that failed there."""
    failed = [c for c in faulty.failures if (c.group, c.device) == ("device", device)]

    assert failed[0].name == check
    assert failed[0].reason.startswith(reason)


def test_the_other_gpus_finish_and_do_not_work_together(faulty: ProbeReport) -> None:
    """The healthy one passes everything; a wrong check does not end its device's stage, only a death does."""
    assert [c for c in faulty.failures if c.device == 0] == []
    assert found(faulty, "repeat_bf16", 0).status == "pass"
    deaths = {index for index, fault in enumerate(FAULTS, 1) if "the process" in fault[2]}
    ended = {d for d in faulty.devices if faulty.find("device", "peak_memory", d) is None}
    assert ended == deaths
    collective = faulty.find("collectives", "all_reduce")
    assert collective is not None
    assert collective.status == "skipped"
    assert collective.reason == (
        f"device {', '.join(str(index + 1) for index in range(len(FAULTS)))} failed on its own"
    )


def test_the_last_words_of_a_child_are_kept(faulty: ProbeReport) -> None:
    for index, (fault, _, _) in enumerate(FAULTS, 1):
        if fault.startswith("SIG"):
            words = found(faulty, "matmul_fp32", index).evidence["last_lines"]
            assert "Memory access fault by GPU node-1" in words


def test_an_error_of_the_runtime_keeps_its_traceback(faulty: ProbeReport) -> None:
    """With the lines of the probe itself, which the child was not given as a file to compile."""
    (device,) = (index for index, fault in enumerate(FAULTS, 1) if fault[0] == "error")
    traceback = found(faulty, "matmul_fp32", device).evidence["traceback"]

    assert "    return lambda: torch.matmul(left, right)" in traceback


def test_a_child_that_hangs_ends_at_its_timeout() -> None:
    """The kept lines say where it hung, because the child writes its own stack before it ends."""
    report = run_probe(
        {"devices": 2, "fault": "hang", "device": 1},
        expect={"gpus": TWO_GPUS},
        timeouts={**TIMEOUTS, "device": 2},
    )

    failed = assert_only_device_1_failed(report, "matmul_fp32")
    assert failed.reason == "not finished after 2 s (in matmul_fp32)"
    assert 2 <= failed.seconds < 10
    assert any("break_down" in line for line in failed.evidence["last_lines"])


def test_a_copy_that_changes_is_found_above_quick() -> None:
    report = run_probe({"fault": "copy"}, level="standard")

    assert (
        found(report, "copy", 0).reason
    ) == "1 of 64 values changed on the way to the device and back"


@pytest.mark.parametrize(("count", "planned"), [(1, 2), (3, 2)])
def test_a_device_count_that_differs_from_the_plan_fails(count: int, planned: int) -> None:
    """One too few is a GPU that cannot work, one too many is a right that nobody granted."""
    report = run_probe({"devices": count}, expect={"gpus": TWO_GPUS})

    check = report.find("build", "device_count")
    assert check is not None
    assert ("fail", f"{count} devices are visible, {planned} were passed in") == (
        check.status,
        check.reason,
    )


def test_no_device_is_never_a_pass() -> None:
    """The reason names the variable that hides the devices."""
    report = run_probe({"devices": 2}, environment={"HIP_VISIBLE_DEVICES": ""})

    check = report.find("build", "device_count")
    assert check is not None
    assert (
        check.reason
    ) == "no device is visible: torch.cuda.device_count() is 0 (HIP_VISIBLE_DEVICES='')"
    assert report.status == "fail"
    assert names(report, "device", 0) == []


def test_torch_and_driver_that_count_differently_fail() -> None:
    """torch may count through SMI, which knows nothing of what the runtime can reach."""
    report = run_probe({"devices": 2, "count": 1})

    check = report.find("build", "device_count")
    assert check is not None
    assert check.reason == "torch counts 1 devices, the driver 2"


@pytest.mark.parametrize(
    ("build", "accelerator", "found_as"),
    [("cpu", "rocm", "CPU"), ("cuda", "rocm", "CUDA"), ("rocm", "cuda", "ROCM")],
)
def test_a_build_for_something_else_fails_with_that_reason(
    build: str, accelerator: str, found_as: str
) -> None:
    """torch without HIP cannot keep the promise of rocm, whatever devices there are."""
    report = run_probe(
        {"build": build}, accelerator=accelerator, expect={"gpus": [{"gfx": "gfx942"}]}
    )

    check = report.find("build", "accelerator")
    assert check is not None
    assert check.reason == (
        f"this is a {found_as} build of torch (0.0.0+stub), {accelerator} was promised"
    )
    assert found(report, "device", 0).status == "skipped"


def test_cuda_uses_its_own_variable_and_no_gfx() -> None:
    report = run_probe({"build": "cuda", "devices": 2}, accelerator="cuda")

    assert report.status == "pass"
    assert found(report, "identity", 1).evidence["pci_address"] == "0000:64:00"
    assert report.version_of("cuda") == "13.0"


def test_an_import_error_keeps_its_text_and_skips_the_devices() -> None:
    report = run_probe({"fault": "import_error"}, expect={"gpus": TWO_GPUS})

    check = report.find("build", "torch")
    assert check is not None
    assert check.reason.startswith("ImportError: libamdhip64.so.6: cannot open shared object file")
    assert [found(report, "device", index).status for index in (0, 1)] == ["skipped", "skipped"]


def test_an_import_that_never_ends_is_a_result() -> None:
    report = run_probe({"fault": "import_hang"}, timeouts={"import": 2})

    check = report.find("build", "torch")
    assert check is not None
    assert check.reason == "not finished after 2 s (in torch)"


def test_an_import_that_never_ends_for_one_device_is_that_devices_result() -> None:
    """The process that looks at the build sees both, and imports."""
    report = run_probe(
        {"devices": 2, "fault": "import_hang", "device": 1},
        expect={"gpus": TWO_GPUS},
        timeouts={**TIMEOUTS, "import": 4},
    )

    failed = [c for c in report.failures if c.group != "environment"]
    assert [(c.group, c.name, c.device) for c in failed] == [("build", "torch", 1)]
    assert failed[0].reason == "not finished after 4 s (in torch)"
    assert found(report, "repeat_bf16", 0).status == "pass"


def test_an_import_that_prints_cannot_touch_the_report() -> None:
    """Not even with a whole event on file descriptor 1: `finished` asserts that there was no noise."""
    report = run_probe({"fault": "import_garbage", "build": "cuda"}, accelerator="cuda")

    assert report.status == "pass"


def test_without_torch_it_fails_and_says_so() -> None:
    report = run_probe(torch=False, accelerator="cpu")

    check = report.find("build", "torch")
    assert check is not None
    assert check.reason.startswith(f"{sys.executable} (Python ")
    assert check.reason.endswith(") has no torch")
    assert check.evidence["missing_module"] == "torch"
    assert report.status == "fail"
    assert report.stderr_tail[-1].startswith("probe: fail (")
    assert "1 fail" in report.stderr_tail[-1]


def test_a_device_that_is_none_of_those_passed_in_fails() -> None:
    scene = {"devices": 2, "addresses": {"1": 0x7F}}
    report = run_probe(scene, expect={"gpus": TWO_GPUS})

    failed = assert_only_device_1_failed(report, "identity")
    assert "PCI address 0000:7f:00, not 0000:64:00;" in failed.reason
    assert "unique id f330dc000000007f, not f330dc0000000064" in failed.reason


def test_two_indices_that_reach_one_device_fail() -> None:
    """Each identity alone is one that was passed in; together they cannot be true."""
    scene = {"devices": 2, "addresses": {"1": 0x63}}
    report = run_probe(scene, expect={"gpus": TWO_GPUS})

    failed = [c for c in report.failures if c.group == "device"]
    assert [c.name for c in failed] == ["distinct"]
    assert failed[0].reason.startswith("2 devices say that they are the same GPU")


def test_a_torch_that_tells_no_address_is_not_called_a_liar() -> None:
    report = run_probe({"devices": 2, "old": True}, expect={"gpus": TWO_GPUS})

    evidence = found(report, "identity", 0).evidence
    assert (
        evidence["pci_address"],
        evidence["unique_id"],
        evidence["gfx"],
    ) == (None, None, "gfx942")
    assert [c for c in report.failures if c.group == "device"] == []


def test_a_list_that_somebody_set_is_indexed_not_replaced() -> None:
    """HIP_VISIBLE_DEVICES=2,0: the first device of this process is the driver's third."""
    report = run_probe({"devices": 3}, environment={"HIP_VISIBLE_DEVICES": "2,0"})

    seen = [found(report, "identity", index).evidence["pci_address"] for index in (0, 1)]
    assert seen == ["0000:65:00", "0000:63:00"]


@pytest.mark.parametrize(
    ("accelerator", "given", "seen"),
    [
        ("rocm", {}, {"HIP_VISIBLE_DEVICES": "1"}),
        # Below HIP, and a scheduler's: the index counts within it.
        ("rocm", {"ROCR_VISIBLE_DEVICES": "4,6"}, {"ROCR_VISIBLE_DEVICES": "4,6", "HIP_VISIBLE_DEVICES": "1"}),
        ("rocm", {"CUDA_VISIBLE_DEVICES": "5,3", "GPU_DEVICE_ORDINAL": "0"}, {"HIP_VISIBLE_DEVICES": "3"}),
        ("cuda", {"ROCR_VISIBLE_DEVICES": "4,6"}, {"CUDA_VISIBLE_DEVICES": "1"}),
    ],
)  # fmt: skip
def test_exactly_one_variable_names_the_device(
    monkeypatch: pytest.MonkeyPatch, accelerator: str, given: dict[str, str], seen: dict[str, str]
) -> None:
    for name in [name for name in os.environ if is_visibility(name)]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    environment = device_environment(accelerator, 1, 1)

    assert {name: value for name, value in environment.items() if is_visibility(name)} == seen


def test_a_rank_that_dies_is_blamed_and_the_others_are_freed() -> None:
    report = run_probe(
        {"build": "cuda", "devices": 2, "fault": "rank_dies", "device": 1}, accelerator="cuda"
    )

    check = report.find("collectives", "all_reduce")
    assert check is not None
    assert check.reason == "rank 1: the process was killed by SIGKILL (in all_reduce)"
    assert "NCCL WARN the last words of this rank" in check.evidence["ranks"][1]["last_lines"]
    assert check.seconds < TIMEOUTS["collectives"]


def test_a_rank_that_hangs_ends_at_the_timeout() -> None:
    report = run_probe(
        {"build": "cuda", "devices": 2, "fault": "rank_hangs", "device": 1},
        accelerator="cuda",
        timeouts={**TIMEOUTS, "collectives": 2},
    )

    check = report.find("collectives", "all_reduce")
    assert check is not None
    assert check.status == "fail"
    assert "not finished after 2 s (in all_reduce)" in check.reason


def test_a_wrong_sum_is_found_on_every_rank() -> None:
    report = run_probe({"build": "cuda", "devices": 2, "fault": "wrong_sum"}, accelerator="cuda")

    check = report.find("collectives", "all_reduce")
    assert check is not None
    assert check.reason == "rank 0: 1 of 64 sums are wrong on rank 0"
    assert [rank["wrong"] for rank in check.evidence["ranks"]] == [1, 1]


def test_one_gpu_skips_the_collective_with_the_reason() -> None:
    report = run_probe({"build": "cuda"}, accelerator="cuda")

    check = report.find("collectives", "all_reduce")
    assert check is not None
    assert (check.status, check.reason) == ("skipped", "there is only one device")
    assert report.status == "pass"


def test_cpu_quick_is_one_child_and_no_collective() -> None:
    report = run_probe({"build": "cpu"}, accelerator="cpu")

    assert report.stages == ("environment", "isolation", "build", "device")
    assert report.status == "pass"
    assert "matmul_bf16" in names(report, "device", "cpu")


def test_cpu_standard_reduces_with_two_ranks() -> None:
    report = run_probe({"build": "cpu"}, accelerator="cpu", level="standard")

    check = report.find("collectives", "all_reduce")
    assert check is not None
    assert (
        check.status,
        check.evidence["backend"],
        check.evidence["world"],
    ) == ("pass", "gloo", 2)


def test_without_memfd_the_source_goes_to_children_on_stdin() -> None:
    """An old kernel or a strict sandbox refuses memfd_create."""
    command = (sys.executable, "-c", f"import os\ndel os.memfd_create\n{BOOTSTRAP}")
    report = run_probe({"build": "cuda", "devices": 2}, accelerator="cuda", command=command)

    assert report.status == "pass"
    assert found(report, "repeat_bf16", 1).status == "pass"


def test_a_torch_directory_where_the_probe_starts_is_not_imported(tmp_path: Path) -> None:
    """A checkout in the working directory is not what the workload imports."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('the wrong torch')")
    given = json.dumps({"accelerator": "cpu", "size": 8}).encode() + b"\n" + SCRIPT.read_bytes()
    done = subprocess.run(
        bootstrap_command(sys.executable),
        input=given,
        cwd=tmp_path,
        env=clean_environment({"build": "cpu"}),
        capture_output=True,
        check=False,
    )

    assert done.returncode == 0


def test_by_hand_it_takes_options() -> None:
    command = [sys.executable, str(SCRIPT), "--accelerator", "cpu", "--size", "8", "--level"]
    expect = json.dumps({"uid": os.getuid()})
    report = finished(
        [*command, "quick", "--expect-json", expect], b"", clean_environment({"build": "cpu"})
    )

    assert (report.status, report.accelerator) == ("pass", "cpu")


def test_help_explains_itself_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--help"], capture_output=True, text=True, check=True
    )

    assert "--accelerator" in done.stdout
    assert "example:" in done.stdout


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"level": "thorough"}, "settings: level is 'thorough'"),
        ({"v": 2}, "settings: v is 2, this probe knows 1"),
        ({"runtime": "sycl"}, "settings: runtime is 'sycl', this probe knows torch, hip"),
    ],
)
def test_settings_it_does_not_know_end_it_before_anything_runs(
    settings: dict[str, Any], reason: str
) -> None:
    given = json.dumps(settings).encode() + b"\n" + SCRIPT.read_bytes()
    done = subprocess.run(
        bootstrap_command(sys.executable), input=given, capture_output=True, check=False
    )

    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, [event["event"] for event in events]) == (2, ["end"])
    assert events[0]["reason"].startswith(reason)


def processes_with(mark: str) -> list[int]:
    """Return the running processes whose environment holds *mark*."""
    found_ids = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                found_ids.append(int(folder.name))
    return found_ids


def test_sigterm_ends_the_children_and_closes_the_report() -> None:
    """A probe that is stopped still says so, and leaves no process behind."""
    given = json.dumps({"accelerator": "cuda", "size": 8}).encode() + b"\n" + SCRIPT.read_bytes()
    marked = clean_environment({"build": "cuda", "fault": "hang", "run": str(uuid.uuid4())})
    process = subprocess.Popen(
        bootstrap_command(sys.executable),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=marked,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(given)
    process.stdin.close()
    lines = []
    for line in process.stdout:
        lines.append(json.loads(line))
        if (lines[-1]["event"], lines[-1].get("name")) == ("check", "allocate"):
            assert processes_with(marked["STUB_TORCH"])
            process.terminate()
    process.stderr.close()
    process.stdout.close()

    assert process.wait(60) == 143
    assert tuple(lines[-1][key] for key in ("event", "status", "reason")) == (
        "end",
        "fail",
        "ended by SIGTERM",
    )
    deadline = time.monotonic() + 60  # a killed process takes a moment to be gone
    while processes_with(marked["STUB_TORCH"]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_with(marked["STUB_TORCH"]) == []


def test_it_is_python_3_9_and_the_standard_library() -> None:
    """torch is imported by name at run time, in children only."""
    tree = ast.parse(SCRIPT.read_text(), feature_version=(3, 9))

    imported = {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        (node.module or "").partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    }
    assert set() == imported - set(sys.stdlib_module_names)


def test_a_reader_that_goes_away_ends_it() -> None:
    """`gpu_probe.py | head -1` ends with a sentence and no traceback."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "--accelerator", "cpu", "--size", "8"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment({"build": "cpu"}),
    )
    assert process.stdout is not None
    process.stdout.close()
    _, chatter = process.communicate(timeout=60)

    assert process.returncode == 3
    assert b"nobody reads the report" in chatter
    assert b"Traceback" not in chatter
