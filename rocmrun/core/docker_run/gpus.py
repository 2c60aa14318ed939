"""Which GPUs a published `docker run` line passes, as selectors of a profile."""

import re

from rocmrun.core.docker_run.mounts import GPU_PATHS, mounts_of
from rocmrun.core.docker_run.parser import DockerRun
from rocmrun.core.docker_run.shell_words import OPEN, plain

VISIBLE = frozenset({
    "AMD_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
})  # fmt: skip
MOST_INDICES = 512
_RENDER = re.compile(r"/dev/dri/renderD(\d+)")
_CDI = re.compile(r"[\w.-]+/[\w.-]+=(\S+)")


def select_of(run: DockerRun, visible: tuple[int, ...]) -> list[str]:
    """Return what [gpus] select says; without any sign of a GPU, none.

    *visible* is what the line's *_VISIBLE_DEVICES name.
    """
    paths = [_path(value) for value in run.all("device")]
    sources = [plain(mount.source).rstrip("/") for mount in mounts_of(run)]
    minors = [match[1] for path in paths if (match := _RENDER.fullmatch(path))]
    asked = (run.last("gpus") or "").strip("\"'")
    if visible:
        return [f"index:{number}" for number in visible]
    if listed := re.fullmatch(r"device=([\d,]+)", asked):
        return [f"index:{number}" for number in listed[1].split(",")]
    if asked.isdigit() and asked != "0":
        return [f"index:{number}" for number in range(int(asked))]
    if "/dev/dri" in (*paths, *sources):
        return ["all"]
    if minors:
        return [f"render:{minor}" for minor in dict.fromkeys(minors)]
    signs = (paths, asked, run.expansions, run.has("privileged"), run.last("runtime") == "amd")
    return ["all"] if any(signs) else ["none"]


def is_gpu(device: str) -> bool:
    """Whether a --device is what selection passes: KFD, the DRI directory, a render node, a CDI name, a variable."""
    path = _path(device)
    return bool(
        path in GPU_PATHS or OPEN in device or _RENDER.fullmatch(path) or _CDI.fullmatch(path)
    )


def indices(value: str) -> tuple[int, ...] | None:
    """Return the numbers in "0,2-3"; None where it is no list of numbers."""
    found: list[int] = []
    for part in value.split(","):
        match = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part.strip())
        if match is None:
            return None
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(dict.fromkeys(found))[:MOST_INDICES]


def _path(device: str) -> str:
    return plain(device).partition(":")[0].rstrip("/")
