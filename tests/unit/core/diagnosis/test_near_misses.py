"""The same words with another fact in them: what a rule must not take for its kind, beside what it must."""

import pytest

from rocmrun.core.diagnosis.reading import read_text
from tests.unit.core.diagnosis.catalogue import first, found_in, names, sure

DENIED = "Unable to open /dev/kfd read-write: Permission denied"
DIGESTS = (f"sha256:{'a' * 64}", f"sha256:{'b' * 64}")


@pytest.mark.parametrize(
    ("told", "stale"),
    [
        ("dev is member of render group\nuid=1000(dev) gid=1000(dev) groups=1000(dev),27(sudo)", True),
        ("dev is member of video group\nuid=1000(dev) gid=1000(dev) groups=1000(dev),44(video)", False),
        # Numbers alone cannot be compared with a name.
        ("dev is member of render group\ngroups: 1000 27", False),
        ("$ id -nG dev\ndev docker render\n$ id -nG\ndev docker", True),
        ("$ id -nG dev\ndev docker\n$ id -nG\ndev docker", False),
        ("$ id -G dev: 1000 992\n$ id -G: 1000", True),
        ("$ id -nG\n$ rocminfo", False),
    ],
)  # fmt: skip
def test_a_session_is_stale_where_the_database_has_more_groups_than_it(
    told: str, *, stale: bool
) -> None:
    """Whoever asks: id by name, or rocminfo."""
    found = found_in(f'{DENIED}\n{told}\nnodes: {{"/dev/kfd": "root:992 0660"}}')

    meanings = {reason.meaning for each in found for reason in each.reasons}
    shown = "the database has groups for the user that the process does not hold"
    assert (shown in meanings) is stale
    assert not stale or found[0].kind.slug == "stale-session-groups"


@pytest.mark.parametrize(
    ("kfd", "kind"),
    [("root:root 0660", "kfd-render-gid-differ"), ("root:root 0600", "host-udev-perms")],
)
def test_only_something_that_passed_it_on_gives_kfd_to_roots_group(kfd: str, kind: str) -> None:
    """A kernel makes it 0600 until a rule of the host gives it to a group."""
    text = f'{DENIED}\nnodes: {{"/dev/dri/renderD128": "root:render 0660", "/dev/kfd": "{kfd}"}}\ngroups: ["app", "render"]'

    assert first(text) == kind


def test_an_image_and_its_tag_are_no_owner_and_group() -> None:
    """`--device /dev/kfd ollama:rocm` looks like a node with its owner."""
    assert read_text("docker run --device /dev/kfd ollama:rocm").nodes == ()
    (node,) = read_text("/dev/kfd is root:render").nodes
    assert (node.owner, node.group, node.mode) == ("root", "render", None)


@pytest.mark.parametrize(
    ("inside", "kind"), [(511, "nothing"), (510, "stale-device-major")]
)  # fmt: skip
def test_a_major_that_differs_from_the_hosts_is_stale(inside: int, kind: str) -> None:
    """The same one is not, whatever else is wrong."""
    text = f"crw-rw---- 1 root 992 511, 0 /dev/kfd\ncrw-rw---- 1 root 992 {inside}, 0 /dev/kfd"

    assert first(text) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("open /dev/fuse: operation not permitted", "cgroup-device-denied"),
        ('openat(AT_FDCWD, "/dev/accel/accel0", O_RDWR) = -1 EPERM (Operation not permitted)', "cgroup-device-denied"),
        ("open /dev/fuse: permission denied", "nothing"),
        ("mknod: /dev/loop9: Operation not permitted", "nothing"),
        ("mount: /mnt: /dev/sdb1: Operation not permitted", "nothing"),
        ("chown /dev/ttyS0: operation not permitted", "nothing"),
        ("shm_open /dev/shm/x: Operation not permitted", "nothing"),
    ],
)  # fmt: skip
def test_a_device_that_may_not_be_opened_by_anybody_is_the_cgroups(line: str, kind: str) -> None:
    """EPERM for an open of a node, and for nothing else that is done with one."""
    assert first(line) == kind


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ("tag: repo/app:1.2\nyesterday: {0}\ntoday: {1}", "tag-moved"),
        ("tag: repo/app:1.2\nyesterday: {0}\ntoday: {0}", "nothing"),
        ("tag: repo/app:1.2\n#9 exporting layers {0}\n#9 exporting manifest {1}", "nothing"),
        ("manifest unknown: repo/app@{0}", "image-manifest-unknown"),
        ("manifest unknown: repo/app@{0}\nthe tag was overwritten", "tag-moved"),
    ],
)
def test_two_digests_for_one_name_are_a_tag_that_moved(lines: str, kind: str) -> None:
    """Digests of a build's parts are not, and an unknown one alone is not."""
    assert first(lines.format(*DIGESTS)) == kind


