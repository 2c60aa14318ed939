"""What programs print for what an image lacks and what a path refuses, what people tell of the same, and what looks alike."""

import pytest

from tests.unit.core.diagnosis.catalogue import first, sure
from tests.unit.core.diagnosis.printed_images import PRINTED as IMAGES
from tests.unit.core.diagnosis.printed_paths import PRINTED as PATHS
from tests.unit.core.diagnosis.told_of_images_and_paths import TOLD

# What reports tell beside their error, whatever the error is.
BESIDE = (
    "",
    'image: rocm/vllm:latest\nflags: ["--device=/dev/kfd", "--device=/dev/dri", "--user=1000:1000"]\nsecurityContext: {"runAsNonRoot": true, "readOnlyRootFilesystem": true}\nas_root: works',
    "host_gpu: MI300X\nrocm: 6.4\ntorch: 2.9.1+rocm6.4\nrocminfo: lists 8 GPUs gfx942\nos: Ubuntu 24.04, docker 27.3\nexit_code: 1",
)

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
    ("/tmp/tmpx1/cuda_utils.so: cannot enable executable stack as shared object requires: Permission denied", "path-eacces-nonroot"),
    ("Error: crun: setrlimit `RLIMIT_MEMLOCK`: Operation not permitted: OCI permission denied", "path-eacces-nonroot"),
    ("the GPU is supported: gfx1100 is in the list of targets", "arch-not-in-image"),
    ("no such file for this build of gfx1100", "arch-not-in-image"),
    ("unset HSA_OVERRIDE_GFX_VERSION; python train.py\nepoch 1 loss 0.3", "hsa-override-wrong"),
    ("Failed to load libfoo.so: undefined symbol: bar", "missing-rocm-libs"),
    ("loaded libamdhip64.so.6 from /opt/rocm/lib", "missing-rocm-libs"),
    ("downloading from Hugging Face: 100%", "hf-offline"),
    ("nohup: failed to run command 'nvidia-smi': No such file or directory", "missing-python"),
    ("the user is not in the docker group", "uid-without-passwd-entry"),
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
