"""The host's checks: what is seen, in the order in which it must be mended."""

from dataclasses import replace

import pytest

from rocmrun.core.doctor import CHECKS, Check, Seen
from rocmrun.core.doctor_checks import host_checks
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts, PciGpu
from rocmrun.core.image_report import Declared, ImageReport
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.support.finding import Finding
from rocmrun.core.support.judge import SupportReport
from tests.builders import gpu, host, node

ENGINE = EngineFacts(
    kind="docker",
    version="28.0",
    api_version="1.48",
    address="unix:///x",
    kernel="6.8.0-60-generic",
    default_runtime="runc",
    runtimes=("runc",),
)
PCI = PciGpu(address="0000:05:00.0", device_id="0x74a1", driver="amdgpu")


def results(seen: Seen, *, check: str) -> list[tuple[str, str]]:
    """Return (result, kind) of every line of one check."""
    return [(found.result, found.kind) for found in host_checks(seen) if found.id == check]


def blockers(seen: Seen) -> list[Check]:
    return [found for found in host_checks(seen) if found.result == "blocker"]


def test_checks_come_in_the_order_of_mending() -> None:
    """The matrix first, speed last; each has at least one line."""
    ids = [check.id for check in host_checks(Seen(host=host(1), engine=ENGINE))]

    assert list(dict.fromkeys(ids)) == list(CHECKS)
    assert ids == sorted(ids, key=CHECKS.index)


def test_a_profile_without_gpus_is_not_asked_for_one_that_has_some() -> None:
    """The matrix and the targets say that they have nothing to judge; so does one whose plan is refused."""

    def said(seen: Seen, check: str) -> str:
        return next(found.evidence for found in host_checks(seen) if found.id == check)

    none = Seen(host=HostFacts(), wants_gpus=False)
    refused = Seen(host=host(1), wants_gpus=True, refusal=("policy", "no", ""))
    assert said(none, "matrix") == said(none, "architecture") == "the profile passes no AMD GPU"
    assert said(refused, "matrix") == "no plan could be made of the profile"


def test_a_host_that_is_well_has_no_blocker() -> None:
    """GPUs, nodes with a group, an engine of this kernel."""
    assert blockers(Seen(host=host(2), engine=ENGINE)) == []


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (HostFacts(pci_gpus=(replace(PCI, driver=None),)), "driver-not-loaded"),
        (HostFacts(pci_gpus=(PCI,), driver_version="6.12.12", render_nodes=(node("/dev/dri/renderD128"),)), "kfd-not-in-kernel"),
        (HostFacts(pci_gpus=(PCI,), driver_version="6.12.12", kfd=node("/dev/kfd"), kfd_topology=True), "gpu-not-supported-by-kfd"),
        (HostFacts(wsl=True), "wsl-dxg"),
        (host([gpu(0, render_node=None)]), "render-node-renumbered"),
    ],
    ids=["no driver", "no KFD", "no GPU node", "WSL", "no render node"],
)  # fmt: skip
def test_a_driver_that_gives_no_gpu_is_named(facts: HostFacts, kind: str) -> None:
    """Each has another remedy."""
    assert ("blocker", kind) in results(Seen(host=facts), check="driver")


def test_a_machine_without_a_gpu_blocks_only_a_profile_that_wants_one() -> None:
    """Nothing is known to be wrong with a machine that has none."""
    assert results(Seen(host=HostFacts()), check="driver") == [("unknown", "")]
    assert results(Seen(host=HostFacts(), wants_gpus=True), check="driver")[0][0] == "blocker"
    assert results(Seen(host=HostFacts(), wants_gpus=False), check="driver")[0][0] == "unknown"


@pytest.mark.parametrize("mode", [0o600, 0o640], ids=oct)
def test_a_node_that_no_group_opens_is_the_hosts(mode: int) -> None:
    """Read alone is not enough: HIP opens read-write."""
    facts = host(1, kfd=node("/dev/kfd", mode=mode))

    assert ("blocker", "host-udev-perms") in results(Seen(host=facts), check="permissions")


