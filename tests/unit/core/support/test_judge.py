"""AMD's support matrix, asked about jobs: the package's own data, and what its pages say of them."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.gpu_table import parse_gpu_table
from rocmrun.core.lock import LockedFacts
from rocmrun.core.support.finding import Finding, Verdict
from rocmrun.core.support.host import driver_series
from rocmrun.core.support.judge import DECISIONS, ORDER, SupportReport, judge
from rocmrun.core.support.matrix import parse_matrix
from rocmrun.system.package_data import read_gpu_table, read_support_matrix
from tests.builders import gpu, host

MATRIX = parse_matrix(read_support_matrix())
TABLE = parse_gpu_table(read_gpu_table())

# A host on which AMD lists everything, for ROCm 7.0.2.
UBUNTU: dict[str, Any] = {
    "os_id": "ubuntu", "os_version": "24.04", "os_name": "Ubuntu 24.04.3 LTS",
    "kernel": "6.8.0-60-generic", "driver_version": "6.14.14", "driver_source": "dkms",
}  # fmt: skip
MI300X: dict[str, Any] = {"device_id": "0x74a1", "revision": "0x00", "gfx": "gfx942", "apu": False}


def facts(rocm: str | None = "7.0.2", **more: Any) -> LockedFacts:
    source = more.pop("gfx_source", "env:PYTORCH_ROCM_ARCH")
    sources = {"rocm": "tag", **({"gfx": source} if source else {})}
    return LockedFacts(rocm=rocm, sources=sources, **more)


def judged(
    card: dict[str, Any] = MI300X,
    image: LockedFacts | None = None,
    *,
    override: str | None = None,
    **changes: Any,
) -> SupportReport:
    card_facts = gpu(0, **card)
    machine = host([card_facts], **(UBUNTU | changes))
    return judge(MATRIX, TABLE, machine, [card_facts], image or facts(), override=override)


def found(report: SupportReport, subject: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.subject == subject]
    return finding


def test_a_listed_job_is_supported_and_every_answer_has_its_row() -> None:
    image = facts(torch="2.8.0+rocm7.0.2.git1", gfx=("gfx90a", "gfx942:sramecc+:xnack-"))

    report = judged(image=image)

    assert report.verdict == "supported"
    assert {f.subject for f in report.findings} == {"gpu", "system", "kernel", "driver", "torch", "code"}  # fmt: skip
    assert all(f.row for f in report.findings)
    assert "AMD Instinct MI300X (gfx942)" in found(report, "gpu").sentence
    assert any("compatibility-matrix.rst" in source for source in found(report, "gpu").sources)


@pytest.mark.parametrize(
    ("card", "rocm", "verdict"),
    [
        pytest.param({"device_id": "0x66a1", "revision": "0x02", "gfx": "gfx906"}, "6.4.1", "unsupported", id="gfx906 ended"),
        pytest.param({"device_id": "0x738c", "gfx": "gfx908"}, "7.2.4", "supported", id="by target"),
        pytest.param({"device_id": "0x74a1", "gfx": "gfx942"}, "7.9.0", "unknown", id="preview: no list"),
        pytest.param({"device_id": "0x74a1", "gfx": "gfx942"}, "11.0.0", "unknown", id="newer than the data"),
        pytest.param({"device_id": "0x75c1", "gfx": "gfx1250"}, "10.0.0", "unsupported", id="MI450 not listed"),
        pytest.param({"device_id": "0xffff", "gfx": "gfx942"}, "7.0.2", "unknown", id="no such PCI id"),
        pytest.param({"device_id": "0x74a1", "gfx": None}, "7.0.2", "unknown", id="no target"),
        pytest.param({"device_id": "0x744c", "revision": "0xc8", "gfx": "gfx1100"}, "7.14.0", "supported", id="7900 XTX"),
        pytest.param({"device_id": "0x744c", "revision": "0xcf", "gfx": "gfx1100"}, "7.14.0", "unsupported", id="7900M"),
        pytest.param({"device_id": "0x740c", "revision": "0x01", "gfx": "gfx90a"}, "7.0.2", "supported", id="MI250X or MI250: both"),
        pytest.param({"device_id": "0x74b5", "gfx": "gfx942"}, "7.0.2", "supported", id="virtual function"),
        pytest.param({"device_id": "0x1586", "gfx": "gfx1151", "apu": True}, "7.14.0", "supported", id="Strix Halo"),
    ],
)  # fmt: skip
def test_gpus_are_looked_up_by_model_and_where_none_is_listed_by_target(
    card: dict[str, Any], rocm: str, verdict: Verdict
) -> None:
    """One PCI id can be several models; the revision decides, or both answers must agree."""
    report = judged({"revision": "0x00", "apu": False, **card}, facts(rocm))

    assert found(report, "gpu").verdict == verdict


def test_two_models_of_one_id_with_two_answers_are_unknown() -> None:
    """MI50 was listed in 5.7, MI60 was not, and PCI does not tell them apart."""
    report = judged({"device_id": "0x66a1", "revision": "0x02", "gfx": "gfx906"}, facts("5.7.1"))

    assert found(report, "gpu").verdict == "unknown"
    assert "AMD Instinct MI60 or MI50" in found(report, "gpu").sentence


def test_a_gpu_can_be_listed_on_some_systems_only() -> None:
    debian: dict[str, Any] = {"os_id": "debian", "os_version": "12", "kernel": "6.1.0-40-amd64"}
    mi350x = {"device_id": "0x75a0", "revision": "0x00", "gfx": "gfx950"}

    assert found(judged(mi350x, **debian), "gpu").verdict == "unsupported"
    assert found(judged(MI300X, **debian), "gpu").verdict == "supported"


def test_where_amd_contradicts_itself_nobody_knows() -> None:
    mi325x = {"device_id": "0x74a5", "revision": "0x00", "gfx": "gfx942"}
    rhel: dict[str, Any] = {
        "os_id": "rhel",
        "os_version": "10.0",
        "kernel": "6.12.0-55.9.1.el10_0.x86_64",
    }

    assert found(judged(mi325x, **rhel), "gpu").verdict == "unknown"


@pytest.mark.parametrize(
    ("os_id", "version", "kernel", "system", "kernel_verdict"),
    [
        ("ubuntu", "24.04", "6.14.0-30-generic", "supported", "supported"),
        ("ubuntu", "24.04", "6.17.0-1-generic", "supported", "outside"),
        ("ubuntu", "25.10", "6.17.0-1-generic", "outside", None),
        ("rhel", "9.6", "5.14.0-570.12.1.el9_6.x86_64", "supported", "supported"),
        ("rhel", "9.6", "5.14.0-611.el9.x86_64", "supported", "outside"),
        ("sles", "15.7", "6.4.0-150700.51-default", "supported", "supported"),
        ("ol", "9.6", "6.12.0-1.el9uek.x86_64", "supported", "supported"),
        ("ol", "10.0", "6.12.0-1.el10uek.x86_64", "supported", "unknown"),
        ("arch", None, "7.0.1-arch1", "outside", None),
    ],
)
def test_systems_and_kernels(
    os_id: str, version: str | None, kernel: str, system: str, kernel_verdict: str | None
) -> None:
    """Point releases of Ubuntu are one series; a build counts where AMD names one."""
    report = judged(os_id=os_id, os_version=version, kernel=kernel)
    kernels = [finding.verdict for finding in report.findings if finding.subject == "kernel"]

    assert found(report, "system").verdict == system
    assert kernels == ([kernel_verdict] if kernel_verdict else [])


def test_a_system_can_be_listed_for_some_gpus_only() -> None:
    rocky: dict[str, Any] = {
        "os_id": "rocky",
        "os_version": "9.6",
        "kernel": "5.14.0-570.12.1.el9_6.x86_64",
    }
    mi210 = {"device_id": "0x740f", "revision": "0x00", "gfx": "gfx90a"}

    assert found(judged(**rocky), "system").verdict == "supported"
    assert found(judged(mi210, **rocky), "system").verdict == "unsupported"


@pytest.mark.parametrize(
    ("module", "rocm", "verdict"),
    [
        pytest.param("6.19.14", "6.4.3", "incompatible", id="31.40 with a 6.4 image"),
        pytest.param("6.12.12", "7.14.0", "incompatible", id="6.4 with 7.14"),
        pytest.param("6.12.12", "7.2.4", "supported", id="6.4 with 7.2"),
        pytest.param("6.14.14", "6.2.0", "outside", id="in the table, not on the page of 6.2"),
        pytest.param("6.19.2", "7.14.0", "outside", id="a preview driver"),
        pytest.param("6.16.6", "7.1.0", "unknown", id="somewhere in 30.20 to 31.20"),
        pytest.param("6.14.14", "11.0.0", "unknown", id="a release that the table does not know"),
        pytest.param("6.8.5-2044426.22.04", "6.2.0", "supported", id="with a build number"),
    ],
)
def test_the_driver_table(module: str, rocm: str, verdict: Verdict) -> None:
    assert found(judged(image=facts(rocm), driver_version=module), "driver").verdict == verdict


def test_the_kernels_own_driver_is_in_no_table() -> None:
    report = judged(driver_version=None, driver_source="in-tree")

    assert found(report, "driver").verdict == "unknown"
    assert "inbox driver of kernel 6.8.0-60-generic" in found(report, "driver").sentence


@pytest.mark.parametrize(
    ("card", "says"),
    [
        pytest.param({"device_id": "0x1586", "gfx": "gfx1151"}, "for Ryzen APUs", id="Strix Halo"),
        pytest.param({"device_id": "0x74a0", "gfx": "gfx942"}, "inbox driver", id="MI300A"),
    ],
)  # fmt: skip
def test_of_apus_only_ryzen_has_no_row_in_the_driver_table(card: dict[str, Any], says: str) -> None:
    apu = {"revision": "0x00", "apu": True, **card}
    report = judged(apu, driver_version=None, driver_source="in-tree")

    assert says in found(report, "driver").sentence


def test_a_module_version_names_a_driver_only_where_a_source_pairs_them() -> None:
    versions = ("6.8.5", "6.14.14", "6.19.14", "6.19.3", "6.14.13", "6.16.6", "9")

    assert [driver_series(MATRIX, version) for version in versions] == [
        "6.2.x", "30.10.x", "31.40.x", "31.30.x", None, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("targets", "source", "override", "verdict"),
    [
        (("gfx942",), "probe", None, "supported"),
        (("gfx9-4-generic",), "probe", None, "supported"),
        (("gfx90a",), "probe", None, "incompatible"),
        (("gfx90a",), "env:PYTORCH_ROCM_ARCH", None, "outside"),
        (("gfx90a",), "probe", "9.0.10", "outside"),
        (("gfx90a", "gfx942"), "probe", "9.0.10", "outside"),
        (("gfx942",), "probe", "9.4.2", "supported"),
        (("gfx942",), "probe", "none", "supported"),
        ((), "", None, "unknown"),
    ],
)
def test_code_for_the_gpu(
    targets: tuple[str, ...], source: str, override: str | None, verdict: Verdict
) -> None:
    """No prefix counts; what a probe measured blocks, what a build argument wished for warns."""
    report = judged(image=facts(gfx=targets, gfx_source=source), override=override)

    assert found(report, "code").verdict == verdict


def test_torch_never_blocks() -> None:
    """AMD publishes images whose torch its matrix does not list."""
    report = judged(image=facts("7.2.4", torch="2.10.0"))

    assert found(report, "torch").verdict == "outside"
    assert found(report, "torch") in report.decided("require", unknown="block")["warn"]


def test_every_policy_decides_every_verdict() -> None:
    assert {policy: tuple(table) for policy, table in DECISIONS.items()} == dict.fromkeys(
        ("require", "warn", "ignore"), ORDER
    )
    assert {table["unknown"] for table in DECISIONS.values()} == {"allow", "warn"}
    assert {table["incompatible"] for table in DECISIONS.values()} == {"allow", "block"}


def test_unknown_blocks_only_where_the_profile_says_so() -> None:
    report = judged(driver_version=None, driver_source="in-tree")
    driver = found(report, "driver")

    assert driver in report.decided("require")["warn"]
    assert driver in report.decided("warn", unknown="block")["block"]
    assert report.decided("ignore", unknown="block")["block"] == []


def test_an_image_that_says_nothing_is_unknown() -> None:
    report = judge(MATRIX, TABLE, host([gpu(0, **MI300X)], **UBUNTU), [gpu(0, **MI300X)], None)

    assert found(report, "release").verdict == "unknown"
    assert report.rocm is None
    assert not report.decided("require")["block"]


def test_wsl_has_rows_of_its_own() -> None:
    assert found(judged(wsl=True), "system").verdict == "unknown"


def test_gpus_of_one_model_are_judged_once() -> None:
    several = [gpu(index, **MI300X) for index in range(8)]

    report = judge(MATRIX, TABLE, host(several, **UBUNTU), several, facts())

    assert len([f for f in report.findings if f.subject == "gpu"]) == 1


def test_the_report_is_json() -> None:
    told = judged().to_json()

    assert (told["verdict"], told["rocm"], told["data_of"]) == ("unknown", "7.0.2", "2026-08-26")
    assert {"subject", "verdict", "sentence", "row", "sources"} == set(told["findings"][0])


def test_the_data_names_a_source_for_every_release() -> None:
    """And every support word, source and driver in it is one that the code knows."""
    assert len({release.version for release in MATRIX.releases}) == len(MATRIX.releases) == 40
    for release in MATRIX.releases:
        assert release.sources
        assert set(release.sources) <= set(MATRIX.sources)
        assert {row.support for row in release.gpus} <= {"supported", "deprecated", "unsupported", None}  # fmt: skip
        assert set(release.drivers) <= {row.driver for row in MATRIX.drivers}
    assert MATRIX.driver_source in MATRIX.sources
    numbers = [tuple(map(int, release.version.split("."))) for release in MATRIX.releases]
    assert numbers == sorted(numbers)


def test_versions_are_found_with_and_without_a_patch() -> None:
    """A tag drops a patch of zero."""
    release = MATRIX.release("7.2")

    assert release is not None
    assert release.version == "7.2.0"
    assert MATRIX.release("7") is None
    assert replace(release, stream="x-preview").preview
