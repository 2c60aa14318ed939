"""What kernels, engines, kubelets and tools print or raise for one mechanism, from the host up to the container.

Each message stands with the values that its source fills in; beside it is where it is from.
"""

import pytest

from tests.unit.core.diagnosis.catalogue import first, sure

# What many reports tell beside their error, whatever the error is.
BESIDE = "gpu: AMD Instinct MI210\nos: Ubuntu 24.04.3 LTS\nrocm: 7.0.2"
DENIED = "Unable to open /dev/kfd read-write: Permission denied"
NOT_PERMITTED = "Unable to open /dev/kfd read-write: Operation not permitted"
NO_GPU = "RuntimeError: No HIP GPUs are available"

# An origin names where the message's own words were read: a file of the repository, at a tag where one
# is named, or what a program of that version holds or printed. One that begins with "text only:" was
# found in public sources or logs, and not in the file that it names, which was not opened. One that
# begins with "unverified:" was looked for there and not found, or could not be looked for.
HOST = (
    ("ROCm/amdsmi py-interface/amdsmi_exception.py", "driver-not-loaded", "amdsmi_exception.AmdSmiLibraryException: Error code:\n\t34 | AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded"),
    ("ROCm/k8s-device-plugin internal/pkg/amdgpu/amdgpu.go", "driver-not-loaded", "amdgpu driver unavailable: stat /sys/module/amdgpu/drivers/: no such file or directory"),
    ("ollama/ollama v0.11.3 discover/amd_linux.go", "driver-not-loaded", 'level=DEBUG source=amd_linux.go:423 msg="amdgpu driver not detected /sys/module/amdgpu"'),
    ("dell/dkms dkms.in", "driver-not-loaded", "amdgpu/6.12.12: Error! Your kernel headers for kernel 6.17.0-5-generic cannot be found at /lib/modules/6.17.0-5-generic/build"),
    ("unverified: ROCm/ROCm, issues on amdgpu-dkms", "driver-not-loaded", "dpkg: error processing package amdgpu-dkms (--configure):\n installed amdgpu-dkms package post-installation script subprocess returned error exit status 10"),
    ("text only: torvalds/linux drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c", "driver-not-loaded", "[drm:amdgpu_init [amdgpu]] *ERROR* VGACON disables amdgpu kernel modesetting."),
    ("linux 6.1 amdgpu.ko", "driver-userspace-mismatch", "[drm:psp_sw_init [amdgpu]] *ERROR* Failed to load psp firmware!"),
    ("ROCm/ROCdbgapi src/os_driver.cpp", "driver-userspace-mismatch", "amd-dbgapi: warning: AMD GPU driver's version 1.6 not supported (version must be >= 1.13 and < 2.0)"),
    ("ROCm/ROCR-Runtime libhsakmt/include/hsakmt/hsakmttypes.h", "driver-userspace-mismatch", "hsaKmtOpenKFD: HSAKMT_STATUS_DRIVER_MISMATCH"),
    ("ROCm/ROCR-Runtime runtime/hsa-runtime/core/runtime/amd_topology.cpp", "driver-too-old", "HSA Error:  Incompatible kernel and userspace, Vega 20 disabled. Upgrade amdgpu."),
    ("ROCm/clr hipamd/src/hip_error.cpp", "driver-too-old", "hipErrorInsufficientDriver"),
    ("unverified: lspci -vv, as reports quote it", "pcie-atomics", "DevCtl2: Completion Timeout: 50us to 50ms, TimeoutDis-\n\t AtomicOpsCtl: ReqEn-\nrocminfo lists the processor alone"),
    ("text only: kubernetes/kubernetes pkg/volume/hostpath/host_path.go", "kfd-missing-on-host", 'MountVolume.SetUp failed for volume "kfd" : hostPath type check failed: /dev/kfd is not a character device'),
    ("moby/moby daemon/volume/mounts/validate.go", "kfd-missing-on-host", 'Error response from daemon: invalid mount config for type "bind": bind source path does not exist: /dev/kfd'),
    ("moby/moby v18.04.0-ce volume/validate.go", "kfd-missing-on-host", 'invalid mount config for type "bind": bind mount source path does not exist: /dev/kfd'),
    ("containers/bubblewrap bubblewrap.c", "kfd-missing-on-host", "bwrap: Can't find source path /dev/kfd: No such file or directory"),
    ("apptainer/apptainer internal/pkg/runtime/engine/apptainer/container_linux.go", "kfd-missing-on-host", "FATAL:   container creation failed: mount hook function failure: mount /dev/kfd->/dev/kfd error: while mounting /dev/kfd: mount source /dev/kfd doesn't exist"),
    ("canonical/lxd lxd/device/disk.go", "kfd-missing-on-host", 'Error: Missing source path "/dev/kfd" for disk "kfd"'),
    ("canonical/lxd lxd-5.21.7 lxd/device/unix_common.go", "kfd-missing-on-host", "Failed to start device \"kfd\": The required device path doesn't exist and the major and minor settings are not specified"),
    ("lxc/lxc src/lxc/utils.c", "kfd-missing-on-host", 'safe_mount: 1221 No such file or directory - Failed to mount "/dev/kfd" onto "/usr/lib/lxc/rootfs/dev/kfd"'),
)  # fmt: skip
ENGINE = (
    ("unverified: Docker Desktop, its socket", "docker-desktop-context", 'error gathering device information while adding custom device "/dev/kfd": no such file or directory\nDOCKER_HOST=unix:///home/dev/.docker/desktop/docker.sock'),
    ("snapcore/snapd cmd/snap/cmd_list.go", "snap-docker", 'error gathering device information while adding custom device "/dev/kfd": no such file or directory\ndocker  28.1.1+1  3265  latest/stable  canonical✓  -'),
    ("text only: microsoft/WSL2-Linux-Kernel drivers/hv/dxgkrnl", "wsl-dxg", "misc dxg: dxgk: dxgkio_query_adapter_info: Ioctl failed: -22\nno ROCm-capable device is detected"),
    ("google/gvisor release-20260302.0 pkg/sentry/kernel/version/version.go", "sandbox-runtime", "Linux runsc-1 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016 x86_64\nUnable to open /dev/kfd read-write: No such file or directory"),
    ("unverified: containers/crun, krun", "sandbox-runtime", "podman --runtime krun run rocm/pytorch\nno ROCm-capable device is detected"),
    ("unverified: containers/podman, before CDI", "wrong-gpus-flag", "Error: stat nvidia.com/gpu=all: no such file or directory"),
    ("unverified: docker/compose, before CDI", "wrong-gpus-flag", 'error gathering device information while adding custom device "nvidia.com/gpu=all": no such file or directory'),
    ("text only: Docker 29, as reports quote it", "wrong-gpus-flag", "docker: Error response from daemon: failed to discover GPU vendor from CDI: no known GPU vendor found"),
    ("containerd/containerd internal/cri/config/config.go", "wrong-gpus-flag", 'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured'),
    ("text only: kubernetes/kubernetes plugin/pkg/admission/runtimeclass", "wrong-gpus-flag", 'pods "vllm-0" is forbidden: pod rejected: RuntimeClass "nvidia" not found'),
    ("apptainer/apptainer internal/pkg/runtime/launch/launcher_linux.go", "wrong-gpus-flag", "WARNING: Could not find any nv files on this host!\nRuntimeError: No HIP GPUs are available"),
    ("text only: kubernetes/kubernetes pkg/kubelet/lifecycle", "apparmor-denied", 'Cannot enforce AppArmor: profile "k8s-rocm" is not loaded'),
    ("containerd/containerd internal/cri/sputil/apparmor_linux.go", "apparmor-denied", "failed to generate container spec opts: failed to generate apparmor spec opts: apparmor profile not found k8s-rocm"),
    ("containers/common pkg/apparmor/apparmor_linux.go", "apparmor-denied", 'Error: AppArmor profile "rocm" specified but not loaded'),
    ("rootless-containers/rootlesskit pkg/parent/parent.go, and sysctl", "apparmor-denied", "kernel.apparmor_restrict_unprivileged_userns = 1\n[rootlesskit:parent] error: failed to setup UID/GID map: newuidmap 412 failed"),
    ("moby/buildkit client/llb/sourceresolver/imageresolver.go", "image-manifest-unknown", "ERROR: failed to solve: rocm/vllm:none: failed to resolve source metadata for docker.io/rocm/vllm:none: docker.io/rocm/vllm:none: not found"),
    ("moby/buildkit client/solve.go", "image-manifest-unknown", "ERROR: failed to solve: rocm/vllm:none: docker.io/rocm/vllm:none: not found"),
    ("NVIDIA/enroot src/common.sh", "image-manifest-unknown", "[ERROR] URL https://registry-1.docker.io/v2/rocm/pytorch/manifests/none returned error code: 404 Not Found"),
    ("moby/moby v18.09.1 distribution/pull_v1.go", "image-manifest-unknown", "Tag none not found in repository docker.io/rocm/pytorch"),
    ("containerd/containerd core/images/handlers.go", "image-manifest-unknown", 'failed to pull and unpack image "docker.io/rocm/vllm:a": no match for platform in manifest: not found'),
    ("containers/image internal/manifest/docker_schema2_list.go", "image-manifest-unknown", 'no image found in manifest list for architecture "arm64", variant "v8", OS "linux"'),
    ("containers/image internal/manifest/oci_index.go", "image-manifest-unknown", 'no image found in image index for architecture "arm64", variant "v8", OS "linux"'),
    ("moby/buildkit session/auth/authprovider/authprovider.go", "image-pull-auth", "ERROR: failed to solve: failed to fetch oauth token: unexpected status from GET request to https://auth.docker.io/token?scope=a: 401 Unauthorized"),
    ("text only: kubernetes/kubernetes pkg/kubelet/kubelet_pods.go", "image-pull-auth", "FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed."),
    ("containerd/containerd core/remotes/errors/errors.go", "image-pull-auth", "unexpected status from HEAD request to https://registry-1.docker.io/v2/rocm/vllm/manifests/a: 429 Too Many Requests"),
    ("text only: kubernetes/kubernetes pkg/kubelet/eviction/helpers.go", "image-disk-full", "Reason: Evicted\nMessage: The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 1Gi."),
    ("text only: kubernetes/kubernetes pkg/kubelet/images/image_gc_manager.go", "image-disk-full", "Warning FreeDiskSpaceFailed kubelet failed to garbage collect required amount of images. Attempted to free 9 bytes, but only found 0 bytes eligible to free."),
    ("Debian/apt apt-private/private-download.cc, in a build", "image-disk-full", "Step 4/9 : RUN apt-get install -y rocm\nE: You don't have enough free space in /var/cache/apt/archives/."),
    ("gradio-app/gradio gradio/http_server.py", "port-taken", "OSError: Cannot find empty port in range: 7860-7860. You can specify a different port by setting the GRADIO_SERVER_PORT environment variable"),
    ("ggerganov/llama.cpp tools/server/server-http.cpp", "port-taken", "start: couldn't bind HTTP server socket, hostname: 0.0.0.0, port: 8080"),
    ("text only: kubernetes/kubernetes pkg/scheduler/framework/plugins/nodeports", "port-taken", "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."),
    ("unverified: rust-lang/rust library/std", "port-taken", 'Os { code: 98, kind: AddrInUse, message: "Address already in use" }'),
)  # fmt: skip
DEVICES = (
    ("ollama/ollama v0.11.3 discover/amd_linux.go", "kfd-not-mapped", "amdgpu devices detected but permission problems block access: kfd driver not loaded.  If running in a container, remember to include '--device /dev/kfd --device /dev/dri'"),
    ("text only: openxla/xla xla/service/platform_util.cc", "kfd-not-mapped", 'INTERNAL: no supported devices found for platform ROCM\nflags: ["--device=/dev/dri"]'),
    ("text only: openxla/xla xla/pjrt/gpu", "hip-visible-devices-empty", "Unable to initialize backend 'rocm': FAILED_PRECONDITION: No visible GPU devices.\nHIP_VISIBLE_DEVICES=-1"),
    ("text only: kubernetes/kubernetes pkg/volume/hostpath/host_path.go", "render-node-renumbered", 'MountVolume.SetUp failed for volume "render" : hostPath type check failed: /dev/dri/renderD129 is not a character device'),
    ("moby/moby daemon/volume/mounts/validate.go", "render-node-renumbered", 'invalid mount config for type "bind": bind source path does not exist: /dev/dri/renderD129'),
    ("python/cpython Lib/os.py", "render-node-renumbered", "FileNotFoundError: [Errno 2] No such file or directory: '/dev/dri/renderD129'\nhost: /dev/dri/renderD128, /dev/dri/renderD130"),
    ("unverified: torvalds/linux fs/char_dev.c, ENXIO", "stale-device-major", "Unable to open /dev/kfd read-write: No such device or address"),
    ("unverified: torvalds/linux drivers/gpu/drm/amd/amdkfd/kfd_topology.c, EPERM", "cgroup-device-denied", "cat: /sys/class/kfd/kfd/topology/nodes/1/properties: Operation not permitted"),
)  # fmt: skip
PERMISSIONS = (
    ("ollama/ollama v0.11.3 discover/amd_linux.go", "render-gid-mismatch", "permissions not set up properly.  Either run ollama as root, or add you user account to the render group. open /dev/kfd: permission denied"),
    ("fedora-selinux/setroubleshoot framework/src/setroubleshoot/signature.py", "selinux-denied", "SELinux is preventing /usr/bin/python3.12 from open access on the chr_file /dev/kfd."),
    ("fedora-selinux/setroubleshoot framework/src/setroubleshoot/signature.py", "selinux-mount", "setroubleshoot: SELinux is preventing python3 from read access on the file config.json."),
    ("opencontainers/selinux go-selinux/selinux_linux.go", "selinux-mount", "Error: SELinux relabeling of /tmp is not allowed"),
    ("opencontainers/selinux go-selinux/selinux_linux.go", "selinux-mount", "Error: lsetxattr(label=system_u:object_r:container_file_t:s0:c1,c2) /srv/models: operation not permitted"),
    ("containers/podman cmd/podman/containers/create.go", "rootless-groups", "Error: the '--group-add keep-groups' option is not allowed with any other --group-add options"),
    ("containers/podman pkg/util/mount_opts_linux.go", "mount-unreadable", "Error: statfs /srv/models: permission denied"),
)  # fmt: skip
CONTAINER = (
    ("mirror/busybox libbb/appletlib.c", "no-new-privileges-setuid", "su: must be suid to work properly"),
    ("Duncaen/OpenDoas doas.c", "no-new-privileges-setuid", "doas: not installed setuid"),
)  # fmt: skip
MESSAGES = (*HOST, *ENGINE, *DEVICES, *PERMISSIONS, *CONTAINER)


