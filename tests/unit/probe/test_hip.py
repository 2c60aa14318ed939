"""HIP without torch: the real script, with a stand-in for libamdhip64 for hardware that is not here."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.report.model import ProbeCheck, ProbeReport
from tests.unit.probe.runs import ROOT, TIMEOUTS, gpus, run_probe

SOURCE = ROOT / "tests" / "stub_hip" / "hip.c"
RUNTIME, RTC = "-DWITH_RUNTIME", "-DWITH_RTC"
DEVICE_CHECKS = [
    "identity", "allocate", "copy", "memset", "compile",
    "kernel_vector_add", "kernel_matmul_int32", "kernel_matmul_fp32",
]  # fmt: skip
NOBODY_ELSE = "this is none of the GPUs that were passed in: "
# One GPU a fault, all in one run: the fault, the check that finds it, and what it says.
FAULTS = [
    ("hang", "allocate", "not finished after 10 s (in allocate)"),
    ("copy", "copy", "1 of 256 bytes changed on the way to the device and back"),
    ("memset", "memset", "1 of 256 bytes do not hold what was set"),
    ("kernel", "kernel_matmul_fp32", "1 of 64 values are wrong; at 0 it is 17849.0, not 17848.0"),
    ("never_runs", "kernel_vector_add", "64 of 64 values are wrong; at 0 it is nan, not 0.0"),
    ("out_of_memory", "allocate", "hipMalloc returned hipErrorOutOfMemory (2)"),
    ("unknown_code", "allocate", "hipMalloc returned error 4711"),
    ("synchronize", "memset", "hipDeviceSynchronize returned hipErrorInvalidValue (1)"),
    ("address", "identity", f"{NOBODY_ELSE}PCI address 0000:05:00, not 0000:6c:00"),
    ("architecture", "identity", f"{NOBODY_ELSE}gfx gfx1100, not gfx942"),
    ("sees_all", "identity", "16 devices are visible where exactly one was named"),
    ("compile", "compile", "hiprtcCompileProgram returned HIPRTC_ERROR_COMPILATION (6): probe.hip:2:1: error: no such target"),
    ("abort", "allocate", "the process was killed by SIGABRT (in allocate)"),
    ("killed", "allocate", "the process was killed by SIGKILL (in allocate)"),
    ("exit0", "allocate", "the process ended with exit code 0 and no result (in allocate)"),
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None, reason="no C compiler here to build the stand-in for libamdhip64"
)


def build(folder: Path, name: str, *flags: str) -> Path:
    command = ["cc", "-shared", "-fPIC", *flags, "-o", str(folder / name), str(SOURCE)]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def rocm6(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libamdhip64 and libhiprtc as ROCm 6 has them: two libraries, the newer layout of properties."""
    folder = tmp_path_factory.mktemp("rocm6")
    build(folder, "libamdhip64.so.6", RUNTIME)
    return build(folder, "libhiprtc.so.6", RTC)


@pytest.fixture(scope="module")
def rocm5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One library, the older layout of properties."""
    return build(tmp_path_factory.mktemp("rocm5"), "libamdhip64.so.5", RUNTIME, RTC, "-DROCM=5")


@pytest.fixture(scope="module")
def without_rtc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runtime alone, as small images have it."""
    return build(tmp_path_factory.mktemp("runtime"), "libamdhip64.so.7", RUNTIME)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of Python packages with a torch that brings its own libraries, under their plain names."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "torch" / "lib").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("raise ImportError('nobody imports it')\n")
    build(folder / "torch" / "lib", "libamdhip64.so", RUNTIME)
    build(folder / "torch" / "lib", "libhiprtc.so", RTC)
    return folder


def probe(
    folder: Path, faults: str = "", *, count: int = 1, devices: int | None = None, **settings: Any
) -> ProbeReport:
    """Probe *count* planned GPUs by HIP alone, where there are *devices*."""
    environment = {
        "LD_LIBRARY_PATH": str(folder),
        "PYTHONPATH": str(folder),
        "STUB_HIP_FAULTS": f",{faults},",
        "STUB_HIP_DEVICES": str(count if devices is None else devices),
    }
    asked = {"runtime": "hip", "expect": {"gpus": gpus(count)}, "torch": False, **settings}
    return run_probe(environment=environment, **asked)


