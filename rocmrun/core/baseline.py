"""What every container gets when the profile asks for nothing: sizes, directories, environment. Values only."""

from rocmrun.core.plan import PlannedTmpfs
from rocmrun.core.text import GIB, MIB

HOME = "/home/rocmrun"
TMP = "/tmp"  # noqa: S108  # the container's own, a tmpfs
USER_NAME = "rocmrun"
HOSTNAME = "rocmrun"

PRIVATE = 0o700
NOFILE = 65536
SHM_PER_GPU = GIB
TMP_SHARE = 8  # /tmp may take an eighth of the memory limit,
TMP_LEAST, TMP_MOST = 256 * MIB, 16 * GIB  # within these bounds
VOLUME_TMPFS = GIB

# Libraries that keep compiled kernels or models look here; without a writable place they fail or
# compile again at each start (MIOpen, Triton, torch.compile, Numba, Matplotlib, vLLM, Hugging Face).
CACHE_VARIABLES = {
    "XDG_CACHE_HOME": ".cache",
    "MIOPEN_USER_DB_PATH": ".cache/miopen-db",
    "MIOPEN_CUSTOM_CACHE_DIR": ".cache/miopen",
    "TRITON_CACHE_DIR": ".cache/triton",
    "TORCHINDUCTOR_CACHE_DIR": ".cache/inductor",
    "TORCH_EXTENSIONS_DIR": ".cache/torch-extensions",
    "NUMBA_CACHE_DIR": ".cache/numba",
    "MPLCONFIGDIR": ".cache/matplotlib",
    "HF_HOME": ".cache/huggingface",
    "VLLM_CACHE_ROOT": ".cache/vllm",
}

# torchrun resolves the host's name, NCCL and Gloo look for an interface: with no network there is only lo.
OFFLINE_VARIABLES = {
    "NCCL_SOCKET_IFNAME": "lo",
    "GLOO_SOCKET_IFNAME": "lo",
    "MASTER_ADDR": "127.0.0.1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}

# What HIP, ROCr and CUDA read at run time: an index list over the devices that are there.
INDEX_VARIABLES = (
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "CUDA_VISIBLE_DEVICES",
)
# What vendors' container runtimes read: they would inject more devices than the plan names.
RUNTIME_VARIABLES = {"AMD_VISIBLE_DEVICES": "none", "NVIDIA_VISIBLE_DEVICES": "void"}
NO_DEVICES = "-1"


def tmp_size(memory_bytes: int | None) -> int:
    """Return the size of /tmp in bytes under a memory limit."""
    share = (memory_bytes or TMP_MOST * TMP_SHARE) // TMP_SHARE
    return max(TMP_LEAST, min(TMP_MOST, share))


def home_in_memory(memory_bytes: int | None) -> PlannedTmpfs:
    """Return HOME as a tmpfs: without a cache, and for every probe, which must not read what a workload left."""
    size = tmp_size(memory_bytes)
    return PlannedTmpfs(target=HOME, size_bytes=size, executable=True, mode=PRIVATE)


def shm_size(gpus: int, memory_bytes: int | None) -> int:
    """Return the default size of /dev/shm: 1 GiB a GPU and one more, at most half of the memory limit."""
    wanted = (gpus + 1) * SHM_PER_GPU
    return min(wanted, memory_bytes // 2) if memory_bytes else wanted