def test_group_0_is_no_group_for_a_container() -> None:
    """It owns much else."""
    facts = host(1, kfd=node("/dev/kfd", gid=0))

    assert ("blocker", "host-udev-perms") in results(Seen(host=facts), check="permissions")


@pytest.mark.parametrize(
    ("memlock", "expected"), [(None, [("warn", "memlock")]), (-1, [("ok", "")])]
)
def test_rdma_adapters_want_locked_memory(
    memlock: int | None, expected: list[tuple[str, str]]
) -> None:
    """Only where the profile passes some, and its plan keeps the engine's limit."""
    facts = replace(host(1), devices=(node("/dev/infiniband/uverbs0"),))

    assert results(Seen(host=facts, memlock=memlock), check="speed") == expected
    assert results(Seen(host=host(1)), check="speed") == [("ok", "")]


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        (replace(ENGINE, operating_system="Docker Desktop"), ("blocker", "docker-desktop-context")),
        (replace(ENGINE, root_directory="/var/snap/docker/x"), ("blocker", "snap-docker")),
        (replace(ENGINE, default_runtime="runsc"), ("blocker", "sandbox-runtime")),
        (replace(ENGINE, security_options=("name=rootless",)), ("warn", "rootless-groups")),
    ],
    ids=["desktop", "snap", "sandbox", "rootless"],
)
def test_an_engine_that_cannot_do_it_is_named(
    engine: EngineFacts, expected: tuple[str, str]
) -> None:
    """From what it says of itself."""
    assert expected in results(Seen(host=host(1), engine=engine), check="engine")


def test_an_engine_that_does_not_answer_blocks_only_a_profile() -> None:
    """A host can be looked at without one."""
    silent = Seen(host=host(1), engine_problem="no engine answers")

    assert results(silent, check="engine") == [("unknown", "")]
    assert results(replace(silent, wants_gpus=True), check="engine") == [("blocker", "")]


def test_a_torch_of_another_vendor_is_named() -> None:
    """What the image says of itself is enough to say so."""
    image = ImageReport(
        known=True, declared=(Declared(fact="torch", value="2.9.0+cu128", source="label"),)
    )
    seen = Seen(host=host(1), wants_gpus=True, image=image, torch="2.9.0+cu128")

    assert ("blocker", "not-rocm-build") in results(seen, check="image-build")


def test_the_matrix_blocks_where_the_policy_says_so() -> None:
    """The same finding warns or blocks."""
    finding = Finding(subject="driver", verdict="incompatible", sentence="6.12 is too old")
    report = SupportReport(rocm="7.2", rocm_source="tag", data_of="2026-10-01", findings=(finding,))
    seen = Seen(host=host(1), support=report)

    assert results(replace(seen, policy="require"), check="matrix") == [
        ("blocker", "driver-too-old")
    ]
    assert results(replace(seen, policy="ignore"), check="matrix")[0][0] == "ok"


def test_code_that_the_image_lacks_is_the_architectures() -> None:
    """It is told before any program aborts."""
    finding = Finding(subject="code", verdict="incompatible", sentence="no code for gfx1103")
    report = SupportReport(rocm="7.2", rocm_source="tag", data_of="2026-10-01", findings=(finding,))

    assert results(Seen(host=host(1), support=report), check="architecture") == [
        ("blocker", "arch-not-in-image")
    ]


def test_operators_come_from_a_probe() -> None:
    """Without one nothing is known of them."""
    failed = ProbeCheck(group="operators", name="flash_attn", status="fail", reason="no module")
    report = ProbeReport(status="fail", checks=(failed,))

    assert results(Seen(host=host(1)), check="operators") == [("unknown", "")]
    assert results(Seen(host=host(1), report=report), check="operators") == [("blocker", "")]


def test_a_plan_that_is_refused_is_a_blocker_with_its_hint() -> None:
    """The planner's own words."""
    seen = Seen(host=host(1), refusal=("device-permission", "uid 1 may not", "ls -l /dev/kfd"))

    (found,) = blockers(seen)
    assert (found.id, found.hint) == ("permissions", "ls -l /dev/kfd")
