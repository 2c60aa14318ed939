"""What programs print when processes or GPUs cannot reach each other: kind, where the message stands, the message."""

# An origin names where the message's own words were read: a file of the repository, at a tag where one
# is named, or what a program of that version holds or printed. One that begins with "text only:" was
# found in public sources or logs, and not in the file that it names, which was not opened. One that
# begins with "unverified:" was looked for there and not found, or could not be looked for.
PRINTED: tuple[tuple[str, str, str], ...] = (
    # /dev/shm.
    ("shm-too-small", "ray-project/ray python/ray/_private/services.py", "WARNING: The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available. This will harm performance! You may be able to free up space by deleting files in /dev/shm. If you are inside a Docker container, you can increase /dev/shm size by passing '--shm-size=10.24gb' to 'docker run'"),
    ("shm-too-small", "python/cpython Lib/multiprocessing/synchronize.py", "    sl = self._semlock = _multiprocessing.SemLock(\nOSError: [Errno 28] No space left on device"),
    ("shm-too-small", "python/cpython Lib/multiprocessing/shared_memory.py", '  File "/usr/lib/python3.12/multiprocessing/shared_memory.py", line 114, in __init__\n    os.ftruncate(self._fd, size)\nOSError: [Errno 28] No space left on device'),
    ("shm-too-small", "torch 2.13, libtorch", "RuntimeError: unable to allocate shared memory(shm) for file </torch_812_33>: No space left on device (28)"),
    ("shm-too-small", "open-mpi/ompi opal/mca/shmem/mmap/help-opal-shmem-mmap.txt", "It appears as if there is not enough space for /dev/shm/vader_segment.node.0 (the shared-memory backing\nfile). It is likely that your MPI job will now either abort or experience\nperformance degradation."),
    ("shm-too-small", "openucx/ucx src/uct/sm/mm/posix/mm_posix.c", "mm_posix.c:232  UCX  ERROR   Not enough memory to write total of 4292720 bytes. Please check that /dev/shm or the directory you specified has more available memory."),
    ("shm-too-small", "triton-inference-server/python_backend src/shm_manager.cc", "Failed to increase the shared memory pool size for key 'triton_python_backend_shm_region_1' to 67108864 bytes. If you are running Triton inside docker, use '--shm-size' flag to control the shared memory region size. Error: No space left on device"),
    ("shm-too-small", "triton-inference-server/python_backend src/shm_manager.cc", "Unable to initialize shared memory key 'triton_python_backend_shm_region_1' to requested size (1048576 bytes). If you are running Triton inside docker, use '--shm-size' flag to control the shared memory region size."),
    ("shm-too-small", "PostgreSQL 15, postgres", 'ERROR:  could not resize shared memory segment "/PostgreSQL.1234" to 8388608 bytes: No space left on device'),
    ("shm-too-small", "NVIDIA/nccl v2.23.4-1 src/misc/shmutils.cc", "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Xq3 (size 9637888), error: No space left on device (28)"),
    ("shm-too-small", "text only: PaddlePaddle/Paddle dataloader", "ERROR: Unexpected BUS error encountered in DataLoader worker. This might be caused by insufficient shared memory (shm), please check whether use_shared_memory is set and storage space in /dev/shm is enough"),
    ("shm-too-small", "pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py", "  exitcode  : -7 (pid: 88)\n  traceback : Signal 7 (SIGBUS) received by PID 88"),
    ("shm-too-small", "unverified: python/cpython Lib/multiprocessing/shared_memory.py", "OSError: [Errno 28] No space left on device: '/psm_1a2b3c'"),
    ("shm-too-small", "glibc po/de.po", "DataLoader worker: Bus-Zugriffsfehler\n/dev/shm: 64M"),
    ("shm-too-small", "glibc po/zh_CN.po", "总线错误 (核心已转储)\nshm: 64M, torch DataLoader"),
    # No network.
    ("network-none", "facebookincubator/gloo gloo/transport/tcp/device.cc", "[enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth0"),
    ("network-none", "ROCm/vllm vllm/utils/__init__.py", "WARNING Failed to get the IP address, using 0.0.0.0 by default. The value can be set by the environment variable VLLM_HOST_IP or HOST_IP."),
    ("network-none", "Open MPI 4.1.4 help-oob-base.txt", "No network interfaces were found for out-of-band communications. We require\nat least one available network for out-of-band messaging."),
    ("network-none", "torch 2.13, libtorch", "Failed to look up the IP address for the hostname (EAI_NONAME: unknown node or service (this error originated at tensorpipe/transport/uv/utility.cc:97)), defaulting to 127.0.0.1"),
    ("network-none", "NVIDIA/nccl src/transport/net_socket.cc", "NCCL WARN NET/Socket : no interface found"),
    ("network-none", "torch 2.13, libtorch", "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: 0, code: -99, name: EADDRNOTAVAIL, message: address not available"),
    # Handles of memory between processes.
    ("rccl-p2p-ipc", "ROCm/rccl rocm-5.4.1 src/include/checks.h", "/app/rccl/hipify/src/transport/p2p.cc:275 NCCL WARN HIP failure 'invalid argument'"),
    ("rccl-p2p-ipc", "openucx/ucx src/uct/rocm/ipc/rocm_ipc_md.c", "rocm_ipc_md.c:72   UCX  ERROR Failed to create ipc for 0x2b651b200000/620000"),
    ("rccl-p2p-ipc", "pytorch/pytorch torch/multiprocessing/reductions.py", '  File "/opt/venv/lib/python3.10/site-packages/torch/multiprocessing/reductions.py", line 355, in reduce_tensor\n    ) = storage._share_cuda_()\nRuntimeError: HIP error: invalid argument'),
    ("rccl-p2p-ipc", "pytorch/pytorch torch/multiprocessing/reductions.py", '  File "/opt/venv/lib/python3.10/site-packages/torch/multiprocessing/reductions.py", line 181, in rebuild_cuda_tensor\n    storage = storage_cls._new_shared_cuda(\nRuntimeError: HIP error: invalid device pointer'),
    # The lock of SMI, and the IOMMU.
    ("stale-shm-lock", "ROCm/rocm_smi_lib third_party/shared_mutex/shared_mutex.cc", "Failed to initialize RSMI device mutex after 5 seconds. Previous execution may not have shutdown cleanly. To fix problem, stop all rocm_smi programs, and then delete the rocm_smi* shared memory files in /dev/shm.: Success"),
    ("iommu-p2p", "text only: torvalds/linux drivers/iommu/amd/iommu.c", "AMD-Vi: Event logged [IO_PAGE_FAULT device=c1:00.0 domain=0x001f address=0x7f2a00000000 flags=0x0020]\nall_reduce_perf hangs"),
)  # fmt: skip