def of_hip(report: ProbeReport, device: int | None) -> list[ProbeCheck]:
    return [c for c in report.checks if (c.group, c.device) == ("hip", device)]


def failed(report: ProbeReport) -> list[tuple[int | str | None, str, str]]:
    """Return what failed of HIP; the machine that runs the tests has no GPU's nodes."""
    return [(c.device, c.name, c.reason) for c in report.failures if c.group == "hip"]


def test_two_healthy_gpus_pass_without_torch(rocm5: Path) -> None:
    """Also with the older layout of properties. Each process saw its own GPU alone."""
    report = probe(rocm5, count=2)

    assert failed(report) == []
    assert (report.runtime, report.stages[:1]) == ("hip", ("environment",))
    assert {"build", "device", "collectives"}.isdisjoint(report.stages)
    assert report.version_of("hip") == "5.2.21153"
    for index in range(2):
        checks = of_hip(report, index)
        assert [c.name for c in checks] == DEVICE_CHECKS
        assert {c.status for c in checks} == {"pass"}
        seen = checks[0].evidence
        assert (seen["name"], seen["architecture"]) == (
            "Stand-in Instinct",
            "gfx942:sramecc+:xnack-",
        )
        assert (seen["pci_address"], seen["claims"]) == (f"0000:{0x63 + index:x}:00", [index])
    assert of_hip(report, 0)[-1].threshold == 0.0


def test_a_fault_is_its_devices_result(rocm6: Path) -> None:
    """Under the name of the check that finds it first; the healthy GPU passes all the same."""
    faults = ",".join(f"{name}@{index}" for index, (name, _, _) in enumerate(FAULTS, 1))
    report = probe(rocm6, faults, count=len(FAULTS) + 1, timeouts={**TIMEOUTS, "hip": 10})

    first = [next(f for f in failed(report) if f[0] == index + 1) for index in range(len(FAULTS))]
    assert [(check, reason) for _, check, reason in first] == [fault[1:] for fault in FAULTS]
    assert [(c.name, c.status) for c in of_hip(report, 0)] == [(n, "pass") for n in DEVICE_CHECKS]
    assert of_hip(report, 0)[0].evidence["architecture"] == "gfx942:sramecc+:xnack-"
    aborted = [name for name, _, _ in FAULTS].index("abort") + 1
    last_words = next(c for c in report.failures if c.device == aborted).evidence["last_lines"]
    assert "Memory access fault by GPU node-1" in last_words


def test_the_libraries_of_a_wheel_are_found_without_importing_it(wheel: Path) -> None:
    """A device named by its architecture has one; free memory that cannot be is told; twins are found."""
    report = probe(wheel, "nameless@0,memory@0,twin@1", count=2)

    runtime = of_hip(report, None)[0]
    assert runtime.evidence["library"] == str(wheel / "torch/lib/libamdhip64.so")
    assert of_hip(report, 0)[-1].name == "kernel_matmul_fp32"
    assert (of_hip(report, 0)[1].status, of_hip(report, 0)[1].reason) == (
        "degraded", "hipMemGetInfo tells 34359738368 free bytes of 17179869184",
    )  # fmt: skip
    assert of_hip(report, 0)[0].evidence["architecture"] == "gfx942:sramecc+:xnack-"
    assert failed(report) == [
        (None, "distinct", "2 devices say that they are the same GPU: two indices reach one device")
    ]


@pytest.mark.parametrize(
    ("fault", "said"),
    [("", "hipGetDeviceCount returned hipErrorNoDevice (100)"), ("silent_zero@*", "hipGetDeviceCount counts 0")],
)  # fmt: skip
def test_no_device_is_never_a_pass(rocm6: Path, fault: str, said: str) -> None:
    report = probe(rocm6, fault, devices=0)

    assert failed(report) == [(None, "device_count", f"no device is visible: {said}")]
    assert [(c.name, c.status) for c in of_hip(report, 0)] == [("identity", "skipped")]


def test_a_device_too_many_is_found_and_the_planned_one_exercised(rocm6: Path) -> None:
    report = probe(rocm6, devices=2)

    assert failed(report) == [(None, "device_count", "2 devices are visible, 1 were passed in")]
    assert [c.name for c in of_hip(report, 0)] == DEVICE_CHECKS


