"""Published docker run lines, a handful of every kind of difficulty; each names where it was published."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A line as published."""

    name: str
    source: str
    text: str
    image: str
    command: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    repaired: bool = False


RECIPES = (
    Recipe(
        name="one line of everything",
        source="ROCm/rocm-install-on-linux, docs/install/3rd-party/pytorch-install.rst",
        text="docker run -it --cap-add=SYS_PTRACE --security-opt seccomp=unconfined --device=/dev/kfd --device=/dev/dri --group-add video --ipc=host --shm-size 8G rocm/pytorch:latest-base",
        image="rocm/pytorch:latest-base",
    ),
    Recipe(
        name="a placeholder in the tag and a token",
        source="vllm-project/vllm, docs/getting_started/installation/gpu.rocm.inc.md",
        text='docker run --rm \\\n    --group-add=video \\\n    --device /dev/kfd --device /dev/dri \\\n    -v ~/.cache/huggingface:/root/.cache/huggingface \\\n    --env "HF_TOKEN=$HF_TOKEN" \\\n    -p 8000:8000 --ipc=host \\\n    vllm/vllm-openai-rocm:<tag> \\\n    --model Qwen/Qwen3-0.6B',
        image="vllm/vllm-openai-rocm:<tag>",
        command=("--model", "Qwen/Qwen3-0.6B"),
        unresolved=("$HF_TOKEN", "<tag>"),
    ),
    Recipe(
        name="nested commands in quotes",
        source="hellcatjack/strix-halo-rocm-toolkit, README.md",
        text="docker run --rm -it --device /dev/kfd --device /dev/dri --group-add \"$(stat -c '%g' \"$RENDER_NODE\")\" --user \"$(id -u):$(id -g)\" --mount \"type=bind,src=$PROJECT,dst=/workspace\" --entrypoint /bin/bash video-lab:runtime",
        image="video-lab:runtime",
        unresolved=("$(stat -c '%g' \"$RENDER_NODE\")", "$(id -u)", "$(id -g)", "$PROJECT"),
    ),
    Recipe(
        name="comments after a backslash",
        source="mudler/LocalAI, docs/content/features/GPU-acceleration.md",
        text="docker run -p 8080:8080 -e DEBUG=true -v $PWD/models:/models \\\n--gpus=all \\ # nvidia passthrough\n--device /dev/dri --device /dev/kfd \\ # AMD/Intel passthrough\nlocalai/localai:latest-gpu-vulkan",
        image="localai/localai:latest-gpu-vulkan",
        unresolved=("$PWD",),
        repaired=True,
    ),
    Recipe(
        name="a comment line inside",
        source="YanWenKun/ComfyUI-Docker, rocm7/README.adoc",
        text='docker run \\\n  --device=/dev/kfd --device=/dev/dri \\\n  -p 8188:8188 \\\n#  -v "$(pwd)"/storage:/root \\\n  -v "$(pwd)"/models:/root/ComfyUI/models \\\n  -e CLI_ARGS="" \\\n  yanwk/comfyui-boot:rocm7',
        image="yanwk/comfyui-boot:rocm7",
        unresolved=("$(pwd)",),
        repaired=True,
    ),
    Recipe(
        name="a line break without a backslash",
        source="a script in a public repository",
        text="#!/bin/bash\n\nsudo docker run -it --rm \\\n--user $UID \\\n--mount type=bind,source=/dev/sdb,target=/mnt/data_drive\n--device /dev/dri:/dev/dri \\\n--device /dev/kfd:/dev/kfd \\\nrocm-37-pytorch\n",
        image="rocm-37-pytorch",
        unresolved=("$UID",),
        repaired=True,
    ),
    Recipe(
        name="an alias and its use",
        source="sgl-project/sglang, docs/platforms/amd_gpu.md",
        text="alias drun='docker run -it --rm --network=host --privileged --device=/dev/kfd --device=/dev/dri \\\n    --ipc=host -v $HOME/dockerx:/dockerx'\ndrun -p 30000:30000 \\\n    --env \"HF_TOKEN=<secret>\" \\\n    sglang_image python3 -m sglang.launch_server --port 30000\n",
        image="sglang_image",
        command=("python3", "-m", "sglang.launch_server", "--port", "30000"),
        unresolved=("$HOME", "<secret>"),
    ),
    Recipe(
        name="variables that are options",
        source="ROCm/aiter, .github/workflows/atom-test.yaml",
        text='docker run -dt --device=/dev/kfd $DEVICE_FLAG \\\n$MODEL_MOUNT \\\n--privileged -e HF_TOKEN="${HF_TOKEN:-${{ secrets.HF_TOKEN_TEST }}}" \\\n-v "${{ github.workspace }}:/workspace" rocm/aiter-ci:atom-test',
        image="rocm/aiter-ci:atom-test",
        unresolved=("$DEVICE_FLAG", "$MODEL_MOUNT", "${{ secrets.HF_TOKEN_TEST }}", "${{ github.workspace }}"),
    ),
    Recipe(
        name="a redirection and a key at the end",
        source="honkliu/Jiuzhang, scripts/start-amd.sh",
        text="docker run --device=/dev/kfd --device=/dev/dri --privileged -p 30000:30000 rocm/sgl-dev:20250701 python3 -m sglang.launch_server --api-key=123 > /mnt/output.log 2>&1",
        image="rocm/sgl-dev:20250701",
        command=("python3", "-m", "sglang.launch_server", "--api-key=123"),
    ),
    Recipe(
        name="an argument of several lines",
        source="a script in a public repository",
        text="docker run --rm --device /dev/kfd --device /dev/dri -e ALGO=\"${ALGO:-mtp}\" --entrypoint bash vllm22-w4a8:combined -lc '\n    set -e\n    exec serve\n  '",
        image="vllm22-w4a8:combined",
        command=("-lc", "\n    set -e\n    exec serve\n  "),
    ),
    Recipe(
        name="CRLF, a prompt and joined letters",
        source="ROCm/container-toolkit, docs/container-runtime/gpu-tracker.md",
        text="> docker run --runtime=amd -itd \\\r\n-e AMD_VISIBLE_DEVICES=0-2 rocm/rocm-terminal bash\r\n",
        image="rocm/rocm-terminal",
        command=("bash",),
        repaired=True,
    ),
    Recipe(
        name="options after the image",
        source="l1na-forever/stable-diffusion-rocm-docker#8",
        text="docker run -it --device=/dev/kfd --device=/dev/dri rocm/pytorch:latest --privileged",
        image="rocm/pytorch:latest",
        command=("--privileged",),
    ),
    Recipe(
        name="Podman with an option of its own",
        source="an issue in a public repository",
        text="$ /usr/bin/podman --runtime /usr/bin/crun create --device=/dev/kfd:/dev/kfd --device=/dev/dri -v /home/ollama/.ollama:/root/.ollama:Z -p 11434:11434 --name ollama 'ollama/ollama:0.1.27-rocm'",
        image="ollama/ollama:0.1.27-rocm",
    ),
)  # fmt: skip
