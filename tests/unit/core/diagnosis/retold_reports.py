"""Public reports in which somebody tells more than pastes, each with where it stands; none of them is in a list."""

REPORTS: tuple[tuple[str, str, str], ...] = (
    ("aquasecurity/trivy#1772", "home-not-writable", """\
  - unable to initialize the cache:
    failed to create cache dir:
    mkdir /.cache: permission denied"""),
    ("thelastpickle/cassandra-reaper#1506", "readonly-rootfs", """\
The entrypoint of reaper's Docker image will manipulate the root FS to generate the configuration files.
This is not permitted when running in a pod with `readOnlyRootFilesystem` set to true."""),
    ("zalando-incubator/kubernetes-on-aws#1213", "readonly-rootfs", """\
EAS creates a log file somewhere and crashes on startup if the FS is read-only."""),
    ("facebookresearch/detectron2#384", "shm-too-small", """\
`RuntimeError: DataLoader worker (pid(s) 25) exited unexpectedly`
fix: --shm-size="8g" to the docker command"""),
    ("Crosstalk-Solutions/project-nomad#1075", "hsa-override-wrong", """\
Forcing 11.0.0 on these is unnecessary on the 890M and actively wrong on the 780M, which lacks the gfx1100 WMMA instructions
env: {"HSA_OVERRIDE_GFX_VERSION": "11.0.0"}
gpu: Radeon 780M (gfx1103)"""),
    ("triton-lang/triton#518", "readonly-cache", """\
PermissionError: [Errno 13] Permission denied: '/tmp/triton/d645ef562cfc8f31ab6c7b88eccac0f6.lock'
several: multiple people use triton on a shared machine
fix: TRITON_CACHE_DIR=/tmp/triton_$user"""),
    ("goharbor/harbor#12933", "readonly-cache", """\
{"level":"fatal","msg":"Error: checking config: creating trivy cache dir: mkdir /home/scanner/.cache/trivy: permission denied"}
fix: volume given to 10000:10000"""),
    ("facebookresearch/sam2#562", "python-torch-wheel-overwrote-rocm", """\
I have already installed torch==2.4.0+rocm6.3.2, but when I execute pip install sam2, it still tries to download other versions of torch.
GPU models and configuration: AMD Radeon RX 7900 XT (gfx1100)"""),
    ("HAMM3REXTREME/ComfyUI-Installer#15", "not-rocm-build", """\
with choosing AMD as my GPU, since it will always download the Nvidia components of pytorch.
Afterwards it gives me the "No Nvidia drivers found on your system" error."""),
    ("carson-katri/dream-textures#635", "not-rocm-build", """\
Pytorch 2.0 is installed for AMD leaving the GPU non-functional.
In the current *main state it grabs Torch CUDA, Triton, etc."""),
    ("AUTOMATIC1111/stable-diffusion-webui#8808", "not-rocm-build", """\
RuntimeError: Torch is not able to use GPU; add --skip-torch-cuda-test to COMMANDLINE_ARGS variable to disable this check
gpu: AMD 6800 XT
maintainer: it installed the wrong torch and just grabbed normal pytorch
fix: pip install torch torchvision --index-url https://download.pytorch.org/whl/rocm5.4.2"""),
    ("pixelfed/pixelfed#3915", "selinux-mount", """\
Without the `:Z` on a bind mount volume, Podman will get permission denied"""),
    ("kworkflow/kworkflow#1020", "selinux-mount", """\
SELinux is causing permission troubles to podman containers when the current mode is set to "enforcing".
fix: add :z when mounting the volume"""),
    ("mindsdb/mindshub#11392", "hf-offline", """\
Since you're running your image without internet access the tokenizer cannot be downloaded from `huggingface.co`.
fix: tokenizer files in the image"""),
    ("ROCm/MIOpen#2740", "miopen-first-run-slow", """\
With MIOpen 3.2.0 the measurement times have become insane, >4 minutes of extra time for the first run of a diffusers model for every shape.
gpu: 7900XTX"""),
    ("pocket-id/pocket-id#321", "path-eacces-nonroot", """\
Container exits with `/bin/sh: /app/scripts/docker/entrypoint.sh: Permission denied`
user: 1001:1001"""),
    ("nickjj/wait-until#1", "path-eacces-nonroot", """\
I get permission error when I run the `wait-until` script.
mode: 711
fix: chmod 755 /usr/local/bin/wait-until"""),
    ("ecederstrand/exchangelib#451", "uid-without-passwd-entry", """\
containers are run as random userids, the getpwuid() produces an error"""),
    ("IceWhaleTech/ZimaOS#323", "kfd-missing-on-host", """\
docker run -d --device /dev/kfd --device /dev/dri -v ollama:/root/.ollama -p 11434:11434 --name ollama ollama/ollama:rocm
it does not work because /dev/kfd is missing."""),
    ("Saganaki22/ComfyUI-Maya1_TTS#13", "quantization-ext-not-rocm", """\
relies on bitsandbytes for 4bit and 8bit quantization which doesn't work on AMD ROCm."""),
    ("jellyfin/jellyfin.org#576", "kfd-not-mapped", """\
AMD GPU OpenCL does not work in docker
devices: ["/dev/dri/renderD128", "/dev/dri/kfd"]
fix: /dev/kfd, the path in the documentation was wrong"""),
    ("actions/runner-images#3812", "seccomp-clone3", """\
glibc 2.34 will try to use `clone3` if available. Presently this does not work because the `clone3` system call is blocked by seccomp policy."""),
    ("ROCm/TheRock#8357", "gpu-hang-reset", """\
starting video interpolation causes an AMDGPU compute ring timeout followed by a full GPU reset.
gpu: gfx90c"""),
    ("NeptuneHub/AudioMuse-AI#787", "cpu-quota-throttling", """\
Analysis ONNX sessions size their thread pool from the host, not the container CPU limit
measured: load 28.6 on 12 cores at 60 % idle with zero iowait
limits: cpus 6"""),
    ("benfred/implicit#580", "cpu-quota-throttling", """\
On my host machine it takes ~8 minutes to finish.
In my K8S cluster it takes ~100 minutes to finish.
The only problem I can see is that the job consumes all available cores in K8S. And here comes throttling (cpu_limits=20)."""),
    ("openvinotoolkit/model_server#2721", "cpu-quota-throttling", """\
OpenVINO spawns threads for the full host core count while the cgroup only grants ~1 core of runtime, so the kernel throttles the process every scheduling period"""),
    ("ROCm/cvs#451", "memlock", """\
Docker defaults to 8MB; breaks `ibv_reg_mr` for RDMA
change: --ulimit memlock=-1"""),
    ("wheelos/apollo-lite#290", "memlock", """\
Without sufficient memlock resource limits, applications using io_uring fail with EPERM (Operation not permitted) or ENOMEM (Out of memory) errors inside Docker containers."""),
    ("benfred/py-spy#12", "cap-sys-ptrace", """\
$ py-spy --flame profile.svg -- python manage.py runserver 0:8000
Permission Denied: Try running again with elevated permissions by going 'sudo env "PATH=$PATH" !!'
fix: --cap-add SYS_PTRACE"""),
    ("flagos-ai/FlagCX#588", "tag-moved", """\
that tag was re-pushed on 2026-09-11 with a layer that runs a conversion removing the `hcoll` package. Every MPI test link then fails on undefined `hcoll_*` symbols. The pinned digest is the last one whose runs passed."""),
    ("ehrlinger/ggRandomForests#254", "tag-moved", """\
Three regressions reached this workflow through the floating tag, none visible until a manual dispatch
fix: pinned by digest instead of :latest"""),
    ("FujitsuPolycom/sparkring#75", "image-manifest-unknown", """\
`ghcr.io/fujitsupolycom/gb10-vllm-serving@sha256:df0e2068` returns **HTTP 404** with `MANIFEST_UNKNOWN`."""),
    ("sgl-project/sglang#31063", "tag-moved", """\
A code-vs-image bisect isolated the regression to the docker image, not sglang code
resolves: the latest MI35x image
good: the Jun-23 image"""),
    ("Comfy-Org/ComfyUI#14865", "flash-attn-missing", """\
Flash Attention failed, using default SDPA"""),
    ("askalf/dario#261", "cap-drop-dac-override", """\
chown: /home/dario/.dario: Permission denied
compose: cap_drop: ALL
symptom: an infinite restart loop"""),
    ("HKUDS/nanobot#5295", "cap-drop-dac-override", """\
nanobot-gateway  | /bin/sh: 0: cannot open /usr/local/bin/entrypoint.sh: Permission denied
nanobot-gateway exited with code 2 (restarting)
works: without cap-drop ALL"""),
    ("nyu-systems/Grendel-GS#9", "network-none", """\
[W socket.cpp:601] [c10d] The IPv6 network addresses of (user, 53821) cannot be retrieved (gai error: -3 - Temporary failure in name resolution).
fix: 127.0.0.1 user in /etc/hosts"""),
    ("msr-fiddle/pipedream#32", "network-none", """\
RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:127] rp != nullptr. Unable to find address for: dgx-1.ai"""),
    ("redhatci/ansible-collection-redhatci-ocp#164", "pids-limit", """\
multiple downloads exceed the default limit for the number of sub-processes that the container process could spawn
fix: podman run --pids-limit=-1"""),
    ("kubernetes-sigs/kind#2830", "pids-limit", """\
netplugin failed: "runtime: failed to create new OS thread (have 9 already; errno=11)
runtime: may need to increase max user processes (ulimit -u)
fix: --pids-limit=-1"""),
    ("microsoft/WSL#40988", "wsl-dxg", """\
RuntimeError: No HIP GPUs are available.
command: wslc run -d --name=comfyui-amd --gpus all -p 8188:8188 yanwk/comfyui-boot:rocm7
/dev/kfd and /dev/dri are completely missing from the container's device namespace.
os: Microsoft Windows [Version 10.0.26200.8655], WSL 2.9.3.0"""),
    ("pytorch/pytorch#116696", "image-missing-headers", """\
We need to specify that we could not use `torch.compile` in official Pytorch runtime docker images.
For CPU images `g++` is missing"""),
    ("olcf/olcf_containers_examples#6", "readonly-cache", """\
Triton is trying to build JIT dependencies. It fails to retrieve these dependencies because they cannot be written in the correct location
runtime: apptainer
fix: another cache location which is writable"""),
    ("vllm-project/vllm#41585", "amdsmi-empty", """\
Fixes vLLM startup failures on AMD GPUs inside containers where `amdsmi` cannot access sysfs/hwmon paths even though the GPU is fully functional.
Failed to infer device type."""),
    ("vllm-project/vllm#24576", "amdsmi-empty", """\
DEBUG 09-10 18:43:10 [__init__.py:120] ROCm platform is not available because: No module named 'amdsmi'
INFO 09-10 18:43:10 [__init__.py:220] No platform detected, vLLM is running on UnspecifiedPlatform"""),
    ("ray-project/ray#52701", "hip-visible-devices-empty", """\
AssertionError: Inconsistant values found. Please use either HIP_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES."""),
    ("radixark/miles#1116", "hip-visible-devices-empty", """\
This fixes Ray startup/job submission on ROCm hosts: Ray's AMD accelerator manager conflicts with `CUDA_VISIBLE_DEVICES`
fix: mirrors CUDA_VISIBLE_DEVICES into HIP_VISIBLE_DEVICES and unsets the first"""),
    ("ROCm/TheRock#1575", "missing-rocm-libs", """\
E   ImportError: libnuma.so.1: cannot open shared object file: No such file or directory"""),
    # Libraries of the host that were bound into a container without what they need.
    ("apptainer/apptainer#1621", "nothing", """\
rocBLAS error: Cannot read /.singularity.d/libs/rocblas/library/TensileLibrary.dat: Illegal seek"""),
    ("apptainer/apptainer#2606", "nothing", """\
/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.33' not found (required by /.singularity.d/libs/libnuma.so.1)"""),
    # A word on a library that nothing needed.
    ("ROCm/TheRock#7895", "nothing", """\
E-001h rocSHMEM Could not open libnuma. Returning       NUMAWrapper@src/gda/numa_wrapper.cpp:48
result: nothing fails"""),
)  # fmt: skip
