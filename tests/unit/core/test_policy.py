"""What is refused whatever the profile says, and that what jobs need is not."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.path_facts import PathFacts, VolumeFacts
from rocmrun.core.plan import Plan, PlannedDevice, PlannedMount
from rocmrun.core.policy import HOST_CAPABILITIES, check_policy
from rocmrun.errors import PlanRefused
from tests.builders import ENGINE, IMAGE, granted, host, node, plan, privileges


def mounting(source: str, *, read_only: bool = True, kind: Any = "bind") -> Plan:
    mount = PlannedMount(target="/x", source=source, read_only=read_only, kind=kind)
    return plan().with_changes(mounts=(mount,))


def refusals(
    job: Plan, *, engine: Any = ENGINE, paths: dict[str, PathFacts] | None = None
) -> tuple[str, ...]:
    try:
        check_policy(job, engine, paths or {})
    except PlanRefused as error:
        return error.details
    return ()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("/", "is the whole host"),
        ("/etc", "is the host's configuration"),
        ("/proc", "is inside /proc"),
        ("/proc/sys/kernel", "is inside /proc"),
        ("/sys", "is inside /sys"),
        ("/sys/class/kfd", "is inside /sys"),
        ("/dev", "is inside /dev"),
        ("/dev/shm", "is inside /dev"),
        ("/var/run/docker.sock", "reaches /var/run/docker.sock"),
        ("/run/docker.sock", "reaches /run/docker.sock"),
        ("/run", "reaches /run/docker.sock"),
        ("/var", "reaches /var/run/docker.sock"),
        ("/run/containerd/containerd.sock", "reaches /run/containerd"),
        ("/run/containerd", "reaches /run/containerd"),
        ("/run/podman/podman.sock", "reaches /run/podman"),
        ("/run/docker", "reaches /run/docker,"),
        ("/run/docker/containerd", "reaches /run/docker,"),
        ("/var/run/docker/containerd/containerd.sock", "reaches /var/run/docker,"),
        ("/run/user/1000/podman", "sockets of a user's own engine"),
        ("/var/run/user/1000/bus", "sockets of a user's own engine"),
        ("/var/lib/containerd/io.containerd.content.v1.content", "(/var/lib/containerd)"),
        ("/var/lib/containers/storage", "(/var/lib/containers)"),
        ("/home/me/.docker/run/docker.sock", "is an engine's socket"),
        ("/home/me/containerd-debug.sock", "is an engine's socket"),
        ("/run/user/1000", "sockets of a user's own engine"),
        ("/run/user", "sockets of a user's own engine"),
        ("/var/run/user/1000", "sockets of a user's own engine"),
        ("/var/lib/docker", "the engine's own files (/var/lib/docker)"),
        ("/var/lib/docker/volumes/x/_data", "the engine's own files (/var/lib/docker)"),
        ("/var/lib", "the engine's own files (/var/lib/docker)"),
    ],
)
def test_a_mount_that_is_the_host_is_refused_even_read_only(source: str, said: str) -> None:
    (found,) = refusals(mounting(source))

    assert found.startswith(f"mount {source} → /x: ")
    assert said in found
    assert "mount only the directory that the job reads" in found


@pytest.mark.parametrize(
    "source",
    ["/srv/models", "/etc/ssl/certs", "/home/me", "/var/log", "/data/proc", "/devices", "/run/lock",
     "/home/me/my.sock", "/run/user/1000/job", "/opt/docker"],
)  # fmt: skip
def test_an_ordinary_directory_is_not_refused(source: str) -> None:
    assert refusals(mounting(source)) == ()


def test_configuration_may_be_read_and_not_written() -> None:
    (found,) = refusals(mounting("/etc/ssl", read_only=False))

    assert "the host's configuration" in found
    assert refusals(mounting("/srv", read_only=False)) == ()


def test_a_symbolic_link_is_judged_by_where_it_leads() -> None:
    facts = PathFacts(path="/srv/x", kind="directory", real_path="/etc")

    (found,) = refusals(mounting("/srv/x"), paths={"/srv/x": facts})

    assert "mount /srv/x → /x: is the host's configuration" in found


def test_a_path_that_does_not_resolve_is_judged_by_its_name() -> None:
    facts = PathFacts(path="/etc", kind="missing")

    assert refusals(mounting("/etc"), paths={"/etc": facts})


def test_an_engines_socket_is_known_by_its_name() -> None:
    """A link named otherwise leads to one."""
    link = PathFacts(path="/srv/s", kind="socket", real_path="/srv/podman-api.sock")

    assert "engine's socket" in refusals(mounting("/srv/s"), paths={"/srv/s": link})[0]


def test_the_socket_that_the_engine_answers_on_is_refused() -> None:
    engine = replace(ENGINE, address="unix:///srv/engine/api")

    assert "reaches /srv/engine/api" in refusals(mounting("/srv/engine"), engine=engine)[0]
    assert refusals(mounting("/srv/engine")) == ()
    assert refusals(mounting("/srv"), engine=replace(ENGINE, address="tcp://localhost:1")) == ()


def test_without_an_engine_its_directory_is_unknown() -> None:
    assert refusals(mounting("/var/lib/docker"), engine=None) == ()
    assert refusals(mounting("/var/lib/docker"), engine=replace(ENGINE, root_directory=None)) == ()


def test_a_volume_is_not_a_path() -> None:
    assert refusals(mounting("etc", kind="volume")) == ()


@pytest.mark.parametrize(
    "path",
    ["/dev/mem", "/dev/kmem", "/dev/port", "/dev/sda", "/dev/sdb1", "/dev/vda", "/dev/xvda1",
     "/dev/nvme0n1", "/dev/ng0n1", "/dev/dm-0", "/dev/loop0", "/dev/loop-control", "/dev/md0",
     "/dev/mapper/root", "/dev/disk/by-id/x", "/dev/sg0", "/dev/mmcblk0", "/dev/dri",
     "/dev/infiniband/*"],
)  # fmt: skip
def test_a_device_that_is_the_host_is_refused(path: str) -> None:
    job = plan().with_changes(devices=(PlannedDevice(path=path, host_path=path),))

    (found,) = refusals(job)

    assert found.startswith(f"device {path}: ")


@pytest.mark.parametrize(
    "path",
    ["/dev/kfd", "/dev/dri/renderD128", "/dev/dri/card0", "/dev/infiniband/uverbs0", "/dev/kvm",
     "/dev/nvidia0", "/dev/fuse", "/dev/memory-hotplug"],
)  # fmt: skip
def test_an_ordinary_device_is_not_refused(path: str) -> None:
    job = plan().with_changes(devices=(PlannedDevice(path=path, host_path=path),))

    assert refusals(job) == ()


@pytest.mark.parametrize("name", sorted(HOST_CAPABILITIES))
def test_a_capability_that_is_the_host_is_refused_for_root_alone(name: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        plan(privileges(f"cap:{name}", "user:root"))

    assert caught.value.details[0].startswith(f"capability {name} together with root")
    assert f"cap:{name}" in granted(plan(privileges(f"cap:{name}")))


def test_root_may_have_other_capabilities() -> None:
    assert plan(privileges("cap:SYS_PTRACE", "user:root")).cap_add == ("SYS_PTRACE",)


def test_everything_that_is_refused_is_named_at_once() -> None:
    disk = node("/dev/sda", gid=6)
    tables = {
        "mounts": [{"source": "/", "target": "/host"}],
        **privileges("device:/dev/sda:rw", "cap:SYS_ADMIN", "user:root"),
    }

    with pytest.raises(PlanRefused) as caught:
        plan(tables, host=host(1, devices=(disk,)))

    assert caught.value.message == "profile job asks for what rocmrun never grants"
    assert [detail.split()[0] for detail in caught.value.details] == [
        "mount",
        "device",
        "capability",
    ]
    assert caught.value.exit_code == 10


def bound(*names: str, holds: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> dict[str, PathFacts]:
    """Return the facts of /srv/x, which is also called *names*."""
    facts = PathFacts(path="/srv/x", kind="directory", real_path="/srv/x", other_names=names, holds=holds)  # fmt: skip
    return {"/srv/x": facts}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/etc", "is the same place as /etc, which is the host's configuration"),
        ("/proc/sys", "is the same place as /proc/sys, which is inside /proc"),
        (
            "/run/docker.sock",
            "is the same place as /run/docker.sock, which reaches /run/docker.sock",
        ),
        ("/var/lib/docker/volumes", "which reaches the engine's own files"),
    ],
)
def test_a_bind_mount_is_judged_by_what_it_is_of(name: str, said: str) -> None:
    (found,) = refusals(mounting("/srv/x"), paths=bound(name))

    assert found.startswith("mount /srv/x → /x: ")
    assert said in found


def test_another_name_that_is_harmless_is_not_refused() -> None:
    assert refusals(mounting("/srv/x"), paths=bound("/data/models", "/etc/ssl")) == ()
    assert refusals(mounting("/srv/x", read_only=False), paths=bound("/etc/ssl"))


def test_what_is_mounted_below_a_source_comes_along() -> None:
    """A chroot with /proc and /dev mounted in it."""
    holds = (("/srv/x/home", ("/home",)), ("/srv/x/proc", ("/proc",)))

    (found,) = refusals(mounting("/srv/x"), paths=bound(holds=holds))

    assert "holds /srv/x/proc, the same place as /proc, which is inside /proc" in found


@pytest.mark.parametrize(
    "facts",
    [{"block": True, "major": 8, "minor": 0}, {"major": 1, "minor": 1}, {"major": 21, "minor": 0}],
)
def test_a_disk_under_another_name_is_a_disk(facts: dict[str, Any]) -> None:
    """mknod and symbolic links name it as they like: the number tells."""
    tables = privileges("device:/dev/job:rw")
    disk = node("/dev/job", mode=0o666, **facts)

    with pytest.raises(PlanRefused) as caught:
        plan(tables, host=host(1, devices=(disk,)))

    assert "device /dev/job: is raw memory or a disk" in caught.value.details[0]
    harmless = node("/dev/job", mode=0o666, major=1, minor=3)
    assert "device:/dev/job:rw" in granted(plan(tables, host=host(1, devices=(harmless,))))


def of_volume(
    options: dict[str, str], *, driver: str = "local", paths: dict[str, PathFacts] | None = None
) -> str:
    """Return why the existing volume "v" is refused; "" where it is not."""
    volume = VolumeFacts(name="v", driver=driver, options=options)
    try:
        check_policy(mounting("v", kind="volume"), ENGINE, paths or {}, volumes={"v": volume})
    except PlanRefused as error:
        return error.details[0]
    return ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "none", "o": "bind", "device": "/"}, "is a bind of /, which is the whole host"),
        ({"type": "none", "o": "bind", "device": "//"}, "is the whole host"),
        ({"type": "nfs", "o": "ro,rbind", "device": "//etc/"}, "the host's configuration"),
        ({"o": "bind", "device": "/run/docker.sock"}, "reaches /run/docker.sock"),
        ({"o": "bind", "device": "etc"}, 'mounts "etc" of the host'),
        ({"type": "ext4", "device": "/dev/sda1"}, 'mounts "/dev/sda1" of the host'),
        ({"type": "overlay", "o": "lowerdir=/:/x", "device": "overlay"}, 'type "overlay"'),
        ({"type": "proc", "device": "proc"}, 'type "proc"'),
    ],
)
def test_a_volume_that_is_the_host_is_refused(options: dict[str, str], said: str) -> None:
    assert said in of_volume(options)


def test_a_volume_of_a_link_is_judged_by_where_it_leads() -> None:
    link = PathFacts(path="/srv/x", kind="directory", real_path="/")
    options = {"type": "none", "o": "bind", "device": "/srv/x"}

    assert "is the whole host" in of_volume(options, paths={"/srv/x": link})
    assert of_volume(options) == ""


def test_a_volume_of_an_unknown_driver_is_refused() -> None:
    said = of_volume({}, driver="rclone")

    assert "unknown volume driver rclone" in said
    assert said.endswith("as a bind")


@pytest.mark.parametrize(
    "options",
    [{}, {"size": "1g"}, {"type": "tmpfs", "device": "tmpfs", "o": "size=1g"},
     {"type": "nfs", "o": "addr=192.0.2.1", "device": ":/models"}],
)  # fmt: skip
def test_an_ordinary_volume_is_not_refused(options: dict[str, str]) -> None:
    assert of_volume(options) == ""


@pytest.mark.parametrize("place", ["/proc", "/proc/self/fd", "/sys/class", "/dev/fd"])
def test_a_link_through_the_kernels_own_trees_is_refused(place: str) -> None:
    """Whoever follows /proc/self/cwd next, the engine, arrives elsewhere."""
    facts = PathFacts(path="/srv/x", kind="directory", real_path="/srv/y", through=("/srv", place))

    (found,) = refusals(mounting("/srv/x"), paths={"/srv/x": facts})

    assert f"leads through {place}" in found
    harmless = replace(facts, through=("/srv", "/var", "/srv/proc"))
    assert refusals(mounting("/srv/x"), paths={"/srv/x": harmless}) == ()


@pytest.mark.parametrize("workdir", ["/proc/self/fd/7", "/proc", "//proc/1/cwd", "/dev/fd/7"])
def test_a_working_directory_among_open_files_is_refused(workdir: str) -> None:
    for profile, image in (({"workdir": workdir}, "/srv"), ({}, workdir)):
        with pytest.raises(PlanRefused) as caught:
            plan({"container": profile}, image_facts=replace(IMAGE, workdir=image))
        assert "where links lead out of the container" in caught.value.details[0]

    with pytest.raises(PlanRefused):
        plan(image_facts=replace(IMAGE, workdir=f"srv/..{workdir}"))
    own = plan({"container": {"workdir": "/process"}}, image_facts=replace(IMAGE, workdir=workdir))
    assert own.workdir == "/process"
