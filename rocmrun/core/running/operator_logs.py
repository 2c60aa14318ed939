"""Logs of operators' libraries: which variables turn them on, and what their lines say of speed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rocmrun.core.diagnosis.masking import masked
from rocmrun.core.doctor import Check
from rocmrun.core.running.record import ContainerRecord

_OFF = frozenset({"", "0", "off", "no", "false", "disable", "disabled", "none"})
MOST_LINES = 3
_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A variable that makes a library print more.

    Attributes:
        from_level: The lowest number that prints more than errors and warnings; None for a word or a switch.
        words: Those that print more than warnings; () for every word but those for "off".
        file: The variable that sends the lines to a file instead.
        source: Where that is written.
    """

    library: str
    variable: str
    from_level: int | None = None
    words: tuple[str, ...] = ()
    file: str = ""
    source: str

    def on(self, value: str) -> bool:
        """Whether *value* turns it on."""
        if self.from_level is not None:
            # "²" is a digit to Python, and a number of thousands of digits is none that it reads.
            return bool(re.fullmatch(r"[0-9]{1,9}", value)) and int(value) >= self.from_level
        if self.words:
            return value.upper() in self.words
        return value.lower() not in _OFF


_MIOPEN = "https://rocm.docs.amd.com/projects/MIOpen/en/latest/reference/env_variables.html"
_HIPBLASLT = (
    "https://rocm.docs.amd.com/projects/hipBLASLt/en/docs-10.2.0/reference/env-variables.html"
)
_TORCH = "https://docs.pytorch.org/docs/stable/_sources/debugging_environment_variables.md.txt"
SWITCHES = (
    Switch(library="MIOpen", variable="MIOPEN_ENABLE_LOGGING", source=_MIOPEN),
    Switch(library="MIOpen", variable="MIOPEN_ENABLE_LOGGING_CMD", source=_MIOPEN),
    Switch(library="MIOpen", variable="MIOPEN_LOG_LEVEL", from_level=5, source=_MIOPEN),
    Switch(library="hipBLASLt", variable="HIPBLASLT_LOG_LEVEL", from_level=2, file="HIPBLASLT_LOG_FILE", source=_HIPBLASLT),
    Switch(library="hipBLASLt", variable="HIPBLASLT_LOG_MASK", from_level=2, file="HIPBLASLT_LOG_FILE", source=_HIPBLASLT),
    Switch(library="rocBLAS", variable="ROCBLAS_LAYER", from_level=1, file="ROCBLAS_LOG_PATH", source="https://rocm.docs.amd.com/projects/rocBLAS/en/latest/reference/logging.html"),
    Switch(library="HIP", variable="AMD_LOG_LEVEL", from_level=3, source="https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/logging.html"),
    Switch(library="RCCL", variable="NCCL_DEBUG", words=("INFO", "TRACE"), file="NCCL_DEBUG_FILE", source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/logging.html"),
    Switch(library="torch", variable="TORCH_LOGS", source=_TORCH),
    Switch(library="torch", variable="TORCH_CPP_LOG_LEVEL", words=("INFO", "0"), source=_TORCH),
    Switch(library="Triton", variable="TRITON_PRINT_AUTOTUNING", words=("1",), source="https://triton-lang.org/main/python-api/generated/triton.autotune.html"),
    Switch(library="vLLM", variable="VLLM_LOGGING_LEVEL", words=("DEBUG",), source="https://docs.vllm.ai/en/latest/usage/troubleshooting/"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A line that tells of lost speed, where it is written, and the finding that it belongs to."""

    says: str
    pattern: re.Pattern[str]
    kind: str = ""
    source: str


MARKS = (
    Mark(says="MIOpen has no compiled kernels for this GPU: the first run compiles them", pattern=re.compile(r"Missing system database file"), kind="miopen-first-run-slow",
         source="https://rocm.docs.amd.com/projects/MIOpen/en/latest/cache.html"),
    Mark(says="MIOpen searches for the fastest kernel, or has no tuned values for one", pattern=re.compile(r"Perf Db: record (?i:not) found|Starting search: \S+, enforce"), kind="miopen-first-run-slow",
         source="https://github.com/ROCm/MIOpen, src/include/miopen/find_solution.hpp"),
    Mark(says="MIOpen found no tuned solution and guesses one", pattern=re.compile(r"\[GetSolutionsFallback\] (?:Using WTI Fallback|id:)"),
         source="https://github.com/ROCm/TheRock/issues/1899"),
    Mark(says="MIOpen computes with its naive convolution", pattern=re.compile(r"name: ConvDirectNaiveConv|naive_conv_\w+"),
         source="https://github.com/ROCm/TheRock/issues/1899"),
    Mark(says="torch falls back from hipBLASLt to hipBLAS on this GPU", pattern=re.compile(r"use hipBLASLt on an unsupported architecture"),
         source="https://github.com/ROCm/ROCm/issues/4440"),
    Mark(says="Triton tries variants of its kernels", pattern=re.compile(r"Triton autotuning for function \S+ finished after"),
         source="https://triton-lang.org/main/python-api/generated/triton.autotune.html"),
    Mark(says="vLLM has no tuned experts' kernel for this GPU", pattern=re.compile(r"Using default MoE config\. Performance might be sub-optimal"),
         source="https://github.com/vllm-project/vllm (fused_moe.py)"),
)  # fmt: skip


def switched_on(environment: Mapping[str, str]) -> tuple[tuple[Switch, str], ...]:
    """Return the switches that *environment* turns on, with their values."""
    return tuple(
        (switch, environment[switch.variable])
        for switch in SWITCHES
        if switch.variable in environment and switch.on(environment[switch.variable].strip())
    )


def operator_checks(record: ContainerRecord, log: str | None, problem: str) -> Iterator[Check]:
    """Yield which logs are on and what they tell of speed.

    Args:
        record: Whose environment.
        log: The last part of what it printed; None where it cannot be read.
        problem: Why not.
    """
    on = switched_on(record.environment)
    looked = "its variables and its last lines"
    told = tuple(_told(log or ""))
    for mark, lines in told:
        shown = "; ".join(f'"{masked(line, _SHOWN)}"' for line in lines[:MOST_LINES])
        more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
        hint = 'a cache that stays: [cache] mode = "persistent"' if mark.kind else ""
        yield Check(id="operator-logs", looked_at=looked, result="warn",
            evidence=f"{mark.says}: {shown}{more}", hint=hint, kind=mark.kind)  # fmt: skip
    if on:
        names = ", ".join(f"{switch.variable}={masked(value, 40)}" for switch, value in on)
        to_files = sorted({s.file for s, _ in on if s.file and s.file in record.environment})
        elsewhere = f"; lines go where {', '.join(to_files)} says" if to_files else ""
        yield Check(id="operator-logs", looked_at=looked, result="warn",
            evidence=f"{names}: much is printed, which costs time{elsewhere}",
            hint="unset them once the cause is found")  # fmt: skip
    elif not told:
        unread = f"; its log cannot be read: {problem}" if log is None else ""
        yield Check(id="operator-logs", looked_at=looked, result="unknown" if log is None else "ok",
            evidence=f"none is turned on{unread}", hint="MIOPEN_LOG_LEVEL=5 or TORCH_LOGS=recompiles in env tell more" if not unread else "")  # fmt: skip


def _told(log: str) -> Iterator[tuple[Mark, list[str]]]:
    lines = log.splitlines()
    for mark in MARKS:
        found = [line for line in lines if mark.pattern.search(line)]
        if found:
            yield mark, found
