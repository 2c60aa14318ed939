"""What people retell instead of pasting: which fact decides, whatever the words around it."""

import pytest

from tests.unit.core.diagnosis.catalogue import first, sure

DIGESTS = (f"sha256:{'a' * 64}", f"sha256:{'b' * 64}")


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("the service has no permission to use the GPU\nfix: gpasswd -a svc render", "render-gid-mismatch"),
        ("the service has no permission to use the disk\nfix: gpasswd -a svc disk", "nothing"),
        ("pods cannot access the GPU under /dev\nhelped: container_use_devices=1", "selinux-denied"),
        ("pods cannot access the GPU under /dev\nhelped: another node", "nothing"),
        ("the container does not start\nfix: --security-opt apparmor=unconfined", "apparmor-denied"),
        ("the container does not start\nfix: --security-opt apparmor=unconfined --security-opt seccomp=unconfined", "nothing"),
        ("the installer on my Radeon ends with a word on nvidia\nfix: pip install torch --index-url https://download.pytorch.org/whl/rocm6.4", "not-rocm-build"),
        ("the installer on my Radeon ends with a word on nvidia\nfix: pip install wheel", "nothing"),
        ("ray: hipErrorInvalidDevice: invalid device ordinal\nfix: ray must not set HIP_VISIBLE_DEVICES", "hip-visible-devices-empty"),
        ("ray: hipErrorInvalidDevice: invalid device ordinal\nfix: fewer workers", "nothing"),
    ],
)  # fmt: skip
def test_what_mended_it_tells_what_it_was(told: str, kind: str) -> None:
    """And only that: two rights given at once tell neither."""
    assert first(told) == kind


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("ROCk module is NOT loaded\nnote: the driver is linked statically into the kernel", "driver-builtin-false-alarm"),
        ("ROCk module is NOT loaded\nnote: the kernel is new", "driver-not-loaded"),
        ("cannot open /dev/kfd: No such file or directory\nI compile my kernel and do not know which option makes it", "kfd-not-in-kernel"),
        ("cannot open /dev/kfd: No such file or directory\nit is in a container of docker", "kfd-not-mapped"),
        ("there is no kfd in /dev on this machine, only dri", "kfd-missing-on-host"),
        ("rocminfo.cc:900 Call returned 4104\nanswer: your card is not supported by ROCm", "gpu-not-supported-by-kfd"),
        ("rocminfo.cc:900 Call returned 4104\ngood: driver 6.1", "driver-userspace-mismatch"),
        ('amdgpu: failed to load firmware "amdgpu/gc_11_0_0_mec.bin"', "driver-userspace-mismatch"),
        ('iwlwifi: failed to load firmware "iwlwifi-ty-a0.ucode"', "nothing"),
        ("this image needs a more recent kernel driver (amdgpu)", "driver-too-old"),
    ],
)  # fmt: skip
def test_why_a_driver_gives_no_gpu(told: str, kind: str) -> None:
    """Built in, built without, not for this card, without firmware, too old."""
    assert first(told) == kind


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("HIP error: device kernel image is invalid\ndevice 0: integrated graphics of the CPU, device 1: 7900 XT", "igpu-interference"),
        ("the program crashes with signal 4", "nothing"),
        ("pip install flash-attn: failed\nGPU arch gfx1030 is not supported", "flash-attn-missing"),
        ("rocBLAS error: Cannot read TensileLibrary.dat: No such file or directory for GPU arch gfx1030\nflash-attn: installed", "arch-not-in-image"),
        ("libcudart.so not found\nLoading binary /venv/lib/bitsandbytes/libbitsandbytes_cpu.so", "quantization-ext-not-rocm"),
        ("libcudart.so not found\nLoading binary /venv/lib/other/libother_cpu.so", "cuda-only-extension"),
        ("the installer installs torch for CUDA even when ROCm is selected", "not-rocm-build"),
        ("the installer installs torch for ROCm even when CUDA is selected", "nothing"),
        ("after the upgrade I have pytorch CPU again, and had to uninstall it", "python-torch-wheel-overwrote-rocm"),
        ("no GPU at all while both are on, a 2400G and an R9 Nano\nworks: integrated graphics disabled in the BIOS", "igpu-interference"),
        ("no GPU at all while both are on, a 2400G and an R9 Nano\nworks: the monitor at the other one", "nothing"),
        ("pip install xformers: torch gets replaced by a build for CUDA", "python-torch-wheel-overwrote-rocm"),
        ("the first forward pass takes very long, later ones are fast; MIOpen 3", "miopen-first-run-slow"),
    ],
)  # fmt: skip
def test_whose_code_it_is(told: str, kind: str) -> None:
    """The GPU's, an operator's, another vendor's."""
    assert first(told) == kind


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("- image: repo/x:2.1@{0}\n+ image: repo/x:2.1@{1}", "tag-moved"),
        ("- image: repo/x:2.1@{0}\n+ image: repo/x:2.2@{1}", "nothing"),
        ("- image: repo/x@{0}\n+ image: repo/x@{1}", "nothing"),
        ("tag: 2.1\ndigest: 0a1b2c3d4e became 9f8e7d6c5b", "tag-moved"),
        ("tag: 2.1\ndigest: 0a1b2c3d4e", "nothing"),
        ("the tag is unchanged, and the image behind it has another torch than last month", "tag-moved"),
    ],
)  # fmt: skip
def test_one_name_with_two_contents_is_a_tag_that_moved(told: str, kind: str) -> None:
    """A digest that goes with another name says nothing."""
    assert first(told.format(*DIGESTS)) == kind


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ("user 1000 has no permission to write /data/.cache/torch", "readonly-cache"),
        ("ls: /job/in: Permission denied\nhost: Rocky Linux 9\nnote: works with --privileged", "selinux-mount"),
        ("ls: /job/in: Permission denied\nhost: Debian 12\nnote: works with --privileged", "nothing"),
        ("ls: /job/in: Permission denied\nimage: rockylinux:9 of Rocky\nnote: works with --privileged", "nothing"),
        ('entrypoint: chown of /data failed\nflags: ["--cap-drop=ALL"]', "cap-drop-dac-override"),
        ("entrypoint: chown of /data failed", "nothing"),
        ("numactl: cannot bind memory to node 1", "seccomp-mbind"),
        ("crash handler: ptrace requires additional privileges in this container", "cap-sys-ptrace"),
        ("no access to performance counters for this user", "cap-perfmon"),
        ("perf_event_open gives an error\nwith --privileged: ok", "cap-perfmon"),
        ("nproc shows the cores of the host, and the limit is --cpus 4", "cpu-quota-throttling"),
        ("exit code 137\nhost: Docker Desktop on a Mac", "oom-cgroup-137"),
        ("shm   2.0G  1.9G  100M  95% /dev/shm\nworkers stuck", "shm-too-small"),
        ("shm   2.0G  0.1G  1.9G   5% /dev/shm\nworkers stuck", "nothing"),
        ("eight processes crash, seven do not: shared memory was exhausted", "shm-too-small"),
        ("eight processes crash, seven do not", "nothing"),
        ('Unable to write in the "cache" directory (/var/www/cache/dev). in /var/www/Kernel.php:593', "readonly-cache"),
        ("no kernel image is available\nprefix: /home/my envs/venv/lib", "path-with-space"),
        ("perf top: 18% task_numa_work", "numa-balancing"),
    ],
)  # fmt: skip
def test_which_right_or_limit_it_is(told: str, kind: str) -> None:
    assert first(told) == kind


