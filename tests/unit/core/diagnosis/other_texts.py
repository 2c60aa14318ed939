"""What other programs, other hosts and other versions print for the same mechanisms: none of it stands in the catalogue."""

TEXTS: tuple[tuple[str, str], ...] = (
    ("render-gid-mismatch", """\
openat(AT_FDCWD, "/dev/kfd", O_RDWR|O_CLOEXEC) = -1 EACCES (Permission denied)
uid=1005(worker) gid=1005(worker) groups=1005(worker),44(video)
crw-rw---- 1 root 993 235, 0 /dev/kfd
crw-rw---- 1 root 993 226, 128 /dev/dri/renderD128"""),
    ("render-gid-mismatch", """\
level=WARN source=amd_linux.go msg="amdgpu devices detected but permission problems block access" error="failed to check permission on /dev/kfd: open /dev/kfd: permission denied"
container_user: 10001 (non-root)
flags: ["--device=/dev/kfd", "--device=/dev/dri", "--group-add=render"]
node_owner: /dev/kfd root:110 0660"""),
    ("render-gid-mismatch", """\
PermissionError: [Errno 13] Permission denied: '/dev/dri/renderD129'
securityContext: {"runAsUser": 1000, "runAsNonRoot": true}
fix: supplementalGroups: [992]"""),
    ("rootless-groups", """\
$ podman run --rm --device /dev/kfd --device /dev/dri docker.io/rocm/dev-ubuntu-24.04 rocminfo
Unable to open /dev/kfd read-write: Permission denied
$ ls -ln /dev/kfd
crw-rw---- 1 65534 65534 234, 0 /dev/kfd"""),
    ("rootless-groups", """\
RuntimeError: No HIP GPUs are available
uid_map: 0 1000 1
engine: docker 27, rootless mode
groups: 0"""),
    ("host-udev-perms", """\
Failed to open /dev/kfd: Permission denied
$ stat -c '%a %U %G %n' /dev/kfd
600 root root /dev/kfd"""),
    ("host-udev-perms", """\
Unable to open /dev/dri/renderD128: Permission denied
crw------- 1 root root 226, 128 Jan  3 10:11 /dev/dri/renderD128"""),
    ("kfd-render-gid-differ", """\
Unable to open /dev/kfd read-write: Permission denied
crw-rw---- 1 root video 234, 0 /dev/kfd
crw-rw---- 1 root render 226, 128 /dev/dri/renderD128"""),
    ("kfd-render-gid-differ", """\
dev0: /dev/kfd,gid=39
dev1: /dev/dri/renderD128,gid=105"""),
    ("stale-session-groups", """\
Unable to open /dev/kfd read-write: Permission denied
alex is member of render group
note: user was just added with usermod -aG render, not logged out yet"""),
    ("stale-session-groups", """\
$ groups alex
alex : alex video render
$ id -G
1000 27
Unable to open /dev/kfd read-write: Permission denied
hint: newgrp render works"""),
    ("selinux-denied", """\
audit: type=1400 audit(1700000000.123:99): avc:  denied  { open } for  pid=991 comm="python3" path="/dev/kfd" dev="devtmpfs" ino=410 scontext=system_u:system_r:container_t:s0:c1,c2 tcontext=system_u:object_r:hsa_device_t:s0 tclass=chr_file permissive=0"""),
    ("selinux-denied", """\
Unable to open /dev/kfd read-write: Permission denied
crw-rw-rw- 1 root render 511, 0 /dev/kfd
selinux: Enforcing
getsebool: container_use_devices --> off"""),
    ("selinux-mount", """\
type=AVC msg=audit(1712.1:5): avc:  denied  { read } for  pid=4 comm="python3" name="weights" dev="nvme0n1p3" ino=77 scontext=system_u:system_r:container_t:s0:c3,c9 tcontext=unconfined_u:object_r:user_home_t:s0 tclass=dir permissive=0
PermissionError: [Errno 13] Permission denied: '/models/qwen'"""),
    ("selinux-mount", """\
ls: cannot open directory '/data': Permission denied
selinux: enforcing
works_with: -v /srv/data:/data:z"""),
    ("cap-drop-dac-override", """\
cp: cannot create regular file '/out/result.bin': Permission denied
securityContext: capabilities drop ALL, runAsUser 0
cap_drop: ALL"""),
    ("cap-drop-dac-override", """\
PermissionError: [Errno 13] Permission denied: '/results/loss.csv'
flags: ["--cap-drop=ALL", "-v", "/srv/results:/results"]
container_user: root
CapEff: 0000000000000000"""),
    ("no-new-privileges-setuid", "sudo: The \"no new privileges\" flag is set, which prevents sudo from running as root."),
    ("no-new-privileges-setuid", "sudo: unable to change to root gid: Operation not permitted\nallowPrivilegeEscalation: false"),
    ("mount-unreadable", "OSError: [Errno 13] Permission denied: '/models/llama/model-00001-of-00004.safetensors'"),
    ("mount-unreadable", "gguf_init_from_file: failed to open GGUF file '/weights/q4.gguf' (Permission denied)\nuser: 1000:1000"),
    ("driver-not-loaded", "ERROR: GPU[0]: amdgpu kernel module is not loaded\nmodprobe: FATAL: Module amdgpu not found in directory /lib/modules/6.8.0-90-generic"),
    ("driver-not-loaded", "Error! Bad return status for module build on kernel: 6.14.0-37-generic (x86_64)\ndkms: amdgpu/6.12.12 autoinstall failed\nls: cannot access '/dev/kfd': No such file or directory"),
    ("driver-not-loaded", "[   12.1] Loading of unsigned module is rejected\nmodprobe: ERROR: could not insert 'amdgpu': Required key not available"),
    ("kfd-missing-on-host", "Error: stat /dev/kfd: no such file or directory\nengine: podman 5.2"),
    ("kfd-missing-on-host", "Error response from daemon: failed to create task for container: error gathering device information while adding custom device \"/dev/kfd\": no such file or directory"),
    ("kfd-not-in-kernel", "$ zgrep HSA_AMD /proc/config.gz\n# CONFIG_HSA_AMD is not set\n/dev/dri/renderD128"),
    ("kfd-not-in-kernel", "ls: cannot access '/dev/kfd': No such file or directory\n03:00.0 VGA compatible controller\n\tKernel driver in use: amdgpu\n/dev/dri/renderD128\nkernel_config: CONFIG_HSA_AMD=n"),
    ("driver-builtin-false-alarm", "rocm-smi: ERROR:root:Driver not initialized (amdgpu not found in modules)\nkernel_config: CONFIG_DRM_AMDGPU=y\ntorch: torch.cuda.is_available() True"),
    ("gpu-not-supported-by-kfd", "[    4.1] kfd kfd: amdgpu: OLAND  not supported in kfd\nopen /dev/kfd: Cannot allocate memory"),
    ("gpu-not-supported-by-kfd", "kfd kfd: DID 15dd is missing in supported_devices\nkgd2kfd_probe failed"),
    ("kfd-open-enomem", "open(\"/dev/kfd\", O_RDWR) = -1 ENOMEM (Cannot allocate memory)\ncrw-rw-rw- 1 root render 236, 0 /dev/kfd"),
    ("kfd-open-enomem", "OSError: [Errno 12] Cannot allocate memory: '/dev/kfd'\ngpu: MI50"),
    ("kfd-open-einval", "OSError: [Errno 22] Invalid argument: '/dev/kfd'\ncrw-rw-rw- 1 nobody nogroup 235, 0 /dev/kfd\nprovider: rented container"),
    ("kfd-open-einval", "openat(AT_FDCWD, \"/dev/kfd\", O_RDWR|O_CLOEXEC) = -1 EINVAL (Invalid argument)\namdxdna 0000:c5:00.1: NPU enabled"),
    ("pcie-atomics", "kfd kfd: amdgpu: skipped device 1002:73bf, PCI rejects atomics 730<0"),
    ("pcie-atomics", "amdgpu 0000:03:00.0: PCIE atomic ops is not supported\nAMD GPU not in topology: no PCIe atomics"),
    ("driver-too-old", ":3:hip_memory.cpp: hipMemGetInfo failed with error: hipErrorInvalidValue\nHSA_AMD_AGENT_INFO_MEMORY_AVAIL query failed\nkernel: 5.15"),
    ("driver-too-old", "torch.cuda.mem_get_info() failed: HIP error: invalid argument\ndriver: 5.13 (old)"),
    ("driver-userspace-mismatch", "hsa_init() returned HSA_STATUS_ERROR_OUT_OF_RESOURCES\nbad: linux-firmware 20260101 with amdgpu 6.16\ngood: linux-firmware 20250901"),
    ("driver-userspace-mismatch", "hsa api call failure at: rocminfo.cc:1282\nCall returned HSA_STATUS_ERROR_OUT_OF_RESOURCES\nregression after kernel update to 6.18"),
    ("docker-desktop-context", "Error response from daemon: error gathering device information while adding custom device \"/dev/kfd\": no such file or directory\nengine: Docker Desktop 4.40 on Ubuntu\nKernelVersion: 6.10.14-linuxkit"),
    ("docker-desktop-context", "Unable to open /dev/kfd read-write: Permission denied\ncurrent context: desktop-linux\nsudo docker works"),
    ("snap-docker", "docker: Error response from daemon: error gathering device information while adding custom device \"/dev/kfd\": no such file or directory.\nDocker Root Dir: /var/snap/docker/common/var-lib-docker"),
    ("snap-docker", "unauthorized: authentication required\nengine: docker installed from snap (snap.docker.dockerd)"),
    ("wsl-dxg", "ROCk module is NOT loaded, possibly no GPU devices\nLinux box 5.15.167.4-microsoft-standard-WSL2 x86_64"),
    ("wsl-dxg", "torch.cuda.is_available(): False\nos: Ubuntu 24.04 in WSL 2 on Windows 11\n/dev/dxg present"),
    ("sandbox-runtime", "RuntimeError: No HIP GPUs are available\nRuntimes: runc runsc\ndefault_runtime: runsc"),
    ("sandbox-runtime", "Unable to open /dev/kfd read-write: No such file or directory\nruntimeClassName: kata-qemu"),
    ("wrong-gpus-flag", "docker: Error response from daemon: could not select device driver \"amd\" with capabilities: [[gpu compute]]."),
    ("wrong-gpus-flag", "Error: setting up CDI devices: unresolvable CDI devices amd.com/gpu=all"),
    ("wrong-gpus-flag", "docker: Error response from daemon: unknown or invalid runtime name: nvidia."),
    ("apparmor-denied", "audit: type=1400 audit(17.1:3): apparmor=\"DENIED\" operation=\"open\" profile=\"docker-default\" name=\"/dev/kfd\" pid=9 comm=\"rocminfo\" requested_mask=\"wr\" denied_mask=\"wr\""),
    ("apparmor-denied", "runc create failed: unable to apply apparmor profile: apparmor failed to apply profile: write /proc/self/attr/apparmor/exec: operation not permitted, apparmor denied"),
    ("kfd-not-mapped", "ROCk module version 6.12.12 is loaded\nUnable to open /dev/kfd read-write: No such file or directory"),
    ("kfd-not-mapped", "FileNotFoundError: [Errno 2] No such file or directory: '/dev/kfd'\nruntime: apptainer exec --contain image.sif"),
    ("render-node-renumbered", "Error: stat /dev/dri/renderD130: no such file or directory\nhost: renderD128 renderD129"),
    ("render-node-renumbered", "error gathering device information while adding custom device \"/dev/dri/card1\": no such file or directory"),
    ("stale-device-major", "open /dev/kfd: operation not permitted\nnote: container created before the last reboot; host_major 236, container has 234"),
    ("stale-device-major", "PermissionError: [Errno 1] Operation not permitted: '/dev/kfd'\nhistory: fine until the host reboot, docker start of the old container"),
    ("cgroup-device-denied", "OSError: [Errno 1] Operation not permitted: '/dev/kfd'\nlxc.cgroup2.devices.allow: c 226:* rwm\nruntime: unprivileged LXC"),
    ("cgroup-device-denied", "openat(AT_FDCWD, \"/dev/dri/renderD128\", O_RDWR) = -1 EPERM (Operation not permitted)\nbind-mounted with -v /dev/dri:/dev/dri only"),
    ("cgroup-device-revoked", "Failed to open /dev/kfd: Operation not permitted\nhistory: worked for days, stopped working after systemctl daemon-reload\ncgroup_driver: systemd"),
    ("cgroup-device-revoked", "llama server falls back to CPU after unattended-upgrades; /dev/kfd: Operation not permitted; worked before\nCgroup Driver: systemd"),
    ("cpx-partition-render-nodes", "amd-smi: GPU 1..7 compute_partition N/A, GPU 0 compute_partition DPX"),
    ("cpx-partition-render-nodes", "Compute Partition: QPX\nls /dev/dri/by-path shows one entry for four devices"),
    ("igpu-interference", "Memory access fault by GPU node-2 on address 0x7f00. Reason: Page not present or supervisor privilege.\ngpus: RX 7800 XT gfx1101, integrated graphics gfx1036"),
    ("igpu-interference", "ggml_cuda_init: found 2 ROCm devices:\n  Device 0: AMD Radeon RX 9070 XT, gfx1201\n  Device 1: AMD Radeon Graphics, gfx1036\nSegmentation fault (core dumped)"),
    ("hip-visible-devices-empty", "RuntimeError: No HIP GPUs are available\nenv: {\"HIP_VISIBLE_DEVICES\": \"-1\"}\nrocminfo: lists 2 GPUs gfx942"),
    ("hip-visible-devices-empty", "hipErrorNoDevice: no ROCm-capable device is detected\nexport CUDA_VISIBLE_DEVICES=\"\""),
    ("hip-visible-devices-empty", "RuntimeError: HIP error: invalid device ordinal\nHIP_VISIBLE_DEVICES=0 torchrun --nproc-per-node 2 train.py"),
    ("smi-restricted-view", "rocm-smi shows all 8 GPUs, HIP device_count 2\nflags: [\"--device=/dev/kfd\", \"--device=/dev/dri/renderD128\", \"--device=/dev/dri/renderD136\"]"),
    ("image-manifest-unknown", "Error: initializing source docker://rocm/pytorch:rocm9: reading manifest rocm9 in docker.io/rocm/pytorch: manifest unknown"),
    ("image-manifest-unknown", "failed to resolve reference \"docker.io/rocm/vllm:none\": docker.io/rocm/vllm:none: not found"),
    ("image-pull-auth", "Error response from daemon: pull access denied for acme/rocm-private, repository does not exist or may require 'docker login': denied: requested access to the resource is denied"),
    ("image-pull-auth", "Failed to pull image \"ghcr.io/acme/x:1\": failed to authorize: failed to fetch anonymous token: 401 Unauthorized"),
    ("image-disk-full", "Error: writing blob: storing blob to file \"/var/tmp/storage1\": write /var/tmp/storage1: no space left on device"),
    ("image-disk-full", "failed to extract layer sha256:77: write /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/9/fs/opt/rocm/lib/librocblas.so: no space left on device"),
    ("port-taken", "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use"),
    ("port-taken", "Error response from daemon: driver failed programming external connectivity: Bind for 127.0.0.1:11434 failed: port is already allocated"),
    ("not-rocm-build", "AssertionError: Torch not compiled with CUDA enabled\ntorch.__version__ 2.9.0+cu128, torch.version.hip None"),
    ("not-rocm-build", "torch: 2.8.0+cu126\ntorch.cuda.is_available() False\nWARNING: Found no NVIDIA driver on your system."),
    ("python-torch-wheel-overwrote-rocm", "Found existing installation: torch 2.9.1+rocm7.2.0\n  Successfully uninstalled torch-2.9.1+rocm7.2.0\nSuccessfully installed torch-2.10.0 nvidia-cublas-cu12\ntorch.cuda.is_available() False"),
    ("python-torch-wheel-overwrote-rocm", "print(torch.__version__) -> 2.10.0+cpu\nDockerfile: RUN pip install xformers (requirements pulled torch from pypi)"),
    ("tag-moved", "error: the tag now points to a different digest: sha256:aaa was locked\nlast_good: yesterday"),
    ("missing-rocm-libs", "OSError: libamdhip64.so.6: cannot open shared object file: No such file or directory"),
    ("missing-rocm-libs", "./llama-server: error while loading shared libraries: libhipblaslt.so.1: cannot open shared object file: No such file or directory"),
    ("cuda-only-extension", "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"),
    ("cuda-only-extension", "ImportError: /opt/venv/lib/python3.12/site-packages/foo_ops.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"),
    ("quantization-ext-not-rocm", "RuntimeError: Configured ROCm binary not found at bitsandbytes/libbitsandbytes_rocm70.so"),
    ("quantization-ext-not-rocm", "ImportError: cannot import name 'exllama_kernels': No module named 'exllama_kernels'"),
    ("flash-attn-missing", "ModuleNotFoundError: No module named 'flash_attn'\ngpu: gfx1100"),
    ("flash-attn-missing", "ImportError: FlashAttention2 has been toggled on, but it cannot be used: the package flash_attn seems to be not installed."),
    ("image-missing-headers", "triton/runtime/build.py: RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl."),
    ("image-missing-headers", "/tmp/comgr-1/input/CompileSource:5:10: fatal error: 'cstdint' file not found"),
    ("image-missing-headers", "/tmp/x/main.c:5:10: fatal error: Python.h: No such file or directory"),
    ("image-toolchain-path", "/bin/sh: 1: hipcc: not found\nHIP_PATH=/opt/rocm-6.0 does not exist"),
    ("image-toolchain-path", "clang: error: cannot find ROCm device library; provide its path via '--rocm-path'"),
    ("root-only-paths", "ImportError: /root/.pyenv/versions/3.11/lib/libpython3.11.so.1.0: cannot open shared object file: Permission denied\nuser: 1000"),
    ("path-with-space", "sys.prefix: /mnt/AI Tools/venv\nRuntimeError: HIP error: no kernel image is available for execution on the device"),
    ("arch-not-in-image", "rocblas error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary_lazy_gfx1103.dat: No such file or directory for GPU arch : gfx1103"),
    ("arch-not-in-image", "torch.AcceleratorError: HIP error: no kernel image is available for execution on the device\ngpu: Radeon VII gfx906"),
    ("arch-not-in-image", "hipErrorSharedObjectInitFailed\nclr: Unable to find code object for gfx1152"),
    ("hsa-override-wrong", "Memory access fault by GPU node-1 on address (nil)\nHSA_OVERRIDE_GFX_VERSION=10.3.0 python main.py\ngpu: MI100 (gfx908)"),
    ("hsa-override-wrong", "Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_INVALID_ISA\nimage_env: {\"HSA_OVERRIDE_GFX_VERSION\": \"9.0.0\"}"),
    ("readonly-cache", "OSError: [Errno 30] Read-only file system: '/home/app/.triton/cache/abc'"),
    ("readonly-cache", "MIOpen(HIP): Error [Prepare] SQLite: unable to open database file: /home/user/.config/miopen/gfx942130.HIP.3_4_0.ufdb.txt"),
    ("readonly-cache", "PermissionError: [Errno 13] Permission denied: '/tmp/torchinductor_root/fxgraph'"),
    ("readonly-cache", "Matplotlib created a temporary cache directory because the default path (/nonroot/.config/matplotlib) is not a writable directory\nPermissionError: [Errno 13] Permission denied: '/nonroot/.cache/huggingface/hub'"),
    ("home-not-writable", "mkdir: cannot create directory '/.config': Permission denied"),
    ("home-not-writable", "OSError: [Errno 30] Read-only file system: '/.cache/vllm'\nHOME=/"),
    ("readonly-rootfs", "touch: cannot touch '/etc/nginx/x.conf': Read-only file system\nflags: [\"--read-only\"]"),
    ("readonly-rootfs", "OSError: [Errno 30] Read-only file system: '/workspace/output.log'"),
    ("jit-in-site-packages", "PermissionError: [Errno 13] Permission denied: '/usr/local/lib/python3.12/dist-packages/aiter/jit/module_rmsnorm.so.lock'"),
    ("jit-in-site-packages", "OSError: [Errno 30] Read-only file system: '/opt/venv/lib/python3.12/site-packages/flashinfer/jit/build'"),
    ("uid-without-passwd-entry", "whoami: cannot find name for user ID 4242"),
    ("uid-without-passwd-entry", "OSError: No username set in the environment\n  File \"/usr/lib/python3.13/getpass.py\", line 173, in getuser"),
    ("tmp-noexec", "ImportError: /tmp/torchinductor_u/x/launcher.so: failed to map segment from shared object\ntmpfs on /tmp type tmpfs (rw,nosuid,nodev,noexec)"),
    ("tmp-noexec", "/tmp/configure-test/conftest: Permission denied\ntmp: tmpfs noexec"),
    ("tmp-missing", "FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp', '/usr/tmp', '/app']"),
    ("tmp-missing", "filesystem error: temp directory path: No such file or directory: \"/tmp\"\nmktemp: failed to create file: /tmp: No such file or directory"),
    ("cache-tmpfs-oom", "OSError: [Errno 28] No space left on device: '/cache/huggingface/hub/models--qwen/blobs/x.incomplete'\ncache: tmpfs 4g"),
    ("cache-tmpfs-oom", "RuntimeError: Data processing error: IO Error: No space left on device (os error 28) /home/rocmrun/.cache/huggingface/xet"),
    ("hf-offline", "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and outgoing traffic has been disabled."),
    ("hf-offline", "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files."),
    ("path-eacces-nonroot", "docker: Error response from daemon: OCI runtime create failed: unable to start container process: exec: \"/root/run.sh\": permission denied: unknown."),
    ("path-eacces-nonroot", "bash: /opt/tools/bin/server: Permission denied\nuid=1000 gid=1000"),
    ("seccomp-clone3", "clone3({flags=CLONE_VM|CLONE_FS}, 88) = -1 EPERM (Operation not permitted)"),
    ("seccomp-clone3", "OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 4: Operation not permitted\ndocker: 20.10.5"),
    ("pids-limit", "libgomp: Thread creation failed: Resource temporarily unavailable"),
    ("pids-limit", "bash: fork: Resource temporarily unavailable\n[1234.5] cgroup: fork rejected by pids controller in /docker/abc"),
    ("pids-limit", "terminate called after throwing an instance of 'std::system_error' what():  Resource temporarily unavailable\npids.max: 256"),
    ("memlock", "ibv_create_qp: Cannot allocate memory, max locked memory (kbytes, -l) 64"),
    ("memlock", "NET/IB : reg_mr failed: Cannot allocate memory. RLIMIT_MEMLOCK is 8388608"),
    ("cpu-quota-throttling", "cpu.stat: nr_throttled 98211 throttled_usec 88123123\ncpu.max: 400000 100000"),
    ("cap-sys-ptrace", "vader: process_vm_writev: Operation not permitted"),
    ("cap-sys-ptrace", "gdb: ptrace: Operation not permitted.\nCould not attach to process."),
    ("cap-perfmon", "rocprofv3: perf_event_open failed: Permission denied, perf_event_paranoid is 3"),
    ("cap-perfmon", "E: GPU could not be locked for profiling gpu_id=123, no CAP_PERFMON"),
    ("oom-cgroup-137", "Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137"),
    ("oom-cgroup-137", "Memory cgroup out of memory: Killed process 4711 (python3) total-vm:88412kB"),
    ("shm-too-small", "RuntimeError: unable to write to file </torch_12_345>: No space left on device (28), shared memory\nDataLoader worker (pid 12) exited"),
    ("shm-too-small", "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."),
    ("shm-too-small", "NCCL WARN Error: failed to extend /dev/shm/nccl-abc to 9637892 bytes: No space left on device"),
    ("network-none", "NCCL WARN Bootstrap : no socket interface found"),
    ("network-none", "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc] Unable to find interface for: [0.0.0.0]; gai error: Name or service not known (hostname)"),
    ("rccl-p2p-ipc", "transport/p2p.cc:275 NCCL WARN Cuda failure 'invalid argument' hipIpcOpenMemHandle failed\nHSA_ENABLE_IPC_MODE_LEGACY=1"),
    ("pid-namespace", "hipIpcOpenMemHandle: hipErrorInvalidContext\nflags: [\"--ipc=host\"]\nsetup: two containers, one exports, separate PID namespaces"),
    ("pid-namespace", "hipErrorInvalidDevicePointer (17) when the sidecar opens the handle\nipc: container:main, own pid namespace"),
    ("stale-shm-lock", "rsmi_init: pthread_mutex_timedlock() returned 110, remove /dev/shm/rocm_smi_card1"),
    ("stale-shm-lock", "amd-smi hangs; ls /dev/shm: rocm_smi_init rocm_smi_card0, mutex timed out"),
    ("iommu-p2p", "NCCL WARN Missing \"iommu=pt\" from kernel command line which can lead to system instablity or hang!\nall_reduce_perf hangs with 2 GPUs, no further output"),
    ("oom-vram", "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.98 GiB"),
    ("oom-vram", "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 20480.00 MiB on device 0: cudaMalloc failed: out of memory"),
    ("oom-vram", "ValueError: Free memory on device (3.1/23.9 GiB) on startup is less than desired GPU memory utilization (0.9, 21.5 GiB)."),
    ("gpu-busy", "error[gpu-busy]: GPU 0 is held by workload vllm-1"),
    ("gpu-busy", "open /dev/kfd: Device or resource busy"),
    ("gpu-hang-reset", "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=12, emitted seq=14\namdgpu 0000:03:00.0: amdgpu: GPU reset begin!"),
    ("gpu-hang-reset", "HW Exception by GPU node-1 (Agent handle: 0x55) reason :GPU Hang\nmes failed to respond to msg=REMOVE_QUEUE"),
    ("ras-ecc", "amdgpu 0000:c1:00.0: amdgpu: 1 uncorrectable hardware errors detected in umc block"),
    ("ras-ecc", "mce: [Hardware Error]: Poison consumed, GPU 3 ECC uncorrectable error count 2"),
    ("miopen-first-run-slow", "first convolution took 214 seconds, the second iteration 0.1 s\nMIOPEN_FIND_MODE unset"),
    ("miopen-first-run-slow", "MIOpen(HIP): Warning [SQLiteBase] Missing system database file: gfx1201_32.kdb Performance may degrade.\nfirst image takes 6 min"),
    ("cpu-fallback", "load_tensors: offloaded 0/33 layers to GPU"),
    ("cpu-fallback", "msg=\"inference compute\" id=0 library=cpu compute=\"\""),
    ("amdsmi-empty", "amdsmi.amdsmi_exception.AmdSmiLibraryException: AMDSMI_STATUS_INIT_ERROR"),
    ("amdsmi-empty", "amd-smi list: no GPUs found\ntorch.cuda.is_available() True"),
    ("seccomp-mbind", "set_mempolicy: Operation not permitted"),
    ("numa-balancing", "NCCL WARN NUMA auto balancing enabled which can lead to variability in the NCCL performance!"),
    ("libdrm-ids-warning", "/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory"),
    ("toolkit-install-check", "error: %prein(amd-container-toolkit-1.2) scriptlet failed: AMD GPU driver not installed, amdgpu is required\nrpm-ostree install amd-container-toolkit"),
    # After what people reported elsewhere, in words of our own.
    ('cgroup-device-denied', 'Unable to open /dev/kfd read-write: Operation not permitted\n(user) is member of render group\ncrw-rw---- 1 root render 238, 0 /dev/kfd\nos: Pop!_OS bare metal\nrock-dkms: install errors'),
    ('kfd-open-einval', 'root:~# rocminfo\nROCk module version 6.7.0 is loaded\nUnable to open /dev/kfd read-write: Invalid argument\nroot is member of nogroup group\ngpu: MI300X\nimage: rented docker container'),
    ('root-only-paths', '/usr/local/bin/text-generation-launcher: error while loading shared libraries: libpython3.11.so.1.0: cannot open shared object file: No such file or directory\nflags: ["--user 1000"]\nlib_path: /root/.local/share/uv/python/cpython-3.11.11-linux-x86_64-gnu/lib/'),
    ('mount-unreadable', 'Error response from daemon: failed to create task for container: OCI runtime create failed: runc create failed: unable to start container process: chdir to cwd ("/workspace") set in config.json failed: permission denied: unknown.'),
    ('render-gid-mismatch', 'torch.cuda.is_available()\nFalse\nsecurityContext: {"runAsUser": 1000, "privileged": false}\nvolumes: ["/dev/kfd", "/dev/dri"]\nas_root: works'),
    ('rccl-p2p-ipc', "[FATAL ERROR]: HIP failure: 'invalid device pointer' cudaIpcOpenMemHandle() in ncclP2pImportShareableBuffer src/transport/p2p.cc"),
    ('rccl-p2p-ipc', 'NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!\nhipify/src/transport/p2p.cc:256 NCCL WARN hipIpcGetMemHandle failed : invalid argument\nsetup: second process group on other GPUs of the node'),
    ('arch-not-in-image', ':1:hip_fatbin.cpp :687 : 114369963532 us:  No compatible code objects found for: gfx1152, value of HIP_FORCE_SPIRV_CODEOBJECT: 0\nzsh: segmentation fault  llama-server -hf x\nworkaround: HSA_OVERRIDE_GFX_VERSION=11.5.0'),
    ('kfd-not-mapped', 'root@101acc334128:/var/lib/jenkins# /opt/rocm-5.2.0/bin/rocminfo\nROCk module is loaded\nUnable to open /dev/kfd read-write: No such file or directory\nFailed to get user name to check for video group membership'),
    ('gpu-hang-reset', 'amdgpu 0000:c5:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8)\nGCVM_L2_PROTECTION_FAULT_STATUS:0x00000B32 Faulty UTCL2 client ID: CPC (0x5)\namdgpu: MES failed to respond to msg=REMOVE_QUEUE\namdgpu: GPU reset(1) succeeded!'),
    ('hsa-override-wrong', 'SIGSEGV: segmentation violation\nPC=0x7f7e54233bc7\nllama runner process has terminated: signal: segmentation fault\nenv: {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}\ngpu: RX 6750 XT gfx1031\nrocm: 6.4.3'),
    ('shm-too-small', "RuntimeError: DataLoader worker (pid 1523) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."),
    ('network-none', 'torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (rocmrun, 29500). The IPv4 network addresses of (rocmrun, 29500) cannot be retrieved (gai error: -2 - Name or service not known).'),
    ('readonly-cache', 'RuntimeError: Failed to create directory /nonexistent/.cache/torch_extensions: Permission denied'),
    ('readonly-cache', 'sqlite3.OperationalError: attempt to write a readonly database\nMIOpen: /opt/rocm/share/miopen/db/gfx942.kdb'),
    ('home-not-writable', 'There was a problem when trying to write in your cache folder (/.cache/huggingface/hub). You should set the environment variable TRANSFORMERS_CACHE to a writable directory.'),
    ('uid-without-passwd-entry', '  File "/opt/conda/lib/python3.10/getpass.py", line 169, in getuser\n    return pwd.getpwuid(os.getuid())[0]\nKeyError: \'getpwuid(): uid not found: 568\''),
    ('tmp-noexec', 'OSError: /cache/.triton/cache/AB/hip_utils.so: failed to map segment from shared object'),
    ('oom-vram', 'torch.OutOfMemoryError: HIP out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 23.98 GiB of which 18.00 MiB is free. Of the allocated memory 23.2 GiB is allocated by PyTorch'),
    ('oom-vram', 'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.'),
    ('driver-not-loaded', 'ROCk module is NOT loaded, possibly no GPU devices\nlsmod: no amdgpu\nos: Ubuntu 22.04, kernel 6.8 after update'),
    ('driver-not-loaded', "amdgpu: module verification failed: signature and/or required key missing - tainting kernel\nmodprobe: ERROR: could not insert 'amdgpu': Invalid argument"),
    ('wsl-dxg', 'error gathering device information while adding custom device "/dev/kfd": no such file or directory\nkernel: 5.15.90.1-microsoft-standard-WSL2'),
    ('docker-desktop-context', 'docker: Error response from daemon: error gathering device information while adding custom device "/dev/kfd": no such file or directory.\nhost: Fedora, ls /dev/kfd works\ndocker_info: Operating System: Docker Desktop'),
    ('igpu-interference', 'rocBLAS error: Could not initialize Tensile host: No devices found / Segmentation fault\ngpus: RX 6900 XT (gfx1030), Ryzen 7950X iGPU (gfx1036)'),
    ('image-missing-headers', "/opt/rocm/llvm/bin/clang++: fatal error: 'cmath' file not found\nubuntu 22.04 with gcc-12 but without libstdc++-12-dev"),
    ('flash-attn-missing', 'ImportError: FlashAttention only supports AMD MI200 GPUs or newer\ngpu gfx1100'),
    ('quantization-ext-not-rocm', 'CUDA Setup failed despite GPU being available. bitsandbytes: libbitsandbytes_cpu.so: undefined symbol: cquantize_blockwise_fp16'),
    ('missing-rocm-libs', 'ImportError: libroctx64.so.4: cannot open shared object file: No such file or directory'),
    ('cuda-only-extension', 'ImportError: libcublas.so.12: cannot open shared object file: No such file or directory'),
    ('not-rocm-build', 'RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver'),
    ('memlock', 'ibv_reg_mr failed: Cannot allocate memory\nulimit -l: 64'),
    ('memlock', "UCX ERROR ibv_reg_mr(address=0x7f, length=4096, access=0xf) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited'"),
    ('cap-sys-ptrace', '[node:123] Read -1, expected 65536, errno = 1'),
    ('selinux-denied', 'avc:  denied  { map } for  pid=123 comm="python3" path="/dev/dri/renderD128" scontext=system_u:system_r:container_t:s0 tcontext=system_u:object_r:dri_device_t:s0 tclass=chr_file'),
    ('pcie-atomics', 'amdgpu: PCIe atomic ops is not supported'),
    ('gpu-hang-reset', '[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.0.0 timeout, but soft recovered'),
    ('ras-ecc', 'amdgpu 0000:e3:00.0: amdgpu: socket: 0, die: 0 2 uncorrectable hardware errors detected in total in gfx block'),
    ('miopen-first-run-slow', 'MIOpen is compiling kernels; the first inference takes 12 minutes then every next is 3 seconds'),
    ('image-disk-full', 'docker: failed to register layer: write /opt/rocm-6.2.0/lib/librocsparse.so.1.0: no space left on device.'),
    ('seccomp-clone3', 'fatal: unable to create threaded lstat: Operation not permitted\ndocker: 20.10.2\nimage: fedora:36'),
    ('stale-shm-lock', 'rocm-smi: pthread_mutex_timedlock() returned 110\nFailed to initialize RSMI device mutex after 5 seconds.'),
    ('apparmor-denied', 'apparmor="DENIED" operation="ptrace" class="ptrace" profile="docker-default"'),
    ('wrong-gpus-flag', 'Error response from daemon: AMD CDI spec not found'),
    ('wrong-gpus-flag', 'nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file'),
    ('cgroup-device-revoked', 'GPU visible at start, after `systemctl daemon-reload` hipErrorNoDevice in running container; docker cgroup driver systemd'),
    ('hip-visible-devices-empty', "ROCR_VISIBLE_DEVICES=0 HIP_VISIBLE_DEVICES=1 python -c 'import torch; print(torch.cuda.device_count())'\n0"),
    ('hip-visible-devices-empty', 'RuntimeError: No HIP GPUs are available\nenv: {"ROCR_VISIBLE_DEVICES": ""}'),
    ('pids-limit', "RuntimeError: can't start new thread\npids_limit: 100\nOMP_NUM_THREADS: 64"),
    ('hf-offline', 'requests.exceptions.ConnectionError: (MaxRetryError("HTTPSConnectionPool(host=\'huggingface.co\', port=443): Max retries exceeded with url: /api/models/x (Caused by NameResolutionError(Failed to resolve \'huggingface.co\'))'),
    ('jit-in-site-packages', "[aiter] start build [module_attn] under /usr/local/lib/python3.12/dist-packages/aiter_meta/jit/build\nPermissionError: [Errno 13] Permission denied: '/usr/local/lib/python3.12/dist-packages/aiter/jit/build/lock_module_attn'"),
    ('smi-restricted-view', 'rocm-smi lists only 1 of 2 GPUs inside the container; HIP sees both'),
    ('cpu-fallback', 'llama_model_load: no GPU found, falling back to CPU'),
    ('driver-builtin-false-alarm', 'ERROR:root:Driver not initialized (amdgpu not found in modules)\nrocminfo: Agent 2 Name: gfx1100 works\ninitstate: missing'),
)  # fmt: skip

