"""What an image says it holds: ROCm, torch, python, GPU targets, user, each with where it was read.

Claims, not truth: a build argument can differ from what was built, a tag from what is in it. So each has its source.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rocmrun.core.lock import LockedFacts

_VERSION = re.compile(r"[0-9][0-9A-Za-z.+_-]{0,40}")
_TARGET = re.compile(r"gfx[0-9a-f]{3,5}(?::[a-z]+[+-])*")
_USER = re.compile(r"[A-Za-z0-9._-]{1,40}(?::[A-Za-z0-9._-]{1,40})?")
_TARGET_SEPARATOR = re.compile(r"[;,\s]+")
_ARGUMENT = re.compile(r"(?:^ARG |[| ])([A-Z][A-Z0-9_]*)=(\"[^\"]*\"|'[^']*'|\S+)")

# Names as the Dockerfiles of ROCm/pytorch, ROCm/vllm, pytorch/pytorch and ROCm-docker spell them.
_VARIABLES = {
    "rocm": ("ROCM_VERSION",),
    "torch": ("PYTORCH_VERSION", "TORCH_VERSION"),
    "python": ("PYTHON_VERSION", "ANACONDA_PYTHON_VERSION"),
    "gfx": ("PYTORCH_ROCM_ARCH", "AMDGPU_TARGETS", "GPU_TARGETS"),
}
# rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.9.1
_TAGS = {
    "rocm": re.compile(r"(?:^|[_.-])rocm-?([0-9]+(?:\.[0-9]+)+)"),
    "torch": re.compile(r"(?:^|[_-])(?:py)?torch(?:_release)?[_-]?([0-9]+(?:\.[0-9]+)+)"),
    "python": re.compile(r"(?:^|[_-])py(?:thon)?-?([0-9]\.[0-9]+)"),
}
# TheRock's images carry the ROCm version in the OCI label; Ubuntu's carry Ubuntu's in the same one.
_LABEL_TITLE = "org.opencontainers.image.title"
_LABEL_VERSION = "org.opencontainers.image.version"


class _Claim(NamedTuple):
    value: str
    source: str


def claims_of_config(config: Mapping[str, Any], tag: str | None) -> LockedFacts | None:
    """Return what an image config (the registry's JSON) claims; *tag* is the image's tag, the last resort."""
    inner = _mapping(config.get("config"))
    env = [entry for entry in _list(inner.get("Env")) if isinstance(entry, str)]
    history = [
        step.get("created_by") for step in _list(config.get("history")) if isinstance(step, Mapping)
    ]
    user = inner.get("User")
    return claims(
        env=dict(entry.partition("=")[::2] for entry in env),
        labels={str(key): str(value) for key, value in _mapping(inner.get("Labels")).items()},
        history=[step for step in history if isinstance(step, str)],
        user=user if isinstance(user, str) else "",
        tag=tag,
    )


def claims(
    *,
    env: Mapping[str, str],
    labels: Mapping[str, str],
    history: Iterable[str],
    user: str,
    tag: str | None,
) -> LockedFacts | None:
    """Return the claims found, best source first: label, environment, history, tag; None without any."""
    arguments = _arguments(history)
    found: dict[str, _Claim] = {}
    for fact, names in _VARIABLES.items():
        candidates = [
            *([_label(labels)] if fact == "rocm" else []),
            *(_Claim(env[name], f"env:{name}") for name in names if name in env),
            *(_Claim(arguments[name], f"history:{name}") for name in names if name in arguments),
            _tag(fact, tag),
        ]
        usable = (c for c in candidates if c is not None and _clean(fact, c.value))
        if claim := next(usable, None):
            found[fact] = claim
    if _USER.fullmatch(user):
        found["user"] = _Claim(user, "config")
    if not found:
        return None
    values = {fact: _clean(fact, claim.value) for fact, claim in found.items()}
    sources = {fact: claim.source for fact, claim in found.items()}
    return LockedFacts.model_validate({**values, "sources": sources})


def is_version(text: str) -> bool:
    """Whether *text* looks like the version of a program."""
    return _VERSION.fullmatch(text) is not None


def gpu_targets(words: Iterable[str]) -> tuple[str, ...]:
    """Return those of *words* that name GPU targets, once each, older generations first."""
    targets = {word for word in words if _TARGET.fullmatch(word)}
    return tuple(sorted(targets, key=lambda target: (len(target.split(":")[0]), target)))


def _clean(fact: str, value: str) -> str | tuple[str, ...] | None:
    """Return *value* in the form that the lock keeps, or None when it is no such fact."""
    if fact == "gfx":
        return gpu_targets(_TARGET_SEPARATOR.split(value)) or None
    if fact == "user":
        return value
    return value if is_version(value) else None


def _label(labels: Mapping[str, str]) -> _Claim | None:
    if not re.search(r"rocm", labels.get(_LABEL_TITLE, ""), re.IGNORECASE):
        return None
    return _Claim(labels.get(_LABEL_VERSION, ""), f"label:{_LABEL_VERSION}")


def _tag(fact: str, tag: str | None) -> _Claim | None:
    pattern = _TAGS.get(fact)
    match = pattern.search(tag) if pattern and tag else None
    return _Claim(match[1], "tag") if match else None


def _arguments(history: Iterable[str]) -> dict[str, str]:
    """Return build arguments named in an image's history; the last step that names one wins.

    Both builders write them: "RUN |2 ROCM_VERSION=7.0 … /bin/sh -c …" and "ARG ROCM_VERSION=7.0".
    """
    return {name: value.strip("\"'") for step in history for name, value in _ARGUMENT.findall(step)}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