@pytest.mark.parametrize(
    ("told", "kinds"),
    [
        ("No usable temporary directory found in ['/tmp', '/var/tmp']", {"tmp-missing"}),
        ("No usable temporary directory found in ['/tmp']\nwrite: No space left on device", set()),
        ("error adding seccomp filter rule for syscall clone3: permission denied", set()),
        ("clone3: Operation not permitted", {"seccomp-clone3"}),
        ('sudo: The "no new privileges" flag is set', {"no-new-privileges-setuid"}),
        ("sudo: effective uid is not 0, is sudo on a file system with the 'nosuid' option set", set()),
        ("sudo: effective uid is not 0\nflags: [\"--security-opt=no-new-privileges\"]", {"no-new-privileges-setuid"}),
        ("sudo: effective uid is not 0\nsecurityContext: noNewPrivileges: true\nmount: / is not nosuid", {"no-new-privileges-setuid"}),
        ("sudo: effective uid is not 0\nsecurityContext: noNewPrivileges: false", set()),
        ("[Hardware Error]: event severity: corrected\n[Hardware Error]: PCIe error", set()),
        ("[Hardware Error]: event severity: fatal\n[Hardware Error]: PCIe error", {"ras-ecc"}),
    ],
)  # fmt: skip
def test_what_another_cause_prints_too_is_not_sure(told: str, kinds: set[str]) -> None:
    """A full disk, a runtime that makes no filter, a mount without setuid, an error that was corrected."""
    assert sure(told) == kinds