# Logs of work that goes well: nothing may be found in them.
CLEAN: tuple[str, ...] = (
    "INFO:     Started server process [1]\nINFO:     Waiting for application startup.\nINFO:     Application startup complete.\nINFO:     Uvicorn running on http://0.0.0.0:8000",
    "epoch 1 step 100 loss 2.314 lr 1e-4 tokens/s 48213\nepoch 1 step 200 loss 2.101 lr 1e-4 tokens/s 48990",
    "ROCk module is loaded\n=====================\nHSA System Attributes\n=====================\nRuntime Version:         1.14\nAgent 2\n  Name:                    gfx942\n  Marketing Name:          AMD Instinct MI300X",
    "torch 2.9.1+rocm7.2.0 hip 7.2.26015\ntorch.cuda.is_available() True\ndevice_count 8",
    "amdgpu 0000:63:00.0: amdgpu: SMU is initialized successfully!\nkfd kfd: amdgpu: added device 1002:74a1\n[drm] Initialized amdgpu 3.61.0",
    "collected 120 items\n\ntests/test_a.py ....\n============ 120 passed in 3.21s ============",
    "crw-rw---- 1 root render 235, 0 /dev/kfd\ncrw-rw---- 1 root render 226, 128 /dev/dri/renderD128\nuid=1000(u) gid=1000(u) groups=1000(u),992(render)",
    "llm_load_tensors: offloaded 33/33 layers to GPU\nprompt eval time = 91.2 ms\nserver is listening on http://127.0.0.1:8080",
    "NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\nNCCL INFO comm 0x55 rank 0 nranks 8 - Init COMPLETE\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 213.1",
    "Collecting requests\nDownloading requests-2.32.3.whl\nInstalling collected packages: requests\nSuccessfully installed requests-2.32.3",
    'time=2025-01-18T01:24:54.472Z level=WARN source=amd_linux.go:61 msg="ollama recommends running the https://www.amd.com/en/support/linux-drivers" error="amdgpu version file missing: /sys/module/amdgpu/version stat /sys/module/amdgpu/version: no such file or directory"\nlevel=INFO msg="skipping rocm gfx compatibility check" HSA_OVERRIDE_GFX_VERSION=10.3.0\nmsg="inference compute" id=0 library=rocm',
)  # fmt: skip