@pytest.mark.parametrize(("kind", "text"), [row[1:] for row in MESSAGES])
def test_a_message_is_understood_alone_and_beside_what_everybody_tells(
    kind: str, text: str
) -> None:
    assert first(text) == kind
    assert first(f"{text}\n{BESIDE}") == kind


RETOLD = (
    # Drivers.
    ("driver-not-loaded", "rocm-smi says the driver is not initialized\nhost: lsmod shows no amdgpu\nsecure_boot: on"),
    ("driver-not-loaded", "Secure Boot is enabled and the module is not signed, so amdgpu does not load"),
    ("driver-not-loaded", "lspci -k shows 'Kernel modules: amdgpu' but no 'Kernel driver in use'\nno /dev/kfd"),
    ("driver-not-loaded", f"{NO_GPU}\nlsmod_amdgpu: none\ndkms: amdgpu, 6.12.12: added"),
    ("driver-not-loaded", "cat /etc/modprobe.d/blacklist.conf: blacklist amdgpu\nUnable to open /dev/kfd read-write: No such file or directory"),
    ("kfd-missing-on-host", "the host has /dev/dri/renderD128 but no /dev/kfd; the container refuses to start"),
    ("kfd-open-einval", "errno: 22\npath: /dev/kfd\nas_root: same error"),
    ("kfd-open-enomem", "errno: 12\nnode: /dev/kfd"),
    # Engines.
    ("docker-desktop-context", "with sudo docker run it works, without sudo: error gathering device information while adding custom device /dev/kfd: no such file or directory"),
    ("docker-desktop-context", 'error gathering device information while adding custom device "/dev/kfd": no such file or directory\nhost: macOS 15'),
    ("apparmor-denied", "works with --security-opt apparmor=unconfined, not without"),
    ("image-manifest-unknown", "the tag does not exist in the registry: rocm/pytorch:rocm6.9"),
    ("port-taken", "another vllm already listens on port 8000, so the server can't start"),
    # Nodes.
    ("kfd-not-mapped", f"{NO_GPU}\ndevices: []"),
    ("kfd-not-mapped", "torch.cuda.is_available() False\nfix: added --device=/dev/kfd"),
    ("kfd-not-mapped", "the compose file maps only /dev/dri; is_available() is False; adding /dev/kfd fixed it"),
    ("kfd-not-mapped", "On the host rocminfo works. In the container there is no /dev/kfd."),
    ("render-node-renumbered", "after adding a second card renderD128 became renderD129 and the compose file still names renderD128"),
    ("render-node-renumbered", "after reboot /dev/dri/renderD128 is the other GPU; container started with --device /dev/dri/renderD128"),
    ("stale-device-major", f"{NOT_PERMITTED}\nlxc.cgroup2.devices.allow: c 510:0 rwm\nhost: crw-rw---- 1 root render 511, 0 /dev/kfd"),
    ("stale-device-major", f"{NOT_PERMITTED}\nmajor_in_container: 235\nmajor_on_host: 511"),
    ("stale-device-major", "since the host rebooted the LXC container can't use kfd: the major went from 235 to 234"),
    ("cgroup-device-denied", "errno: 1\npath: /dev/kfd\ncontainer: LXC on Proxmox"),
    # Groups.
    ("render-gid-mismatch", "torch finds no GPU when the container runs with --user 1000:1000; with root it does"),
    ("render-gid-mismatch", f"{NO_GPU}\nkfd: root:992 0660\nprocess_groups: 1000 109"),
    ("render-gid-mismatch", f"{NO_GPU}\nkfd_gid: 992\nprocess_gids: 1000 44"),
    ("render-gid-mismatch", f"{NO_GPU}\nls: crw-rw---- root 992 /dev/kfd\nid: uid=1000(a) gid=1000(a) groups=1000(a),109(render)"),
    ("render-gid-mismatch", f"{DENIED}\nuid: 1001\nnode_gid: 993\ngroups: 1001 44"),
    ("render-gid-mismatch", "rocminfo: the user is not in the render group"),
    ("host-udev-perms", f"{DENIED}\nkfd_mode: 0600\nkfd_owner: root:root"),
    ("kfd-render-gid-differ", f"{DENIED}\nkfd_gid: 39\nrender_gid: 105\ngroups: 1000 105"),
    ("rootless-groups", f"{DENIED}\nkfd_owner: 65534:65534"),
    ("rootless-groups", f"{DENIED}\nhostUsers: false"),
    ("stale-session-groups", f"{DENIED}\ngetent group render: render:x:992:dev\nid: uid=1000(dev) gid=1000(dev) groups=1000(dev),27(sudo)"),
    ("stale-session-groups", f"{DENIED}\n/etc/group: render:x:992:dev\ngroups: dev sudo"),
    ("selinux-denied", f"Fedora, enforcing: {DENIED}\nls: crw-rw-rw-. 1 root render /dev/kfd\nsetenforce 0 makes it work"),
    ("selinux-mount", "Fedora: ls: cannot open directory '/models': Permission denied; with :Z it works"),
    ("selinux-mount", "PermissionError: [Errno 13] Permission denied: '/models/config.json'\nSELinux: Enforcing"),
    ("no-new-privileges-setuid", "sudo in the image fails since security-opt no-new-privileges was added"),
    # What mended it.
    ("driver-not-loaded", f"{NO_GPU}\nfix: modprobe amdgpu"),
    ("host-udev-perms", f"{DENIED}\nfix: udev rule KERNEL==\"kfd\", GROUP=\"render\", MODE=\"0660\""),
    ("docker-desktop-context", "no such file or directory: /dev/kfd\nfix: docker context use default"),
    ("snap-docker", "No such file or directory /dev/kfd\nfix: removed the snap and installed docker-ce"),
    ("sandbox-runtime", f"{NO_GPU}\nfix: removed runtimeClassName: gvisor"),
    ("wrong-gpus-flag", f"{NO_GPU}\nflags: [\"--gpus=all\"]\nfix: --device /dev/kfd --device /dev/dri"),
    ("image-pull-auth", "denied\nfix: docker login ghcr.io"),
    ("port-taken", "server exits at once\nfix: stopped the other vllm on port 8000"),
    ("hip-visible-devices-empty", f"{NO_GPU}\nfix: unset HIP_VISIBLE_DEVICES"),
    ("selinux-denied", f"{NO_GPU}\nfix: --security-opt label=type:container_runtime_t"),
    ("pcie-atomics", "rocminfo shows no GPU\nfix: moved the card to the CPU slot, PCIe atomics"),
    ("no-new-privileges-setuid", "sudo does not work in the container\nfix: removed no-new-privileges"),
    ("stale-session-groups", "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock\nusermod -aG docker dev was run a minute ago"),
    ("render-gid-mismatch", "RuntimeError: No accelerator (CUDA, XPU, HPU) is available.\nkfd: root:992 0660\ngroups: 1000"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), RETOLD)
