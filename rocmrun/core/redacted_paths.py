"""Paths with what is somebody's taken out: directories that every machine has stay, since faults are told by them."""

import re
from collections.abc import Callable

from rocmrun.core.public_words import is_public

# Replaces a name: (kind, name) → what stands in its place.
Alias = Callable[[str, str], str]

# An absolute path, one from home, or one from "." on; not the "//" of a URL, nor "and/or".
PATH = re.compile(
    r"(?<![\w<>.\\/-])(?!//)(?:~[\w.-]{0,64}|\.{1,2})?(?:/[\w.+@%=~#{}$<>…-]{1,255}){1,40}/?"
)
QUOTED_PATH = re.compile(
    r"""(?<=")(?:~|\.{1,2})?/[^"\n]{1,1000}(?=")|(?<=')(?:~|\.{1,2})?/[^'\n]{1,1000}(?=')"""
)
_HOMES = frozenset({"home", "Users"})
# Logins that images and cloud hosts come with.
EVERYBODYS = frozenset(
    {"rocmrun", "ubuntu", "debian", "root", "user", "app", "jenkins", "runner", "vllm", "rocm-user"}
)
# Below these all is the distribution's, the kernel's or ROCm's.
_WHOLE = re.compile(
    r"/(?:proc|sys/(?:bus|class|devices|firmware|kernel|module|block)|opt/rocm[\w.-]*"
    r"|usr/(?:bin|sbin|lib(?:32|64|exec)?|include|src)|lib(?:32|64)?|s?bin|boot)(?=/|\Z)"
)
_STDLIB = re.compile(r"python3\.\d{1,2}")
_PACKAGES = frozenset({"site-packages", "dist-packages"})
# What stands in a place already: words as programs print names, so that rules read them as such.
ALIAS = re.compile(
    r"(?:BLOB|DIGEST|EMAIL|GPU|HOST|ID|IMAGE|IP|MAC|NAME|PATH|REGISTRY|TAG|USER|VOLUME|WORD)-\d{1,7}(?!\d)|<[a-z]+>"
)
_SUFFIXES = frozenset((
    "py", "pyc", "so", "json", "jsonl", "toml", "yaml", "yml", "txt", "log", "md", "sh", "bin", "safetensors", "pt",
    "pth", "gguf", "onnx", "npy", "npz", "pkl", "csv", "parquet", "hip", "cu", "c", "cc", "cpp", "h", "hpp", "o", "a",
    "hsaco", "co", "db", "udb", "ufdb", "kdb", "fdb", "lock", "sock", "conf", "cfg", "ini", "service", "slice",
    "scope", "socket", "rules", "ko", "whl", "tar", "gz", "zip", "zst", "xz",
))  # fmt: skip


def redacted_path(path: str, words: frozenset[str], alias: Alias) -> str:
    """Return *path* with an alias for every part that is not public."""
    start, separator, rest = path.partition("/")
    if start.startswith("~") and len(start) > 1:
        start = "~" + alias("user", start[1:])
    parts = rest.split("/") if separator else []
    trusted = bool(_WHOLE.match(path))
    if trusted and _PACKAGES.isdisjoint(parts):
        return start + separator + rest
    shown: list[str] = []
    for number, part in enumerate(parts):
        before = parts[number - 1] if number else ""
        if part in _PACKAGES:
            trusted = False
        elif _STDLIB.fullmatch(before) or before in _PACKAGES:
            # Below a package that everybody has, the files are everybody's.
            trusted = _STDLIB.fullmatch(before) is not None or is_public(_stem(part), words)
        shown.append(part if trusted else _shown(part, before, words, alias))
    return start + separator + "/".join(shown)


def _shown(part: str, before: str, words: frozenset[str], alias: Alias) -> str:
    if not part or ALIAS.fullmatch(part):
        return part
    if before in _HOMES and part not in EVERYBODYS:
        return alias("user", part)
    if is_public(part, words):
        return part
    suffix = _suffix(part)
    return alias("path", part.removesuffix(suffix)) + suffix


def _stem(part: str) -> str:
    return part.removesuffix(_suffix(part))


def _suffix(part: str) -> str:
    """Return ".py" of "model.py": what kind of file it is tells nobody whose."""
    name, dot, last = part.rpartition(".")
    return dot + last if name and last.lower() in _SUFFIXES else ""