def test_without_hiprtc_copies_and_memset_are_a_degraded_proof(without_rtc: Path) -> None:
    report = probe(without_rtc)

    assert failed(report) == []
    assert [(c.name, c.status) for c in of_hip(report, 0)][-2:] == [
        ("memset", "pass"),
        ("compile", "degraded"),
    ]
    assert of_hip(report, 0)[-1].reason == (
        "there is no libhiprtc.so here; no kernel was compiled: only copies and memset prove this GPU"
    )


def test_a_library_that_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    missing = failed(probe(tmp_path))
    (tmp_path / "libamdhip64.so.6").write_text("no ELF")
    ((_, name, reason),) = failed(probe(tmp_path))

    assert missing == [(None, "runtime", "there is no libamdhip64.so here")]
    assert name == "runtime"
    assert reason.startswith("libamdhip64 cannot be loaded: ")


def test_hip_is_no_runtime_for_other_accelerators(rocm6: Path) -> None:
    report = probe(rocm6, accelerator="cuda")

    assert "runtime hip is for accelerator rocm, not cuda" in "\n".join(report.stderr_tail)


class TestBesideTorch:
    """Torch computes, and HIP is asked as well: always from standard on, at quick where torch failed."""

    def test_at_standard_both_prove_each_gpu(self, rocm6: Path) -> None:
        report = self.probe(rocm6, {}, level="standard")

        assert failed(report) == []
        assert [c.name for c in of_hip(report, 0)] == DEVICE_CHECKS

    def test_a_torch_that_is_broken_is_told_from_hip(self, rocm6: Path) -> None:
        report = self.probe(rocm6, {"fault": "import_error"}, level="quick")

        assert report.reason.endswith(
            "; HIP works without torch on every GPU: what is broken is torch, or what torch brings along"
        )

    def test_a_device_that_fails_under_torch_alone_accuses_nobody_yet(self, rocm6: Path) -> None:
        report = self.probe(rocm6, {"fault": "SIGABRT"}, level="quick")

        assert report.reason.endswith(
            "; HIP's own, smaller checks pass on every GPU: what is wrong shows only under torch"
        )

    def test_a_hip_that_is_broken_is_told_from_torch(self, rocm6: Path) -> None:
        report = self.probe(rocm6, {"fault": "SIGABRT"}, "out_of_memory@*", level="quick")

        assert report.reason.endswith("; HIP itself fails, without torch as well")

    def test_a_torch_whose_hip_nobody_else_finds_is_none_the_worse(self, tmp_path: Path) -> None:
        report = self.probe(tmp_path, {"fault": "import_error"}, level="quick")

        assert [(c.name, c.status) for c in of_hip(report, None)] == [("runtime", "skipped")]
        assert failed(report) == []
        assert "; HIP" not in report.reason

    def test_an_old_torch_is_identified_by_the_hip_that_it_has_loaded(self, rocm6: Path) -> None:
        """It tells neither address nor uuid; the library is in its process already."""
        right = self.probe(rocm6, {"old": True}, preload=True, level="quick")
        wrong = self.probe(rocm6, {"old": True}, "address@*", preload=True, level="quick")
        seen, lie = (report.find("device", "identity", 0) for report in (right, wrong))

        assert [c for c in right.checks if c.group == "hip"] == []  # no process, no time
        assert seen is not None
        assert seen.evidence["told_by_hip"] == ["pci_address", "uuid"]
        assert (seen.evidence["pci_address"], seen.evidence["claims"]) == ("0000:63:00", [0])
        assert lie is not None
        assert lie.reason == f"{NOBODY_ELSE}PCI address 0000:05:00, not 0000:63:00"

    @staticmethod
    def probe(
        folder: Path, scene: dict[str, Any], faults: str = "", *, preload: bool = False, **settings: Any
    ) -> ProbeReport:  # fmt: skip
        environment = {
            "LD_LIBRARY_PATH": str(folder),
            "STUB_HIP_FAULTS": f",{faults},",
            "STUB_HIP_DEVICES": "1",
            **({"LD_PRELOAD": str(folder / "libamdhip64.so.6")} if preload else {}),
        }
        return run_probe(scene, environment=environment, expect={"gpus": gpus(1)}, **settings)
