"""Values for tests, each valid as it stands: change the one thing that a test is about."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rocmrun.core.caller import Caller
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import DeviceNode, Gpu, HostFacts, NumaNode
from rocmrun.core.image import ImageFacts
from rocmrun.core.plan import Plan, PlannedImage
from rocmrun.core.planning.draft import PlanRequest
from rocmrun.core.planning.planner import make_plan
from rocmrun.core.profile.parse import parse_profile

GIB = 1024**3
DIGEST = "sha256:" + "7f" * 32
IMAGE_ID = "sha256:" + "1d" * 32
RENDER_GROUP, KFD_GROUP = 992, 44

IMAGE = ImageFacts(
    image_id=IMAGE_ID,
    repo_digests=(f"example.com/rocm/torch@{DIGEST}",),
    command=("bash",),
    env=(("PATH", "/usr/local/bin:/usr/bin:/bin"),),
)
PLANNED_IMAGE = PlannedImage(ref="example.com/rocm/torch:1", digest=DIGEST, image_id=IMAGE_ID)
ENGINE = EngineFacts(
    kind="docker",
    version="20.10.24",
    api_version="1.41",
    address="unix:///var/run/docker.sock",
    kernel="6.8.0-60-generic",
    operating_system="Debian GNU/Linux 12 (bookworm)",
    architecture="x86_64",
    security_options=("name=seccomp,profile=default",),
    default_runtime="runc",
    runtimes=("runc",),
    cgroup_version=2,
    root_directory="/var/lib/docker",
)
PODMAN = replace(ENGINE, kind="podman", version="4.3.1", default_runtime="crun")
SECCOMP = '{"defaultAction":"SCMP_ACT_ERRNO"}'
CALLER = Caller(uid=1000, gid=1000, cache_root="/home/me/.cache/rocmrun")


def node(path: str, *, gid: int = RENDER_GROUP, mode: int = 0o660, **changes: Any) -> DeviceNode:
    """Return a device node as udev makes it: root:render 0660."""
    values: dict[str, Any] = {"path": path, "host_path": path, "mode": mode, "uid": 0, "gid": gid}
    return DeviceNode(**(values | changes))


def gpu(index: int = 0, **changes: Any) -> Gpu:
    """Return an MI300X; its minor, address and unique id follow from *index*."""
    minor = 128 + index
    values: dict[str, Any] = {
        "index": index,
        "node": index + 1,
        "gfx": "gfx942",
        "pci_address": f"0000:{0x63 + index:02x}:00.0",
        "domain_known": True,
        "render_minor": minor,
        "render_node": node(f"/dev/dri/renderD{minor}"),
        "unique_id": f"{0xA0 + index:016x}",
        "numa_node": 0,
        "vram_bytes": 192 * GIB,
    }
    return Gpu(**(values | changes))


def host(gpus: int | Iterable[Gpu] = 1, **changes: Any) -> HostFacts:
    """Return a host with *gpus* MI300X, 64 GiB of memory and two NUMA nodes."""
    found = tuple(gpu(index) for index in range(gpus)) if isinstance(gpus, int) else tuple(gpus)
    values: dict[str, Any] = {
        "kernel": "6.8.0-60-generic",
        "memory_bytes": 64 * GIB,
        "numa_nodes": (NumaNode(node=0, cpus="0-15"), NumaNode(node=1, cpus="16-31")),
        "kfd": node("/dev/kfd", gid=KFD_GROUP) if found else None,
        "kfd_topology": bool(found),
        "gpus": found,
        "render_nodes": tuple(gpu.render_node for gpu in found if gpu.render_node),
    }
    return HostFacts(**(values | changes))


def request(profile: dict[str, Any] | None = None, **changes: Any) -> PlanRequest:
    """Return the request to plan *profile* (plain TOML values; an image is added) for one MI300X."""
    data = {"image": {"ref": "example.com/rocm/torch:1"}, **(profile or {})}
    values: dict[str, Any] = {
        "name": "job",
        "profile": parse_profile(data),
        "image": PLANNED_IMAGE,
        "image_facts": IMAGE,
        "host": host(),
        "engine": ENGINE,
        "caller": CALLER,
    }
    return PlanRequest(**(values | changes))


def plan(profile: dict[str, Any] | None = None, **changes: Any) -> Plan:
    """Return the plan of *profile*."""
    return make_plan(request(profile, **changes))


def privileges(*grants: str) -> dict[str, Any]:
    """Return the tables of a profile that asks for *grants*."""
    return {"privileges": [{"grant": grant, "reason": "the test asks"} for grant in grants]}


def granted(plan: Plan) -> list[str]:
    """Return what *plan* grants, without the reasons."""
    return [grant.what for grant in plan.grants]


def probe_output(
    *,
    status: str = "pass",
    reason: str = "",
    accelerator: str = "cpu",
    level: str = "quick",
    devices: int = 1,
    own: Iterable[str] = (),
    runtime: str = "torch",
) -> bytes:
    """Return what a probe prints whose device checks, one a device, have *status*; *own* checks passed."""
    events: list[dict[str, Any]] = [
        {"event": "start", "level": level, "accelerator": accelerator, "runtime": runtime, "stages": ["device"]},
        {"event": "check", "group": "build", "name": "torch", "status": "pass",
         "evidence": {"version": "2.13.0"}},
        *({"event": "check", "group": "hip" if runtime == "hip" else "device",
           "name": "kernel_matmul_fp32" if runtime == "hip" else "matmul_fp32", "device": device, "status": status,
           "reason": reason, "seconds": 0.1} for device in range(devices)),
        *({"event": "check", "group": "own", "name": name, "status": "pass"} for name in own),
        {"event": "end", "status": status, "reason": reason, "seconds": 1.5},
    ]  # fmt: skip
    return b"".join(json.dumps({"v": 1, **event}).encode() + b"\n" for event in events)


def on_another_host(facts: HostFacts, root: str) -> HostFacts:
    """Return *facts*, read below *root*, as the host itself would show them; owners are the usual ones."""

    def real(found: DeviceNode) -> DeviceNode:
        gid = KFD_GROUP if found.path == "/dev/kfd" else RENDER_GROUP
        return replace(
            found, host_path=found.path, uid=0, gid=gid, mode=0o660, major=226, minor=None
        )

    return replace(
        facts,
        root="/",
        kfd=real(facts.kfd) if facts.kfd else None,
        render_nodes=tuple(map(real, facts.render_nodes)),
        devices=tuple(map(real, facts.devices)),
        gpus=tuple(
            replace(gpu, render_node=real(gpu.render_node) if gpu.render_node else None)
            for gpu in facts.gpus
        ),
        problems=tuple(problem.replace(root, "") for problem in facts.problems),
    )