def test_what_is_retold_is_understood(kind: str, text: str) -> None:
    """Facts under the keys that people choose, and sentences in place of output."""
    assert first(text) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # Ollama says so on a machine of NVIDIA's as well.
        ('msg="amdgpu driver not detected /sys/module/amdgpu"\nmsg="inference compute" library=cuda', "driver-not-loaded"),
        # A 32 bit program gets EPERM of KFD itself.
        (f"Process 71 (32-bit) failed to open /dev/kfd\n32-bit processes are not supported by amdkfd\n{NOT_PERMITTED}", "cgroup-device-denied"),
        # The next port is free.
        ("INFO Port 8000 is already in use, trying port 8001", "port-taken"),
        ("The port 8888 is already in use, trying another port.", "port-taken"),
        # BuildKit's words for a file that COPY does not find.
        ('ERROR: failed to solve: failed to compute cache key: failed to calculate checksum of ref a::b: "/models": not found', "image-manifest-unknown"),
        # The room is the kernel's, for keys.
        ("unable to join session keyring: unable to create session key: disk quota exceeded", "image-disk-full"),
        # A login node has no GPU of NVIDIA's either, and nothing is wrong.
        ("INFO:    Could not find any nv files on this host!", "wrong-gpus-flag"),
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "wrong-gpus-flag"),
        # amd-smi warns root in a container too, and shows all values.
        ("WARNING: User is missing the following required groups: render, video. Please add user to these groups.", "render-gid-mismatch"),
        # What is refused is a port.
        ("SELinux is preventing /usr/sbin/nginx from name_bind access on the tcp_socket port 8182.", "selinux-denied"),
        # A number is no name: they cannot be compared.
        (f"{DENIED}\nls: crw-rw---- root render /dev/kfd\ngroups: 1000 992", "render-gid-mismatch"),
        # The kernel's own words for KFD, with two numbers in them.
        ("kfd: added device 1002:73bf", "host-udev-perms"),
        # The host's user, not the process.
        (f"{NO_GPU}\nhost_id: uid=1000(a) gid=1000(a) groups=1000(a),992(render)", "stale-session-groups"),
        ("lets us avoid importing Numpy until it's already in use", "port-taken"),
        ("dockerd 1234 listening on 0.0.0.0:8000, vllm uses port 8001", "port-taken"),
    ],
)  # fmt: skip
def test_what_looks_alike_gives_no_certainty(text: str, kind: str) -> None:
    """The same words, and another cause or none."""
    assert kind not in sure(text)


@pytest.mark.parametrize(
    ("rule", "kind"),
    [("c 510:0 rwm", "stale-device-major"), ("c 511:0 rwm", "cgroup-device-denied"), ("c 226:* rwm", "cgroup-device-denied")],
)  # fmt: skip
def test_a_rule_for_another_number_than_the_node_has_is_stale(rule: str, kind: str) -> None:
    """Those of DRM do not change from boot to boot."""
    node = "crw-rw---- 1 root render 511, 0 /dev/kfd"

    assert first(f"{NOT_PERMITTED}\nlxc.cgroup2.devices.allow: {rule}\n{node}") == kind


@pytest.mark.parametrize(
    ("groups", "kinds"),
    [("1000 109", {"render-gid-mismatch"}), ("1000 992", set()), ("app render", set())],
)
def test_a_group_is_lacking_only_where_both_are_told_in_one_form(
    groups: str, kinds: set[str]
) -> None:
    """Numbers with numbers."""
    assert sure(f"{DENIED}\nkfd_owner: root:992\ngroups: {groups}") == kinds