def test_two_digests_alone_are_no_certainty() -> None:
    """Whether it was meant, nobody said."""
    assert sure("tag: a:1\nold: {}\nnew: {}".format(*DIGESTS)) == set()


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ('env: {"HF_HOME": "/dev/shm/hf"}', "cache-tmpfs-oom"),
        ("cache: a tmpfs of 4 GiB", "cache-tmpfs-oom"),
        ("/dev/shm: 64M, 100% used", "shm-too-small"),
        ("fix: --shm-size=16g", "shm-too-small"),
        ("docker build: write /opt/rocm/lib/x", "image-disk-full"),
    ],
)
def test_what_is_full_decides(place: str, kind: str) -> None:
    """One errno for a cache in memory, for shared memory, and for a disk."""
    assert first(f"OSError: [Errno 28] No space left on device\n{place}") == kind


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("vllm serve model", {"jit-in-site-packages"}),
        ("pip install comet_ml", set()),
        ("uv pip install x", set()),
    ],
)
def test_an_installer_that_may_not_write_is_no_library_that_compiles(
    command: str, kinds: set[str]
) -> None:
    """Both write into the installed packages."""
    text = f"$ {command}\nPermissionError: [Errno 13] Permission denied: '/usr/lib/python3/dist-packages/x_cubin/cubins'"

    assert sure(text) == kinds


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("fatal error: '__clang_hip_cmath.h' file not found", "image-toolchain-path"),
        ("fatal error: 'cmath' file not found", "image-missing-headers"),
        ("sh: 1: /opt/rocm-6.3/llvm/bin/clang: not found", "image-toolchain-path"),
        ("sh: 1: clang: not found", "image-missing-headers"),
    ],
)
def test_whose_compiler_and_header_it_is_decides(line: str, kind: str) -> None:
    """What belongs to ROCm's own is there, under another path."""
    assert first(line) == kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [('""', "hsa-override-wrong"), ('"11.0.0"', "nothing sure")],
)
def test_an_override_that_is_empty_hides_every_gpu(value: str, kind: str) -> None:
    """One that has a value claims a GPU, and hides none."""
    text = f'no ROCm-capable device is detected\nenv: {{"HSA_OVERRIDE_GFX_VERSION": {value}}}'

    assert (first(text) if sure(text) else "nothing sure") == kind


@pytest.mark.parametrize(
    "line",
    [
        "no kernel image is available: the disk has 10 GB of space left",
        "no kernel image is available, and the path has no space left on device",
    ],
)
def test_room_on_a_disk_is_no_space_in_a_path(line: str) -> None:
    """The same word."""
    assert "path-with-space" not in names(found_in(line))


@pytest.mark.parametrize(
    ("host", "image", "named"), [("5.6.1", "5.7", True), ("5.7.1", "5.7", False), ("6.0", "5.7", False)]
)  # fmt: skip
def test_a_host_with_an_older_rocm_than_the_image_is_named(
    host: str, image: str, *, named: bool
) -> None:
    """A newer one serves older images."""
    (finding,) = (
        found
        for found in found_in(
            f"hipMemGetInfo: invalid argument\nhost_rocm: {host}\nimage: rocm/pytorch:rocm{image}_ubuntu22.04"
        )
        if found.kind.slug == "driver-too-old"
    )

    rows = [line.text for reason in finding.reasons for line in reason.lines if not line.number]
    assert rows == ([f"the host has ROCm {host}, the image {image}"] if named else [])


@pytest.mark.parametrize(
    ("devices", "kind"),
    [
        ('flags: ["--device=/dev/dri"]', "kfd-not-mapped"),
        ('flags: ["--device=/dev/dri", "--device=/dev/kfd"]', "not it"),
        ('flags: ["--device=/dev"]', "not it"),
    ],
)
def test_render_nodes_without_kfd_give_no_gpu(devices: str, kind: str) -> None:
    """HIP opens /dev/kfd first."""
    text = f"RuntimeError: No HIP GPUs are available\n{devices}"

    assert (first(text) if first(text) == "kfd-not-mapped" else "not it") == kind


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("gdb: ptrace: Operation not permitted.", {"cap-sys-ptrace"}),
        ("strace: openat(AT_FDCWD, \"/data/x\") = -1 EACCES (Permission denied)", set()),
        ("gdb: /core: No such file or directory.", set()),
    ],
)  # fmt: skip
def test_only_a_look_into_another_process_is_a_tracers_right(line: str, kinds: set[str]) -> None:
    """A tracer prints the refusals of others too."""
    assert sure(line) & {"cap-sys-ptrace"} == kinds


