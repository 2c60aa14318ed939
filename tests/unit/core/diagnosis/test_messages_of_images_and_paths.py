"""What programs print for what an image lacks and what a path refuses, what people tell of the same, and what looks alike."""

import pytest

from tests.unit.core.diagnosis.catalogue import first, sure
from tests.unit.core.diagnosis.printed_images import PRINTED as IMAGES
from tests.unit.core.diagnosis.printed_paths import PRINTED as PATHS

# What reports tell beside their error, whatever the error is.
BESIDE = (
    "",
    'image: rocm/vllm:latest\nflags: ["--device=/dev/kfd", "--device=/dev/dri", "--user=1000:1000"]\nsecurityContext: {"runAsNonRoot": true, "readOnlyRootFilesystem": true}\nas_root: works',
    "host_gpu: MI300X\nrocm: 6.4\ntorch: 2.9.1+rocm6.4\nrocminfo: lists 8 GPUs gfx942\nos: Ubuntu 24.04, docker 27.3\nexit_code: 1",
)

TOLD = (
    ("pip install torch gives the CUDA build\ngpu: RX 6800\ntorch: 2.9.1", "not-rocm-build"),
    ("torch.version.cuda 12.8, torch.version.hip None\ngpu: MI250", "not-rocm-build"),
    ("ComfyUI: AssertionError: Torch not compiled with CUDA enabled\ngpu: RX 7800 XT\nimage: python:3.12-slim", "not-rocm-build"),
    ("PyTorch in the image is the CPU version\ngpu: MI300X", "not-rocm-build"),
    ("after pip install -r requirements.txt torch is 2.9.1+cu128 instead of 2.9.1+rocm6.4", "python-torch-wheel-overwrote-rocm"),
    ("installing vllm from PyPI pulls in nvidia-cublas-cu12 and replaces torch\nbase image: rocm/pytorch", "python-torch-wheel-overwrote-rocm"),
    ("uv sync removes torch 2.9.1+rocm6.4 and installs torch 2.9.1", "python-torch-wheel-overwrote-rocm"),
    ("pip list before: torch 2.8.0+rocm6.4\npip list after: torch 2.9.0\nstep: pip install accelerate -U", "python-torch-wheel-overwrote-rocm"),
    ("  - torch==2.9.1+rocm6.4\n  + torch==2.9.1\nuv pip install -r requirements.txt", "python-torch-wheel-overwrote-rocm"),
    ("rocm/vllm:latest worked yesterday, after docker pull today it does not start\nimage: rocm/vllm:latest", "tag-moved"),
    ("RepoDigests before: rocm/vllm@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nRepoDigests after: rocm/vllm@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\ntag: rocm/vllm:main", "tag-moved"),
    ("the nightly image was rebuilt overnight and now has another torch", "tag-moved"),
    ("ImportError: librocsolver.so.0: cannot open shared object file: No such file or directory\nimage: ubuntu:24.04\ntorch: 2.4.0+rocm6.1", "missing-rocm-libs"),
    ("ldd shows libamdhip64.so.5 => not found, the image has libamdhip64.so.6", "missing-rocm-libs"),
    ("the binary was built against ROCm 5 and wants libamdhip64.so.5, which the image with ROCm 6 does not have", "missing-rocm-libs"),
    ("ollama: libhipblas.so.2 missing in the container", "missing-rocm-libs"),
    ("OSError: /opt/rocm/lib/librocm_smi64.so: cannot open shared object file: No such file or directory", "missing-rocm-libs"),
    ("the slim image has no python3", "missing-python"),
    ("python: command not found in rocm/dev-ubuntu-24.04, only python3 is there", "missing-python"),
    ("/opt/venv/bin/python3 is a symlink to /usr/bin/python3.12 that does not exist in the image", "missing-python"),
    ("import torch fails: No module named 'torch' (the venv is not active)", "missing-torch"),
    ("custom ops only ship CUDA kernels, import fails with libcudart.so.12\ngpu: MI250", "cuda-only-extension"),
    ("apex was built for CUDA: undefined symbol cudaLaunchKernel", "cuda-only-extension"),
    ("mamba_ssm needs nvcc to build\ngpu: MI210", "cuda-only-extension"),
    ("ImportError: libnccl.so.2: cannot open shared object file", "cuda-only-extension"),
    ("there is no gcc in the image, triton cannot compile its launcher", "image-missing-headers"),
    ("torch.compile fails in the slim image because there is no compiler", "image-missing-headers"),
    ("Python.h is missing, python3-dev is not installed", "image-missing-headers"),
    ("fix: apt-get install build-essential\nRuntimeError: Error compiling objects for extension", "image-missing-headers"),
    ("hipRTC: fatal error: 'stdint.h' file not found\nfix: libc6-dev", "image-missing-headers"),
    ("'omp.h' file not found", "image-missing-headers"),
    ("/opt/rocm symlink is missing in the image, only /opt/rocm-6.4.1 is there, and hipcc is not found", "image-toolchain-path"),
    ("ld.lld is not on PATH in the image", "image-toolchain-path"),
    ("HIP_PATH points to /opt/rocm-5.7 which does not exist", "image-toolchain-path"),
    ("rocminfo: command not found", "image-toolchain-path"),
    ("hipconfig: command not found", "image-toolchain-path"),
    ("python is installed below /root/.pyenv, which the user 1000 may not enter: Permission denied", "root-only-paths"),
    ("the venv's python links to /root/.local/share/uv/python, non-root users get Permission denied", "root-only-paths"),
    ("invalid device function\nprefix: /home/me/AI Apps/ComfyUI/venv", "path-with-space"),
    ("it fails when the install folder has a space in its name", "path-with-space"),
    ("the wheel has no gfx1103 kernels", "arch-not-in-image"),
    ("torch.cuda.get_arch_list(): ['gfx900', 'gfx906', 'gfx908', 'gfx90a', 'gfx942', 'gfx1030', 'gfx1100']\ngpu: gfx1151", "arch-not-in-image"),
    ("support for gfx906 was dropped in this release", "arch-not-in-image"),
    ("gfx1031 is not supported by rocBLAS, files for gfx1030 only", "arch-not-in-image"),
    ("The GPU gfx90c is unsupported", "arch-not-in-image"),
    ("built with PYTORCH_ROCM_ARCH=gfx90a;gfx942, run on gfx1100: invalid device function", "arch-not-in-image"),
    ("HIP error: the operation cannot be performed in the present state\nno kernel image\ngpu: gfx803", "arch-not-in-image"),
    ("AMDGPU_TARGETS of the build: gfx1030. Found device gfx1032. Kernel launch fails", "arch-not-in-image"),
    ("HSA_OVERRIDE_GFX_VERSION=11.0.0 on a gfx1030 card crashes with a memory access fault", "hsa-override-wrong"),
    ("the image sets HSA_OVERRIDE_GFX_VERSION=10.3.0 by default, and my gfx1100 hangs\nfix: unset it", "hsa-override-wrong"),
    ("Segmentation fault\nenv: HSA_OVERRIDE_GFX_VERSION=9.0.0\ngpu: gfx90c", "hsa-override-wrong"),
    ("bitsandbytes from PyPI does not support ROCm", "quantization-ext-not-rocm"),
    ("No module named 'awq_ext'", "quantization-ext-not-rocm"),
    ("CUDA extension not installed. (auto_gptq)", "quantization-ext-not-rocm"),
    ("load_in_8bit fails with libbitsandbytes_cpu.so\ngpu: MI250", "quantization-ext-not-rocm"),
    ("vLLM: gptq_marlin not supported on ROCm", "quantization-ext-not-rocm"),
    ("flash attention does not support RDNA2", "flash-attn-missing"),
    ("ImportError: cannot import name 'flash_attn_func' from 'flash_attn'", "flash-attn-missing"),
    ("Memory efficient attention is not available for gfx1103", "flash-attn-missing"),
    ("vLLM: Using Triton flash attention, CK flash attention is not available for Navi", "flash-attn-missing"),
    ("the container runs with a read-only root filesystem and ~/.cache cannot be written", "readonly-cache"),
    ('MIOpen cannot write its kernel cache, every start compiles again\nflags: ["--read-only"]', "readonly-cache"),
    ("HF_HOME=/models is mounted read-only, download fails: Read-only file system", "readonly-cache"),
    ("volume for /root/.cache/huggingface is owned by root, container user is 1000, Permission denied", "readonly-cache"),
    ("triton cache directory is not writable by the user", "readonly-cache"),
    ("OSError: [Errno 30] Read-only file system: '/opt/hf/models--a--b/refs/main'\nenv: {\"HF_HOME\": \"/opt/hf\"}", "readonly-cache"),
    ("RuntimeError: [Errno 13] Permission denied: '/vllm-workspace/.cache/vllm/torch_compile_cache'", "readonly-cache"),
    ("numba.core.errors: cannot cache function, no locator available", "readonly-cache"),
    ("HOME is / because the uid is arbitrary, and torch wants to write /.cache", "home-not-writable"),
    ("the user has no home directory, ~/.cache can not be created\nHOME: /nonexistent", "home-not-writable"),
    ("HOME not set in the pod, PermissionError: '/.triton'", "home-not-writable"),
    ("readOnlyRootFilesystem: true, and the app writes its log to /app/logs: Read-only file system", "readonly-rootfs"),
    ("the entrypoint tries to write /etc/passwd, which is read-only", "readonly-rootfs"),
    ("mkdir: cannot create directory '/app/tmp': Read-only file system\nflags: [\"--read-only\"]", "readonly-rootfs"),
    ("aiter compiles its modules into site-packages/aiter/jit, which a non-root user may not write", "jit-in-site-packages"),
    ("flashinfer writes into dist-packages at first start: Permission denied", "jit-in-site-packages"),
    ("the random uid of OpenShift has no entry in /etc/passwd, getpass.getuser() fails", "uid-without-passwd-entry"),
    ("running with --user 1234:1234 fails since the user does not exist in the image: getpwuid", "uid-without-passwd-entry"),
    ("KeyError: 'getpwuid(): uid not found: 1000'\nfix: set USER and LOGNAME", "uid-without-passwd-entry"),
    ("/tmp is mounted noexec, triton's compiled launcher cannot be loaded", "tmp-noexec"),
    ("ImportError: failed to map segment from shared object: /tmp/torch_extensions/x.so", "tmp-noexec"),
    ("the tmpfs for TRITON_CACHE_DIR has noexec", "tmp-noexec"),
    ("TMPDIR=/scratch/job123 does not exist inside the container, hip programs crash", "tmp-missing"),
    ("there is no /tmp in the scratch image", "tmp-missing"),
    ("read-only root filesystem without a tmpfs on /tmp: No usable temporary directory", "tmp-missing"),
    ("the model cache lies in a tmpfs of 8 GiB, download ends with No space left on device", "cache-tmpfs-oom"),
    ("HF_HOME=/dev/shm/hf: No space left on device while downloading shards", "cache-tmpfs-oom"),
    ("emptyDir medium Memory sizeLimit 4Gi for the cache, pod OOMKilled while downloading", "cache-tmpfs-oom"),
    ("TRANSFORMERS_OFFLINE=1 and the tokenizer is not in the cache", "hf-offline"),
    ("air-gapped node, from_pretrained cannot reach huggingface.co", "hf-offline"),
    ("--network none: huggingface_hub LocalEntryNotFoundError", "hf-offline"),
    ("Retrying 1/5 (Couldn't connect to the Hub): https://huggingface.co/api/models/x", "hf-offline"),
    ("entrypoint.sh has no execute bit: permission denied", "path-eacces-nonroot"),
    ("exec /docker-entrypoint.sh: permission denied\nfix: chmod +x in the Dockerfile", "path-eacces-nonroot"),
    ("/opt/conda/bin is 0700 root, so python cannot be executed by user 1000: Permission denied", "path-eacces-nonroot"),
    ("subprocess: [Errno 13] Permission denied: 'rocm-smi'", "path-eacces-nonroot"),
    ("hipModuleLoadData failed with error code 209", "arch-not-in-image"),
    ("HIP error 98 in my_kernels.cu", "arch-not-in-image"),
)  # fmt: skip

