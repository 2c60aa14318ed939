"""Hypothesis strategies: profiles that ask for anything, on hosts of many kinds."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

from rocmrun.core.caller import Caller
from rocmrun.core.host import HostFacts
from rocmrun.core.path_facts import PathFacts
from rocmrun.core.plan import Plan
from rocmrun.core.planning.draft import PlanRequest
from rocmrun.core.planning.planner import make_plan
from rocmrun.errors import RocmrunError
from tests.builders import CALLER, ENGINE, GIB, IMAGE, gpu, host, node, request

GRANTS = (
    "cap:SYS_PTRACE", "cap:SYS_NICE", "cap:IPC_LOCK", "cap:NET_RAW", "seccomp:unconfined",
    "seccomp:/etc/rocmrun/s.json", "seccomp:+mempolicy", "seccomp:+pidfd", "apparmor:unconfined",
    "label:disable", "nnp:off", "rootfs:rw", "user:root", "group:5", "group:992",
    "device:/dev/infiniband/uverbs0:rwm", "device:/dev/kfd:rwm", "device:/dev/dri/card0:r",
    "ipc:host", "ipc:shareable", "pid:host", "network:host", "ulimit:memlock=-1", "ulimit:core=0",
    "ulimit:core=-1", "ulimit:nofile=100:200", "ulimit:memlock=65536",
    "sysctl:net.core.somaxconn=1024", "sysctl:net.core.somaxconn=2048", "tmpfs-exec:/scratch",
    "masks:off",
)  # fmt: skip
SECCOMP_FILES = {"/etc/rocmrun/s.json": '{"defaultAction":"SCMP_ACT_ERRNO"}'}
SOURCE = "/srv/models"
PATHS = {
    SOURCE: PathFacts(
        path=SOURCE,
        kind="directory",
        real_path=SOURCE,
        components=(("/srv", 0o755, 0, 0), (SOURCE, 0o750, 0, 2000)),
    )
}
DEVICES = (
    node("/dev/dri/card0", gid=44),
    node("/dev/infiniband/uverbs0", gid=0, mode=0o666),
    node("/dev/infiniband/uverbs1", gid=77),
)


def examples(count: int) -> settings:
    """Return settings for a test that draws much: many requests for plans come to none, and other work runs beside."""
    lenient = (HealthCheck.filter_too_much, HealthCheck.too_slow)
    return settings(max_examples=count, deadline=None, suppress_health_check=lenient)


def _some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


def _several(values: Sequence[Any], most: int = 3) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), max_size=most, unique_by=str)


containers = st.fixed_dictionaries(
    {},
    optional={
        "entrypoint": _some([], ["python3"], ["python3", "-m", "x"]),
        "command": _some(["true"], ["sh", "-c", "echo 'a b'"]),
        "workdir": _some("/", "/models"),
        "user": _some("caller", "image", "1234:1234", "5:0"),
        "groups": _several((7, 992, "path:/models")),
        "network": _some("none", "bridge", "host"),
        "ports": _several(("127.0.0.1:8000:8000", "0.0.0.0:53:53/udp", "[::1]:8001:8000")),
        "shm_size": _some("16MiB", "9GiB"),
        "memory": _some("50%", "8GiB"),
        "pids": _some(100, 4096),
        "cpus": _some(0.5, 1.2345678, 16.0),
        "numa": _some("any", "gpu"),
        "tmpfs": st.dictionaries(_some("/scratch", "/tmp", "/home/rocmrun"), _some("1GiB", 4096)),
        "log_size": _some("1MiB"),
        "restart": _some("no", "on-failure:3"),
        "health": _some({"command": ["test", "a b"]}, {"image": True, "interval": 7}),
        "env": st.dictionaries(_some("A", "PATH", "HIP_VISIBLE_DEVICES"), _some("", "x y", "a=b")),
        "env_from": _several(("HF_TOKEN", "B")),
    },
)
mounts = _several(
    (
        {"source": SOURCE, "target": "/models"},
        {"source": SOURCE, "target": "/models", "mode": "rw"},
        {"source": SOURCE, "target": "/x", "mode": "rw", "selinux": "shared"},
        {"source": SOURCE, "target": "/y", "selinux": "private"},
        {"source": SOURCE, "target": "/home/rocmrun"},
        {"type": "volume", "source": "data", "target": "/v", "mode": "rw"},
    )
)
devices = _several(
    tuple(
        {"path": path, "permissions": permissions, "reason": "the test asks"}
        for path, permissions in (
            ("/dev/infiniband/uverbs*", "rw"),
            ("/dev/kfd", "rwm"),
            ("/dev/kfd", "r"),
            ("/dev/dri/card0", "r"),
        )
    )
)
profiles = st.fixed_dictionaries(
    {},
    optional={
        "accelerator": _some("rocm", "cuda", "cpu"),
        "gpus": st.builds(lambda select: {"select": [select]}, _some("all", "none", "index:0")),
        "container": containers,
        "cache": st.builds(lambda mode: {"mode": mode}, _some("persistent", "tmpfs")),
        "mounts": mounts,
        "devices": devices,
        "privileges": st.lists(
            st.builds(lambda grant: {"grant": grant, "reason": "because"}, st.sampled_from(GRANTS)),
            max_size=5,
            unique_by=lambda entry: entry["grant"],
        ),
        "debug": st.builds(lambda grants: {"privileges": grants}, _several(GRANTS)),
    },
)


@st.composite
def hosts(draw: st.DrawFn) -> HostFacts:
    """Hosts with and without GPUs, with nodes open to all, with little known."""
    render = draw(_some((0o660, 992), (0o666, 0), (0o660, 44)))
    gpus = [
        gpu(
            index,
            numa_node=draw(_some(0, 1, None)),
            render_node=node(f"/dev/dri/renderD{128 + index}", mode=render[0], gid=render[1]),
        )
        for index in range(draw(st.integers(0, 3)))
    ]
    kfd = node("/dev/kfd", gid=draw(_some(44, 992)))
    nodes = (kfd, *(each.render_node for each in gpus if each.render_node))
    return host(
        gpus,
        kfd=kfd,
        memory_bytes=draw(_some(None, GIB // 4, 64 * GIB)),
        nofile_limit=draw(_some(None, 1024, 1 << 20)),
        nproc_limit=draw(_some(None, 4096, 1 << 22)),
        devices=(*DEVICES, *nodes),
    )


images = st.one_of(
    st.none(),
    st.builds(
        lambda volumes, env: IMAGE.__class__(image_id=IMAGE.image_id, volumes=volumes, env=env),
        _some((), ("/data", "/tmp/"), ("/models/", "/home/rocmrun")),
        _some((), (("PATH", "/root/bin:/bin"), ("ROCR_VISIBLE_DEVICES", ""))),
    ),
)
callers = _some(CALLER, Caller(uid=0, gid=0, cache_root="/var/cache/rocmrun"))


@st.composite
def requests(draw: st.DrawFn) -> PlanRequest:
    """Requests of profiles that are valid; whether a plan comes of them is the planner's to say."""
    try:
        return request(
            draw(profiles),
            host=draw(hosts()),
            image_facts=draw(images),
            engine=draw(_some(None, ENGINE)),
            caller=draw(callers),
            paths=PATHS,
            seccomp_files=SECCOMP_FILES,
            debug=draw(st.booleans()),
        )
    except RocmrunError:
        assume(False)  # noqa: FBT003  # hypothesis has it so
        raise


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans that come of them."""
    asked = draw(requests())
    try:
        return make_plan(asked)
    except RocmrunError:
        assume(False)  # noqa: FBT003  # hypothesis has it so
        raise