def test_a_source_of_a_mount_is_a_path_of_the_host() -> None:
    """Its name may have "cache" in it, and nothing of it is in the container."""
    line = "error while creating mount source path '/srv/cache/data': mkdir /srv/cache: read-only file system"

    assert sure(line) == set()
    assert sure("mkdir /srv/cache: read-only file system") == {"readonly-cache"}


def test_a_sandbox_whose_own_device_is_refused_never_came_to_gpus() -> None:
    """The host refuses it, not the sandbox."""
    assert first("runtime: kata\nopen /dev/kvm: operation not permitted") == "cgroup-device-denied"
    assert first("runtime: kata\nopen /dev/kfd: no such file or directory") == "sandbox-runtime"


@pytest.mark.parametrize(
    "text",
    [
        "Name: torch\nVersion: 2.9.1\nSummary: Tensors",
        "Name: torch\nVersion: 2.9.1+rocm7.2\ngpu: AMD MI300X",
        "unable to detect GPU temperature sensor, continuing",
        "HSA_OVERRIDE_GFX_VERSION=\nepoch 1 loss 0.3",
        "/proc/sys/kernel/numa_balancing: 0",
        "crw-rw---- 1 root render 235, 0 /dev/kfd\nuid=1000(a) gid=1000(a) groups=1000(a),992(render)",
    ],
)
def test_what_fails_nowhere_has_no_cause(text: str) -> None:
    """Facts that a sick host has and a healthy one too."""
    assert found_in(text) == ()


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("shm_open: No space left on device", "shm-too-small"),
        ("Error while creating shared memory segment: No space left on device", "shm-too-small"),
    ],
)
def test_posix_shared_memory_is_in_dev_shm(told: str, kind: str) -> None:
    assert first(told) == kind


def test_system_v_segments_are_not_in_dev_shm() -> None:
    """Their number and sum have limits of the kernel's own, and ENOSPC is their answer too."""
    assert "shm-too-small" not in names(found_in("shmget (2): No space left on device"))


@pytest.mark.parametrize(
    ("home", "kind"),
    [("", "home-not-writable"), ("/nonexistent", "home-not-writable"), ("/data", "readonly-cache")],
)
def test_however_many_caches_are_below_a_home_that_is_none_it_is_the_home(
    home: str, kind: str
) -> None:
    text = (
        f"There was a problem when trying to write in your cache folder ({home}/.cache/huggingface/hub).\n"
        f"Matplotlib created a temporary cache directory at /tmp/m because the default path ({home}/.config/matplotlib) is not a writable directory"
    )

    assert first(text) == kind


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("unable to find group render: no matching entries in group file", "render-gid-mismatch"),
        ("unable to find user app: no matching entries in passwd file", "nothing"),
        ("unable to find group app: no matching entries in group file", "nothing"),
    ],
)
def test_a_name_that_the_image_lacks_gives_no_group(told: str, kind: str) -> None:
    assert first(f"docker: Error response from daemon: {told}") == kind


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("PS C:\\Users\\dev> ", "docker-desktop-context"),
        ("C:\\dev>", "docker-desktop-context"),
        ("$ ", "kfd-missing-on-host"),
    ],
)
def test_an_engine_that_is_asked_from_windows_is_in_a_machine_of_its_own(
    prompt: str, kind: str
) -> None:
    text = (
        f"{prompt}docker run --device=/dev/kfd rocm/pytorch\n"
        'docker: Error response from daemon: error gathering device information while adding custom device "/dev/kfd": no such file or directory.'
    )

    assert first(text) == kind


@pytest.mark.parametrize(
    "told",
    [
        "hwloc_set_membind 0x00000001 (policy 2 flags 0) failed (errno 1 Operation not permitted)",
        "set_mempolicy: Operation not permitted",
    ],
)
def test_a_refused_placement_of_memory_is_noise_whoever_asked(told: str) -> None:
    assert first(told) == "seccomp-mbind"