# None of them is sure to be the kind beside it.
NEAR = (
    ("ModuleNotFoundError: No module named 'torch_geometric'", "missing-torch"),
    ("ModuleNotFoundError: No module named 'torchaudio'", "missing-torch"),
    ("  Getting requirements to build wheel did not run successfully.\nModuleNotFoundError: No module named 'torch'", "missing-torch"),
    ("torch.cuda.get_arch_list(): ['gfx1030', 'gfx1100']\ngpu: gfx1100", "arch-not-in-image"),
    ("ERROR: hip process 209 exited with code 1", "arch-not-in-image"),
    ("hipMemcpy took 98 ms", "arch-not-in-image"),
    ("hip error rate 98%", "arch-not-in-image"),
    ("/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /opt/rocm/lib/librocblas.so.4)", "missing-rocm-libs"),
    ("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /opt/rocm/lib/libamdhip64.so.6)", "missing-rocm-libs"),
    ("fatal error: mylib.h: No such file or directory", "cuda-only-extension"),
    ("configure: checking for gcc... gcc", "image-missing-headers"),
    ("no compiler warnings found", "image-missing-headers"),
    ("the build needs a compiler flag: -O3", "image-missing-headers"),
    ("this image has no python2 support any more", "missing-python"),
    ("python: can't open file '/app/main.py': [Errno 2] No such file or directory", "missing-python"),
    ("No matching distribution found for python-foo", "missing-python"),
    ("bash: /app/run.sh: cannot execute: required file not found\nnote: a shell script of the python project", "missing-python"),
    ("exec /usr/local/bin/serve: exec format error", "path-eacces-nonroot"),
    ('exec: "/app/run.sh": permission denied\nnote: noexec mount', "path-eacces-nonroot"),
    ("fork/exec /tmp/x/main: permission denied", "path-eacces-nonroot"),
    ("fork/exec /tmp/x/main: permission denied", "tmp-noexec"),
    ("bash: ./x.sh: /bin/bash: bad interpreter: Permission denied", "tmp-noexec"),
    ("gated repo: https://huggingface.co/meta-llama/x\n401 Client Error: Unauthorized for url: https://huggingface.co/meta-llama/x", "hf-offline"),
    ("OSError: org/m does not appear to have a file named config.json. Checkout 'https://huggingface.co/org/m/tree/main' for available files.", "hf-offline"),
    ("dial tcp: lookup registry-1.docker.io: no such host", "hf-offline"),
    ("requests.exceptions.ConnectionError: host='api.openai.com': Failed to resolve 'api.openai.com'", "hf-offline"),
    ("INFO connected to the hub, offline mode is off", "hf-offline"),
    ("npm ERR! enoent ENOENT: no such file or directory, open '/app/package.json'", "tmp-missing"),
    ("mktemp: failed to create file via template '/tmp/tmp.XXXX': No space left on device", "tmp-missing"),
    ("OSError: [Errno 28] No space left on device: '/tmp/x'", "tmp-missing"),
    ("rm: cannot remove '/tmp/x': No such file or directory", "tmp-missing"),
    ("OSError: [Errno 30] Read-only file system: '/tmp/torchinductor_app/x'", "tmp-missing"),
    ("mount: /mnt/usb: cannot mount /dev/sdb1 read-only.", "readonly-rootfs"),
    ("EXT4-fs (sda1): Remounting filesystem read-only", "readonly-rootfs"),
    ("touch: cannot touch '/mnt/ro/x': Read-only file system", "readonly-rootfs"),
    ("open /.dockerenv: permission denied", "home-not-writable"),
    ("cp: cannot stat '/home/app/.env': No such file or directory", "readonly-cache"),
    ("HOME=/root\nHOME is /root", "home-not-writable"),
    ("error: could not lock config file /root/.gitconfig: File exists", "home-not-writable"),
    ("quantization is currently not supported in npu", "quantization-ext-not-rocm"),
    ("gptq model loaded, quantization awq_marlin kernel selected", "quantization-ext-not-rocm"),
    ("CUDA graphs only supported on CUDA for this model", "quantization-ext-not-rocm"),
    ("Using Flash Attention backend on gfx942", "flash-attn-missing"),
    ("xFormers was built for:\n    PyTorch 2.9.0+cu128 with CUDA 1208 (you have 2.8.0+cu126)", "cuda-only-extension"),
    ("sage attention enabled", "flash-attn-missing"),
    ("torch 2.9.1+rocm6.4\nvllm 0.12.0\npip list", "python-torch-wheel-overwrote-rocm"),
    ("Successfully installed torch-2.9.1+rocm6.4", "python-torch-wheel-overwrote-rocm"),
    ("Attempting uninstall: torch\n  Found existing installation: torch 2.8.0+rocm6.4\nSuccessfully installed torch-2.9.1+rocm6.4", "python-torch-wheel-overwrote-rocm"),
    ("there is no ROCm build for Windows in this version of the CPU build", "not-rocm-build"),
    ("Cannot find CO2 sensor in the bundle", "arch-not-in-image"),
    ("the CPU has no gfx part", "arch-not-in-image"),
    ("RepoDigests: rocm/vllm@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "tag-moved"),
    ("HSA_OVERRIDE_GFX_VERSION=10.3.0 is set\nepoch 1 loss 0.3", "hsa-override-wrong"),
    ("docker compose build: no space in the build context", "path-with-space"),
    ('CMake Warning: By not providing "FindOpenMP.cmake" in CMAKE_MODULE_PATH', "image-toolchain-path"),
    ("supervisor: can't find command '/usr/bin/redis-server'", "missing-python"),
    ("ERROR: can't locate URI/Escape.pm in @INC", "image-toolchain-path"),
    ("Checking for ninja: not found, using make", "image-missing-headers"),
    ("Failed to find nvcc, building for ROCm instead\nbuild: ok", "cuda-only-extension"),
    ("user is missing", "uid-without-passwd-entry"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "origin", "text"), [*IMAGES, *PATHS])
def test_a_message_has_its_kind_first(kind: str, origin: str, text: str) -> None:
    """Alone, and with what reports tell beside it."""
    assert origin
    assert {first(f"{text}\n{told}") for told in BESIDE} == {kind}


@pytest.mark.parametrize(("told", "kind"), TOLD)
def test_who_tells_instead_of_pasting_is_understood(told: str, kind: str) -> None:
    """By what is missing or refused, whatever the words around it."""
    assert first(told) == kind


@pytest.mark.parametrize(("text", "kind"), NEAR)
def test_what_looks_alike_is_not_sure_to_be_it(text: str, kind: str) -> None:
    """Another module, another number, another host, something that went well."""
    assert kind not in sure(text)


def test_no_message_stands_twice() -> None:
    texts = [text for _, _, text in (*IMAGES, *PATHS)]

    assert len(texts) == len(set(texts))