# What people tell without pasting a message.
TOLD: tuple[tuple[str, str], ...] = (
    ("shm-too-small", "DataLoader crashes with 8 workers\nnum_workers=0: works\n/dev/shm: 64M"),
    ("shm-too-small", "ncclSystemError: unhandled system error\nfix: --shm-size=8g"),
    ("shm-too-small", "vllm with TP=2 does not start in docker, NCCL WARN\ndf -h /dev/shm: 64M 64M 0 100%"),
    ("shm-too-small", "Bus error (core dumped)\nworks_with: --ipc=host"),
    ("shm-too-small", "dataloader hangs as soon as num_workers > 0\ndf /dev/shm: 64M, 64M used"),
    ("network-none", "torchrun with one node does not start\n--network: none\nNCCL_SOCKET_IFNAME=lo: works"),
    ("network-none", "NCCL finds no interface\nnetwork: none"),
    ("pid-namespace", "two containers exchange GPU buffers through CUDA IPC, the second cannot open the handle\nfix: --pid=host in both"),
    ("pid-namespace", "hipIpcOpenMemHandle: invalid context\nfix: shareProcessNamespace: true\ncontainers: 2 in one pod"),
    ("pid-namespace", "pidfd_open: No such process\ncontainers: 2, --ipc=host"),
    ("stale-shm-lock", "rocm-smi hangs since another user's run was killed\n/dev/shm: rocm_smi_card0, owned by that user"),
    ("stale-shm-lock", "rocm-smi hangs for ever after a job was killed\nfix: rm /dev/shm/rocm_smi*"),
    ("iommu-p2p", "training with 2 GPUs gives NaN, with one it is right\nfix: iommu=pt"),
    ("iommu-p2p", "two GPUs hang in the first collective\nfix: amd_iommu=off"),
)  # fmt: skip

# What only looks like it: no cause may be sure.
NONE_OF_THEM: tuple[tuple[str, str], ...] = (
    ("text only: vllm-project/vllm shm_broadcast.py", "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization)."),
    ("torch 2.13, libtorch", "RuntimeError: unable to open shared memory object </torch_22_1> in read-write mode: Too many open files (24)"),
    ("python/cpython Lib/multiprocessing/reduction.py", "RuntimeError: received 0 items of ancdata"),
    ("text only: NVIDIA container images' entrypoint", "NOTE: The SHMEM allocation limit is set to the default of 64MB.  This may be\n   insufficient for PyTorch.  NVIDIA recommends the use of the following flags:\n   docker run --gpus all --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 ..."),
    ("ROCm/triton python/triton/runtime/errors.py", "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 65792, Hardware limit: 65536. Reducing block sizes or `num_stages` may help."),
    ("torch 2.13, libtorch", "The client socket has timed out after 60s while trying to connect to (10.0.0.1, 29500)."),
    ("text only: pytorch/pytorch ProcessGroupNCCL.cpp", "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 milliseconds before timing out."),
    ("ROCm/rccl src/init.cc", 'NCCL WARN Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!'),
    ("told", "curl: (6) Could not resolve host: index.example.org\nfix: DNS of the host"),
    ("told", "the web page of the app shows 404\nfix: --pid=host\nflags: --ipc=host"),
    ("told", "epoch 1 done\nfix: --shm-size=8g"),
)  # fmt: skip
