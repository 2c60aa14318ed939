#!/usr/bin/env python3
"""Prove, from inside a container or on bare metal, that every accelerator here computes right.

Stand-alone: Python 3.9 or newer, the standard library and torch. Nothing here may import more.

By hand:        python3 gpu_probe.py --help
In a container: the source and one line of settings arrive on standard input, so nothing is mounted.

Standard output carries JSON Lines, one object an event: `start`, then one `check` for each thing
that was tried, then `end`. Everything meant for people goes to standard error.

This process never imports torch. Each device is exercised by a child process that sees only that
device, so a hang, an abort or a fault of one is that device's result and the others still run.
"""

# Joined from rocmrun/probe/parts by `make probe`: edit those.

from __future__ import annotations

import contextlib
import ctypes
import errno
import faulthandler
import fcntl
import functools
import importlib
import importlib.util
import json
import linecache
import marshal
import math
import mmap
import os
import platform
import pwd
import random
import re
import resource
import selectors
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
import warnings
from array import array
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from operator import mul
from pathlib import Path
from statistics import median
from types import CodeType
from typing import Any, BinaryIO, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence


# --- own_settings: What the checks of a profile's own ask for, completed and checked ---

OWN_DEFAULTS: dict[str, Any] = {
    "command": [],
    "source": "",
    "timeout": 60,
    "expect_exit": 0,
    "expect_output": "",
    "metrics": {},
    "level": "standard",
    "device": "all",
}
OWN_LEVELS = ("quick", "standard", "full")


def complete_own_checks(given: Any, level: str) -> tuple[list[dict[str, Any]], str]:
    """Return the checks that run at *level* with every default filled in, and what is wrong, "" if nothing is."""
    if not isinstance(given, list):
        return [], "checks is no list"
    complete = []
    for index, own in enumerate(given):
        problem = problem_of(own)
        if problem:
            return [], f"checks[{index}] {problem}"
        if OWN_LEVELS.index(own.get("level", "standard")) <= OWN_LEVELS.index(level):
            complete.append({**OWN_DEFAULTS, **own})
    return complete, ""


def problem_of(own: Any) -> str:
    """Return what is wrong with one check, "" if nothing is."""
    if not isinstance(own, dict) or not isinstance(own.get("name"), str):
        return "has no name"
    unknown = sorted(str(key) for key in set(own) - {"name", *OWN_DEFAULTS})
    if unknown:
        return f"has the unknown key {unknown[0]}; known are name, {', '.join(OWN_DEFAULTS)}"
    for key, default in OWN_DEFAULTS.items():
        kind = (int, float) if key == "timeout" else type(default)
        if not isinstance(own.get(key, default), kind):
            return f"has a {key} that is no {type(default).__name__}"
    if bool(own.get("command")) == bool(own.get("source")):
        return "needs a command or a source, and not both"
    for key, known in (("level", OWN_LEVELS), ("device", ("all", "each"))):
        if own.get(key, known[0]) not in known:
            return f"has the {key} {own[key]}, known are {', '.join(known)}"
    if not all(isinstance(word, str) for word in own.get("command", ())):
        return "has a command with a word that is no text"
    return problem_of_metrics(own.get("metrics", {}))


def problem_of_metrics(metrics: dict[str, Any]) -> str:
    """Return what is wrong with the bounds of a check's metrics, "" if nothing is."""
    for name, bounds in metrics.items():
        if not isinstance(bounds, dict) or not set(bounds) <= {"min", "max"}:
            return f"has bounds of {name} other than min and max"
        if not all(isinstance(bound, (int, float)) for bound in bounds.values()):
            return f"has a bound of {name} that is no number"
    return ""


# --- settings: What a run is told: level, accelerator, limits, and what the plan expects ---

PROTOCOL_VERSION = 1
PROBE_VERSION = "0.1.0"
LEVELS = ("quick", "standard", "full")
ACCELERATORS = ("rocm", "cuda", "cpu")
RUNTIMES = ("torch", "hip")
# Seconds that one stage of one child may take. A cold import of torch from a slow disk takes minutes.
TIMEOUTS = {
    "environment": 30,
    "isolation": 30,
    "tools": 300,
    "import": 240,
    "build": 60,
    "device": 120,
    "collectives": 90,
    "peer_copies": 120,
    "operators": 240,
    "hip_runtime": 60,
    "hip": 120,
    "model": 300,
}
DEVICE_SECONDS = {"quick": 120, "standard": 300, "full": 600}
COLLECTIVES_SECONDS = {"quick": 90, "standard": 180, "full": 300}
# Square matrices: a CPU needs some seconds for all three formats, most of them for fp16 and bf16.
SIZES = {
    "cpu": {"quick": 256, "standard": 512, "full": 512},
    "gpu": {"quick": 2048, "standard": 4096, "full": 8192},
}


class SettingsError(Exception):
    """The settings cannot be used."""


def complete_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return *given* with every default filled in.

    Raises:
        SettingsError: a value is not one that this probe knows.
    """
    settings = {
        "level": "quick",
        "accelerator": "rocm",
        "runtime": "torch",
        "timeout_seconds": 600,
        "size": None,
        "message_bytes": None,  # no collective sends more
        "timeouts": {},
        "expect": {},
        "checks": [],
        "operators": [],
        **{key: value for key, value in given.items() if value is not None},
    }
    for key, known in (
        ("level", LEVELS),
        ("accelerator", ACCELERATORS),
        ("runtime", RUNTIMES),
        ("v", (PROTOCOL_VERSION,)),
    ):
        if settings.get(key, known[0]) not in known:
            msg = f"{key} is {settings[key]!r}, this probe knows {', '.join(map(str, known))}"
            raise SettingsError(msg)
    if settings["runtime"] == "hip" and settings["accelerator"] != "rocm":
        msg = f"runtime hip is for accelerator rocm, not {settings['accelerator']}"
        raise SettingsError(msg)
    settings["checks"], problem = complete_own_checks(settings["checks"], settings["level"])
    if problem:
        raise SettingsError(problem)
    kind = "cpu" if settings["accelerator"] == "cpu" else "gpu"
    settings["size"] = settings["size"] or SIZES[kind][settings["level"]]
    settings["timeouts"] = {
        **TIMEOUTS,
        "device": DEVICE_SECONDS[settings["level"]],
        "collectives": COLLECTIVES_SECONDS[settings["level"]],
        **settings["timeouts"],
    }
    return settings


def stages_of(settings: dict[str, Any]) -> list[str]:
    """Return the stages that a level runs: what it does not name, it does not prove."""
    on_rocm = settings["accelerator"] == "rocm" and settings["level"] != "quick"
    tools = ["tools"] if on_rocm else []
    if settings["runtime"] == "hip":
        return ["environment", "isolation", *tools, "hip", *(["own"] if settings["checks"] else [])]
    stages = ["environment", "isolation", *tools, "build", "device"]
    # At quick HIP is asked only when torch has failed: a process a GPU takes seconds.
    if on_rocm:
        stages.insert(stages.index("build"), "hip")
    if settings["accelerator"] != "cpu" or settings["level"] != "quick":
        stages.append("collectives")
    if settings["level"] != "quick":
        stages.append("operators")
    if settings["level"] == "full":
        stages.append("model")
    if settings["checks"]:
        stages.append("own")
    return stages


# --- events: The event stream: JSON Lines for programs, lines on standard error for people ---

STATUSES = ("pass", "degraded", "fail", "skipped")


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of *data*, however little the kernel takes at a time."""
    while data:
        data = data[os.write(descriptor, data) :]


def json_line(value: Any) -> bytes:
    """Return *value* as one line of standard JSON: numbers that are not finite become strings."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(finite_only(value), separators=(",", ":"))
    return text.encode() + b"\n"


def finite_only(value: Any) -> Any:
    """Return *value* with "nan" and "inf" written as strings, which JSON has no numbers for."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): finite_only(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite_only(item) for item in value]
    return value


def say(text: str) -> None:
    """Write one line for people."""
    with contextlib.suppress(OSError):
        write_all(2, f"probe: {text}\n".encode(errors="replace"))


class Events:
    """The event stream, and the verdict that follows from it."""

    def __init__(self) -> None:
        # Libraries print on file descriptor 1 whatever Python is told, so the events keep a copy of
        # it for themselves and everybody else gets standard error.
        self._descriptor = os.dup(1)
        os.dup2(2, 1)
        self._lock = threading.RLock()  # a signal handler may emit while its own thread does
        self._begin = time.monotonic()
        self._proven = False
        self.runtime = "torch"  # what must compute for a proof
        self.diagnosis = ""  # what several checks together say
        self.ended = False
        self.counts = dict.fromkeys(STATUSES, 0)
        self.told: list[dict[str, Any]] = []

    def emit(self, event: str, **fields: Any) -> None:
        """Write one event."""
        with self._lock:
            write_all(
                self._descriptor, json_line({"v": PROTOCOL_VERSION, "event": event, **fields})
            )

    def check(self, check: dict[str, Any]) -> None:
        """Write one check, count it, and show it to people."""
        with self._lock:
            if self.ended:  # by a signal, while other threads still report
                return
            self.counts[check["status"]] += 1
            self._proven = self._proven or proves(check, self.runtime)
            self.told.append(check)
            self.emit("check", **check)
        where = check["group"] if check["device"] is None else f"device {check['device']}"
        reason = f": {check['reason']}" if check.get("reason") else ""
        say(f"[{where}] {check['name']} {check['status']} {check['seconds']:.2f}s{reason}")

    def doing(self, group: str, name: str, device: Any) -> None:
        """Say what is under way, for those who watch."""
        if not self.ended:
            self.emit("doing", group=group[:100], name=name[:100], device=device)

    def fail(self, group: str, name: str, reason: str, **fields: Any) -> None:
        """Write a failed check that no child could report itself."""
        self.check(made_check(group, name, "fail", reason=reason, **fields))

    def end(self, reason: str = "") -> str:
        """Write the last event and return the verdict. No device is never a pass."""
        with self._lock:
            if self.ended:
                return "fail"
            self.ended = True
            status = "degraded" if self.counts["degraded"] else "pass"
            if reason or self.counts["fail"]:
                status = "fail"
            elif not self._proven:
                status, reason = "fail", "no device was exercised"
            seconds = round(time.monotonic() - self._begin, 3)
            told = {"diagnosis": self.diagnosis} if self.diagnosis and status == "fail" else {}
            self.emit(
                "end", status=status, counts=self.counts, seconds=seconds, reason=reason, **told
            )
        counted = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        say(f"{status} ({counted or 'no check'})" + (f": {reason}" if reason else ""))
        return status


def proves(check: dict[str, Any], runtime: str) -> bool:
    """Whether a check proves that a device computes."""
    if runtime == "torch":
        return bool(check["status"] == "pass" and check["name"].startswith("matmul"))
    # Without hipRTC the check that would compile is degraded, and copies and memset must do.
    kernel = check["status"] == "pass" and check["name"].startswith("kernel_")
    return check["group"] == "hip" and (
        kernel or (check["name"], check["status"]) == ("compile", "degraded")
    )


def made_check(
    group: str,
    name: str,
    status: str,
    *,
    reason: str = "",
    device: Any = None,
    seconds: float = 0.0,
    evidence: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a check as a value."""
    check = {"group": group, "name": name, "device": device, "status": status}
    check.update(seconds=round(seconds, 4), evidence=evidence or {})
    if reason:
        check["reason"] = reason
    return check


# --- by_hand: A run by hand: its options, and the table that people read in the end ---

WIDEST_REASON = 160
MOST_DEVICES = 8  # that have a column of their own


def parse_arguments(arguments: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a run by hand."""
    import argparse  # here and below: every child reads this program, and none has options

    parser = argparse.ArgumentParser(
        prog="gpu_probe.py",
        description="Prove that every GPU here computes right. JSON Lines on stdout; progress, and a "
        "table in the end, on stderr.",
        epilog="example: python3 gpu_probe.py --accelerator rocm --level standard > report.jsonl",
    )
    add = parser.add_argument
    add("--level", choices=LEVELS, default="quick", help="how much to try (default: quick)")
    add(
        "--accelerator",
        choices=ACCELERATORS,
        default="rocm",
        help="what must be found (default: rocm)",
    )
    add("--runtime", choices=RUNTIMES, default="torch", help="what computes (default: torch)")
    add(
        "--expect-json",
        type=json.loads,
        default={},
        metavar="JSON",
        help='what the environment should be: {"uid": 1000, "gpus": [{"gfx": "gfx942"}]}',
    )
    add(
        "--operator",
        action="append",
        default=[],
        metavar="MODULE",
        help="an extension that must work, as in flash_attn; may be repeated; from standard on",
    )
    add(
        "--checks",
        type=checks_in,
        default=[],
        metavar="FILE",
        help="checks of your own: a JSON list of objects with the keys of [[probe.checks]] in a profile",
    )
    add("--size", type=int, help="rows of the square matrices (default: by level)")
    add("--timeout", type=float, default=600, help="seconds for all of it (default: 600)")
    add(
        "--stage-timeout",
        type=stage_timeout,
        action="append",
        default=[],
        metavar="STAGE=SECONDS",
        help=f"seconds for one stage of one process: {', '.join(sorted(TIMEOUTS))}; may be repeated",
    )
    given = parser.parse_args(list(arguments))
    return {
        "level": given.level,
        "accelerator": given.accelerator,
        "runtime": given.runtime,
        "size": given.size,
        "operators": given.operator,
        "checks": given.checks,
        "timeout_seconds": given.timeout,
        "timeouts": dict(given.stage_timeout),
        "expect": given.expect_json,
    }


def stage_timeout(text: str) -> tuple[str, float]:
    """Return a stage and its seconds."""
    import argparse

    stage, _, seconds = text.partition("=")
    if stage not in TIMEOUTS:
        msg = f"{stage} is no stage"
        raise argparse.ArgumentTypeError(msg)
    try:
        return stage, float(seconds)
    except ValueError:
        msg = f"{text} is not STAGE=SECONDS"
        raise argparse.ArgumentTypeError(msg) from None


def checks_in(name: str) -> list[dict[str, Any]]:
    """Return the checks in a file, with the text of the Python files that they name, relative to it."""
    import argparse

    try:
        checks = json.loads(Path(name).read_text(encoding="utf-8"))
        for check in checks:
            check.pop("writable_mounts", None)  # it is about a container
            if "file" in check:
                path = Path(name).parent / check.pop("file")
                check["source"] = path.read_text(encoding="utf-8")
    except (OSError, ValueError, AttributeError, TypeError) as error:
        msg = f"{name}: {error}"
        raise argparse.ArgumentTypeError(msg) from None
    return list(checks)


def print_summary(checks: list[dict[str, Any]]) -> None:
    """Write the table of all checks for people."""
    with contextlib.suppress(OSError):
        write_all(2, "\n".join(["", *summary_lines(checks), "", ""]).encode(errors="replace"))


def summary_lines(checks: list[dict[str, Any]]) -> list[str]:
    """Return a table of all checks: those that are not as they should be first, with their reasons."""
    wrong = [
        [
            check["status"],
            "" if check["device"] is None else f"device {check['device']}",
            f"{check['group']} {check['name']}",
            reason_of(check),
        ]
        for status in ("fail", "degraded")
        for check in checks
        if check["status"] == status
    ]
    devices = sorted({check["device"] for check in checks if check["device"] is not None}, key=str)
    if len(devices) > MOST_DEVICES:
        devices = []
    rows: dict[tuple[str, str], dict[Any, str]] = {}
    for check in checks:
        cells = rows.setdefault((check["group"], check["name"]), {})
        where = check["device"] if check["device"] in devices else None
        cells[where] = worst(cells.get(where, "skipped"), check["status"])
    heads = [
        "check",
        *([""] if devices else ["status"]),
        *(f"device {device}" for device in devices),
    ]
    table = [
        [f"{group} {name}", cells.get(None, ""), *(cells.get(device, "") for device in devices)]
        for (group, name), cells in rows.items()
    ]
    lines = [*aligned([["status", "where", "check", "reason"], *wrong]), ""] if wrong else []
    return [*lines, *aligned([heads, *table])]


def reason_of(check: dict[str, Any]) -> str:
    """Return why a check is not as it should be, in one line of a table."""
    reason = " ".join(str(check.get("reason", "")).split())
    return reason if len(reason) <= WIDEST_REASON else reason[: WIDEST_REASON - 1] + "…"


def worst(one: str, other: str) -> str:
    """Return the worse of two statuses; skipped says less than any other."""
    order = ("skipped", "pass", "degraded", "fail")
    assert set(order) == set(STATUSES)
    return max(one, other, key=order.index)


def aligned(rows: list[list[str]]) -> list[str]:
    """Return rows as lines with their columns below each other."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows
    ]


# --- machine: What the kernel tells of this process and its container ---

def signal_name(number: int) -> str:
    """Return "SIGSEGV" for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def is_visibility(name: str) -> bool:
    """Whether an environment variable hides devices."""
    return name.endswith("_VISIBLE_DEVICES") or name == "GPU_DEVICE_ORDINAL"


def process_status() -> dict[str, str]:
    """Return /proc/self/status as a mapping."""
    lines = Path("/proc/self/status").read_text(errors="replace").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def open_error(path: str) -> OSError | None:
    """Return why *path* cannot be opened read-write, None when it can."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return error
    return None


def errno_name(error: OSError) -> str:
    """Return "EACCES" for 13."""
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def try_to_create(folder: str) -> str:
    """Return "created" when a file can be created in *folder*, else the errno's name."""
    path = f"{folder.rstrip('/')}/.probe-{os.getpid()}"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.unlink(path)  # noqa: PTH108 - os.open above made it
    except OSError as error:
        return errno_name(error)
    return "created"


def first_line(*paths: str) -> str | None:
    """Return the first line of the first file that can be read."""
    for path in paths:
        with contextlib.suppress(OSError):
            lines = Path(path).read_text(errors="replace").splitlines()
            if lines:
                return lines[0].strip()
    return None


def number(text: str | None) -> int | None:
    """Return a limit as a number; "max", absent and unreadable are no limit."""
    return int(text) if text is not None and text.isdigit() else None


def cgroup_value(controller: str, name_v2: str, name_v1: str) -> str | None:
    """Return a cgroup file's first line, from this process's own cgroup or the namespace's root."""
    own: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), path))
    v1 = f"/sys/fs/cgroup/{controller}"
    return first_line(
        f"/sys/fs/cgroup{own.get('', '/')}/{name_v2}",
        f"/sys/fs/cgroup/{name_v2}",
        f"{v1}{own.get(controller, '/')}/{name_v1}",
        f"{v1}/{name_v1}",
    )


def memory_limit() -> int | None:
    """Return the cgroup's memory limit in bytes; None is none."""
    limit = number(cgroup_value("memory", "memory.max", "memory.limit_in_bytes"))
    return None if limit is None or limit >= 1 << 62 else limit  # v1 writes "none" as a huge number


def oom_kills() -> int:
    """Return how often the cgroup's memory limit has killed a process."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        with contextlib.suppress(OSError):
            for line in Path(path).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return number(value) or 0
    return 0


def processor_name() -> str:
    """Return the processor's model, or the architecture where the kernel names no model."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.machine()


# --- program: This program as its children run it: compiled once, with its text for whoever asks for a line of it ---

PIPE_BYTES = 1 << 20
F_SETPIPE_SZ = 1031  # fcntl has the name only since Python 3.10
CHILD_BOOTSTRAP = (
    "import sys\n"
    "sys.path[:]=[p for p in sys.path if p]\n"
    "PROBE_SOURCE=sys.stdin.buffer.read()\n"
    "exec(compile(PROBE_SOURCE,'gpu_probe.py','exec'))"
)


class Program(NamedTuple):
    """The program's text, and the same as a file that Python runs without compiling it again."""

    source: bytes
    compiled: bytes


def program_of(source: bytes, code: CodeType) -> Program:
    """Return the program that *source* is and *code* was compiled from.

    To compile it takes longer than all else that a child does before its first job. A .pyc file is
    magic number, flags, time and size, and the code; Python looks at the first alone where it is
    told to run the file.
    """
    return Program(source, importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))


class ProgramText:
    """What `linecache` asks for the text, as it asks the loader of a module."""

    def __init__(self, descriptor: int) -> None:
        self._path = f"/proc/self/fd/{descriptor}"

    def get_source(self, _name: str) -> str:
        """Return the text."""
        return Path(self._path).read_text(encoding="utf-8")


def show_text(descriptor: int, code: CodeType) -> None:
    """Let tracebacks and `inspect.getsource` find the text of *code*, which is read when one asks."""
    scope = {"__name__": "__main__", "__loader__": ProgramText(descriptor)}
    linecache.lazycache(code.co_filename, scope)


def spawn(
    program: Program, environment: dict[str, str]
) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a child; return it, where its jobs go in and where its results come out.

    The program travels as a memfd; where that is refused, its text goes to standard input.
    """
    jobs, jobs_in = os.pipe()
    results, results_in = os.pipe()
    with contextlib.suppress(OSError):  # roomier pipes: nobody reads while a sibling is waited for
        fcntl.fcntl(results, F_SETPIPE_SZ, PIPE_BYTES)
    files: list[int] = []
    python = [sys.executable, *(["-s"] if sys.flags.no_user_site else [])]
    command = [*python, "-c", CHILD_BOOTSTRAP, "--child", str(jobs), str(results_in)]
    with contextlib.suppress(OSError, AttributeError):
        files += [memory_file(content) for content in program]
        text, compiled = map(str, files)
        words = ["--child", str(jobs), str(results_in), text]
        command = [*python, f"/proc/self/fd/{compiled}", *words]
    kept = [jobs, results_in, *files]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if files else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        pass_fds=kept,
        start_new_session=True,
    )
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        fcntl.fcntl(process.stdout.fileno(), F_SETPIPE_SZ, PIPE_BYTES)
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(process.stdin.fileno(), F_SETPIPE_SZ, PIPE_BYTES)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(program.source)
            process.stdin.close()
    for descriptor in kept:
        os.close(descriptor)
    return process, jobs_in, results


def memory_file(content: bytes) -> int:
    """Return the descriptor of a file without a place that holds *content*."""
    descriptor = os.memfd_create("gpu_probe.py")
    write_all(descriptor, content)
    return descriptor


# --- processes: Child processes, seen from the controller ---

GRACE_SECONDS = 3  # between a child's own watchdog and the kill, so that its traceback arrives
KEPT_LINES = 40
KEPT_LINE_LENGTH = 400


class Outcome:
    """How one job of a child ended: "done", or why it never was."""

    def __init__(self) -> None:
        self.ended = ""  # "done", "timeout", "stopped", "died"
        self.reason = ""
        self.doing: tuple[str, str] | None = None  # group and name of the check that was under way
        self.checks: list[dict[str, Any]] = []
        self.seconds = 0.0
        self.evidence: dict[str, Any] = {}

    @property
    def passed(self) -> bool:
        """Whether the job was finished and nothing in it failed."""
        return self.ended == "done" and all(check["status"] != "fail" for check in self.checks)


class Child:
    """A process of this same program, with jobs going in and results coming out by private pipes.

    It leads its own process group: whatever it started dies with it.
    """

    def __init__(self, label: str, program: Program, environment: dict[str, str]) -> None:
        self.label = label
        self._tail: deque[str] = deque(maxlen=KEPT_LINES)
        self._pending = {"results": b"", "output": b""}
        self._job: dict[str, Any] = {}
        self.on_doing: Callable[[str, str], None] = lambda _group, _name: None
        self.on_line: Callable[[str], None] = lambda _line: None
        self._begin = self._deadline = time.monotonic()
        self._oom_kills = oom_kills()
        self._process, self._jobs, results = spawn(program, environment)
        assert self._process.stdout is not None
        self._selector = selectors.DefaultSelector()
        for name, descriptor in (("results", results), ("output", self._process.stdout.fileno())):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, name)
        self._results = results

    def begin(self, job: dict[str, Any], timeout: float) -> None:
        """Hand over a job and return at once; `wait` collects what comes of it."""
        self._job = {**job, "timeout": timeout}
        self._begin = time.monotonic()
        self._deadline = self._begin + timeout + GRACE_SECONDS
        with contextlib.suppress(BrokenPipeError):  # it is dead: `wait` finds out of what
            write_all(self._jobs, json_line(self._job))

    def wait(
        self, report: Callable[[dict[str, Any]], None], stop: threading.Event | None = None
    ) -> Outcome:
        """Collect the job's checks until it is done, dead or out of time.

        *stop* is set when a sibling failed and this one would only wait for it.
        """
        outcome = Outcome()
        while not outcome.ended:
            if stop is not None and stop.is_set():
                self._deadline = min(self._deadline, time.monotonic() + GRACE_SECONDS)
            left = self._deadline - time.monotonic()
            ready = self._selector.select(max(0.0, min(left, 0.5)))
            for key, _ in ready:
                self._read(key.data, key.fd, outcome, report)
            if ready:
                continue
            if self._process.poll() is not None:  # a descendant may still hold its pipes open
                self._bury(outcome)
            elif left <= 0:
                self._give_up(outcome, stopped=stop is not None and stop.is_set())
        outcome.seconds = time.monotonic() - self._begin
        if outcome.ended != "done":
            outcome.evidence["last_lines"] = list(self._tail)
        return outcome

    def run(
        self,
        job: dict[str, Any],
        timeout: float,
        report: Callable[[dict[str, Any]], None],
        stop: threading.Event | None = None,
    ) -> Outcome:
        """Hand over a job and wait for it."""
        self.begin(job, timeout)
        return self.wait(report, stop)

    def kill(self) -> None:
        """End the child and everything that it started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def dismiss(self) -> None:
        """Tell the child that there is no more to do: it ends by itself."""
        if self._jobs >= 0:
            os.close(self._jobs)
            self._jobs = -1

    def close(self) -> None:
        """Let the child end by itself, and make it when it does not."""
        self.dismiss()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        self.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process stuck in the kernel stays
            self._process.wait(GRACE_SECONDS)
        self._selector.close()
        os.close(self._results)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self, name: str, descriptor: int, outcome: Outcome, report: Any) -> None:
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(descriptor)
            if name == "results":
                self._bury(outcome)
            return
        *lines, rest = (self._pending[name] + data).split(b"\n")
        if name == "output":
            self._pending[name] = rest[-KEPT_LINE_LENGTH:]
            self._hear(lines)
            return
        self._pending[name] = rest
        for line in lines:
            with contextlib.suppress(
                ValueError
            ):  # a library that writes to every descriptor it finds
                self._take(json.loads(line), outcome, report)

    def _take(self, reply: dict[str, Any], outcome: Outcome, report: Any) -> None:
        if "doing" in reply:
            outcome.doing = (reply["group"], reply["doing"])
            self.on_doing(*outcome.doing)
        elif "check" in reply:
            outcome.doing = None
            outcome.checks.append(reply["check"])
            report(reply["check"])
        elif "done" in reply:
            outcome.ended = "done"

    def _give_up(self, outcome: Outcome, *, stopped: bool) -> None:
        self.kill()
        self._drain()
        if stopped:
            outcome.ended, outcome.reason = "stopped", "waited for another rank that had failed"
        else:
            outcome.ended = "timeout"
            outcome.reason = f"not finished after {self._job['timeout']:g} s"

    def _bury(self, outcome: Outcome) -> None:
        """Say how a child ended that closed its result pipe before the job was done."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        self.kill()
        self._drain()
        code = self._process.poll()
        outcome.ended = "died"
        if time.monotonic() - self._begin >= self._job["timeout"]:
            outcome.ended = "timeout"
            outcome.reason = f"not finished after {self._job['timeout']:g} s"
        elif code is None:
            outcome.reason = "the process closed its results and cannot be ended"
        elif code < 0:
            outcome.reason = f"the process was killed by {signal_name(-code)}"
            outcome.evidence["signal"] = signal_name(-code)
            if -code == signal.SIGKILL and oom_kills() > self._oom_kills:
                outcome.reason += ": the container's memory limit was reached"
        else:
            outcome.reason = f"the process ended with exit code {code} and no result"
            if code and self._tail:
                outcome.reason += f": {self._tail[-1]}"
            outcome.evidence["exit_code"] = code

    def _drain(self) -> None:
        """Take the last output of a dead child; a descendant that still holds the pipe is not waited for."""
        assert self._process.stdout is not None
        end = time.monotonic() + 0.5
        descriptor = self._process.stdout.fileno()
        pending = self._pending["output"]
        while time.monotonic() < end:
            try:
                data = os.read(descriptor, 65536)
            except BlockingIOError:
                time.sleep(0.02)
                continue
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            pending = pending[-KEPT_LINE_LENGTH:]
            self._hear(lines)
        self._hear([pending])

    def _hear(self, lines: list[bytes]) -> None:
        for line in lines:
            if line.strip():
                self._tail.append(shown_line(line))
                self.on_line(self._tail[-1])


def shown_line(line: bytes) -> str:
    """Return a line of a child's output as it is kept for evidence."""
    return line.rstrip()[:KEPT_LINE_LENGTH].decode(errors="replace")


def device_environment(accelerator: str, index: int, concurrent: int) -> dict[str, str]:
    """Return the environment of a child that may see device *index* only.

    An index counts within what the environment already lets this process see: it names the
    index-th entry of a list that somebody set, and counts within ROCR_VISIBLE_DEVICES, which
    filters below HIP and belongs to the scheduler that set it.
    """
    variable = "HIP_VISIBLE_DEVICES" if accelerator == "rocm" else "CUDA_VISIBLE_DEVICES"
    environment = {key: value for key, value in os.environ.items() if not is_visibility(key)}
    if accelerator == "rocm" and "ROCR_VISIBLE_DEVICES" in os.environ:
        environment["ROCR_VISIBLE_DEVICES"] = os.environ["ROCR_VISIBLE_DEVICES"]
    already = os.environ.get(variable) or os.environ.get("CUDA_VISIBLE_DEVICES") or ""
    tokens = [token.strip() for token in already.split(",") if token.strip()]
    environment[variable] = tokens[index] if index < len(tokens) else str(index)
    threads = max(1, len(os.sched_getaffinity(0)) // concurrent)
    for key, value in (
        ("OMP_NUM_THREADS", str(threads)),  # siblings compute their references at the same time
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),  # what cuBLAS needs to repeat itself bit for bit
        ("NCCL_SOCKET_IFNAME", "lo"),
        ("GLOO_SOCKET_IFNAME", "lo"),
        ("NCCL_DEBUG", "WARN"),
    ):
        environment.setdefault(key, value)
    return environment


# --- checks: One check under way, and how a child reports it ---

LONGEST_TEXT = 1000


class CheckFailed(Exception):
    """What a check found wrong, in words for people."""


class Reporter:
    """The child's end of the result pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send(self, **reply: Any) -> None:
        """Send one reply to the controller."""
        write_all(self._descriptor, json_line(reply))

    def check(self, group: str, name: str, *, quiet: bool = False) -> Check:
        """Return a check to run as a `with` block; a *quiet* one is told only when it does not pass."""
        return Check(self, group, name, quiet=quiet)


class Check:
    """One check under way: what is raised inside its block makes it fail, and the next one runs."""

    def __init__(self, reporter: Reporter, group: str, name: str, *, quiet: bool) -> None:
        self._reporter = reporter
        self._quiet = quiet
        self._group = group
        self.name = name
        self.status = "pass"
        self.reason = ""
        self.evidence: dict[str, Any] = {}
        self.threshold: float | None = None
        self.threshold_source = ""
        self._begin = 0.0

    def __enter__(self) -> Check:
        self._reporter.send(doing=self.name, group=self._group)
        self._begin = time.monotonic()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False
        if error is not None:
            self.status, self.reason = "fail", described(error)
            if not isinstance(error, CheckFailed):
                lines = "".join(traceback.format_exception(kind, error, trace)).splitlines()
                self.evidence["traceback"] = [line[:KEPT_LINE_LENGTH] for line in lines[-12:]]
        seconds = time.monotonic() - self._begin
        check = made_check(
            self._group,
            self.name,
            self.status,
            reason=self.reason,
            seconds=seconds,
            evidence=self.evidence,
        )
        if self.threshold is not None:
            check.update(threshold=self.threshold, threshold_source=self.threshold_source)
        if not self._quiet or self.status != "pass":
            self._reporter.send(check=check)
        return True

    def degrade(self, reason: str) -> None:
        """It works, and something about it is not as it should be."""
        self.status, self.reason = "degraded", reason

    def skip(self, reason: str) -> None:
        """It was not tried."""
        self.status, self.reason = "skipped", reason

    def require(self, what: str, seen: Any, expected: Any) -> None:
        """Fail unless *seen* is *expected*; where nothing is expected, anything is right."""
        if expected is not None and seen != expected:
            msg = f"{what} is {seen}, not {expected} as planned"
            raise CheckFailed(msg)


def described(error: BaseException) -> str:
    """Return an error in one bounded line, with what it was raised from: that is what can be mended."""
    text = " ".join(str(error).split())[:LONGEST_TEXT]
    if isinstance(error, CheckFailed):
        return text
    told = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if error.__cause__ is not None:
        told += f" (because of {described(error.__cause__)})"
    return told[: 2 * LONGEST_TEXT]


# --- offers: What this version of torch offers: old ones lack some of what is tried ---

def offered(torch: Any, path: str) -> Any:
    """Return what "nn.functional.conv2d" names in torch; None where it has no such thing."""
    value = torch
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def lacks(check: Check, torch: Any, *paths: str) -> bool:
    """Whether torch has not all of *paths*, which then is why the check is skipped."""
    missing = [path for path in paths if offered(torch, path) is None]
    if missing:
        check.skip(f"this torch has no {missing[0]}")
    return bool(missing)


def answer(check: Check, torch: Any, path: str) -> Any:
    """Return what a function of torch answers; None where it cannot, and what it said is kept."""
    function = offered(torch, path)
    try:
        return None if function is None else function()
    except Exception as error:
        check.evidence.setdefault("unanswered", {})[path] = described(error)
        return None


def refusal(error: Exception) -> str:
    """Return why torch does not offer something here; "" where *error* is a fault and no refusal."""
    text = described(error)
    said = (
        "only supported",
        "not supported",
        "not implemented",
        "No available kernel",
        "No viable backend",
    )
    # A library that fails says CUBLAS_STATUS_NOT_SUPPORTED or HIPBLAS_STATUS_NOT_SUPPORTED: in capitals.
    refused = isinstance(error, NotImplementedError) or any(words in text for words in said)
    return text if refused else ""


# --- other_python: A torch that another Python of the image holds, where the one that is asked has none ---

# Where images keep Pythons beside the one on PATH.
PREFIXES = (
    "usr", "usr/local", "opt/*", "opt/conda/envs/*", "venv", ".venv", "app/venv", "app/.venv",
    "workspace/venv", "workspace/.venv",
)  # fmt: skip


def torch_elsewhere(root: Path = Path("/")) -> dict[str, str]:
    """Return the first torch below *root* that this Python does not find, and the Python that does, where it is seen."""
    try:
        for prefix in PREFIXES:
            for found in sorted(root.glob(f"{prefix}/lib/python3*/*-packages/torch/__init__.py")):
                packages = found.parent.parent
                if str(packages) not in sys.path:
                    python = python_of(packages, root)
                    told = {"torch_elsewhere": str(found.parent)}
                    return {**told, "python_elsewhere": python} if python else told
    except OSError:
        pass  # a directory that cannot be listed tells nothing
    return {}


def python_of(packages: Path, root: Path) -> str:
    """Return the interpreter that looks into *packages* (PREFIX/lib/python3.12/site-packages), "" where none is seen."""
    prefix = packages.parent.parent.parent
    # Debian's own Python of /usr looks into dist-packages of /usr/local.
    places = (root / "usr", prefix) if packages.name == "dist-packages" else (prefix,)
    names = (packages.parent.name, "python3")
    pythons = [str(place / "bin" / name) for place in places for name in names]
    return next((python for python in pythons if os.access(python, os.X_OK)), "")


# --- targets: Which code runs on which GPU: ROCm's targets, their generic forms and their families ---

# An object built for a generic target runs on each of its members; gfx908 and gfx90a have none.
# Source: ROCm/rocm-systems 1b1610fc2 (2025-08-09), projects/rocr-runtime, isa.cpp.
GENERIC_TARGETS = {
    "gfx9-generic": ("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"),
    "gfx9-4-generic": ("gfx942", "gfx950"),
    "gfx10-1-generic": ("gfx1010", "gfx1011", "gfx1012", "gfx1013"),
    "gfx10-3-generic": tuple(f"gfx103{step}" for step in range(7)),
    "gfx11-generic": (
        *(f"gfx110{step}" for step in range(4)),
        *(f"gfx115{step}" for step in range(4)),
    ),
    "gfx12-generic": ("gfx1200", "gfx1201"),
}
# Builds for a whole family are named so, with -all, -dcgpu, -dgpu or -igpu behind it.
# Source: ROCm/TheRock cmake/therock_amdgpu_targets.cmake, its families on Linux.
FAMILIES = {
    "gfx90X": ("gfx906", "gfx908", "gfx90a"),
    "gfx94X": ("gfx942",),
    "gfx101X": ("gfx1010", "gfx1011", "gfx1012"),
    "gfx103X": GENERIC_TARGETS["gfx10-3-generic"],
    "gfx110X": tuple(f"gfx110{step}" for step in range(4)),
    "gfx115X": tuple(f"gfx115{step}" for step in range(4)),
    "gfx120X": GENERIC_TARGETS["gfx12-generic"],
}


def code_for(architecture: str, built: Iterable[str]) -> str:
    """Return how *built* covers a GPU such as "gfx90a:sramecc+:xnack-", or as the plan has it "gfx90a".

    "exact", "generic" or "family"; "features" where only xnack or sramecc differ; "none"; and
    "unknown" where nothing is listed: torch names no target while it sees no device.
    """
    gfx, _, features = architecture.partition(":")
    answers = set()
    listed = list(built)
    for entry in listed:
        name, _, wanted = entry.partition(":")
        how = "exact" if name == gfx else ""
        if gfx in GENERIC_TARGETS.get(name, ()):
            how = "generic"
        elif gfx in FAMILIES.get(name.partition("-")[0], ()):
            how = "family"
        if how:
            answers.add(how if fits(features, wanted) else "features")
    for how in ("exact", "generic", "family", "features"):
        if how in answers:
            return how
    return "none" if listed else "unknown"


def fits(features: str, wanted: str) -> bool:
    """Whether code that wants "sramecc+:xnack-" runs where *features* are set; what either leaves out fits."""
    own = {feature[:-1]: feature for feature in features.split(":") if feature}
    return all(own.get(name[:-1], name) == name for name in wanted.split(":") if name)


# --- topology: KFD's topology as this container sees it, and the planned GPUs in it ---

KFD_NODES = "/sys/class/kfd/kfd/topology/nodes"
KFD_PROPERTY = re.compile(r"^(\w+) (\d+)$", re.MULTILINE)
XGMI_LINK = 11  # CRAT_IOLINK_TYPE_XGMI, in the kernel's amdkfd/kfd_crat.h


class TopologyNode:
    """One node of the topology; *hidden* is one that the device cgroup keeps (EPERM on reading)."""

    def __init__(self, folder: Path) -> None:
        self.number = int(folder.name)
        self.hidden = False
        self.values: dict[str, int] = {}
        self.links: list[dict[str, int]] = []
        try:
            self.values = kfd_properties(folder / "properties")
        except PermissionError:
            self.hidden = True
        except OSError:
            return
        for link in sorted(folder.glob("io_links/*/properties")):
            with contextlib.suppress(OSError):
                self.links.append(kfd_properties(link))

    @property
    def is_gpu(self) -> bool:
        """Whether it computes: the kernel prints simd_count 0 for processors."""
        return self.values.get("simd_count", 0) > 0

    @property
    def render_minor(self) -> int | None:
        """The number in the name of its render node; None where it has none."""
        return self.values.get("drm_render_minor") or None

    @property
    def address(self) -> str | None:
        """The PCI address without its function, which in partition mode is no function."""
        place, domain = self.values.get("location_id"), self.values.get("domain", 0)
        if not place and not domain:
            return None
        place = place or 0
        return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}"

    @property
    def partition(self) -> int:
        """The partition number: in the top bits of location_id, or in place of the function."""
        place = self.values.get("location_id", 0)
        return place >> 28 & 0xF or place & 7

    def is_planned(self, gpu: dict[str, Any]) -> bool:
        """Whether this is a GPU of the plan; an unknown address is told apart by its unique id."""
        address = gpu.get("pci_address")
        if address and self.address:
            same = address.lower().rpartition(".")[0] == self.address
            return same and gpu.get("partition") in (None, self.partition)
        unique = gpu.get("unique_id")
        return unique is not None and int(unique, 16) == self.values.get("unique_id")

    def described(self) -> dict[str, Any]:
        """Return what evidence keeps of a GPU."""
        version = self.values.get("gfx_target_version", 0)
        return {
            "node": self.number,
            "gfx": f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
            if version
            else None,
            "pci_address": self.address,
            "render_minor": self.render_minor,
            "hive_id": f"{self.values.get('hive_id', 0):016x}",
        }


def kfd_properties(path: Path) -> dict[str, int]:
    """Return the "key number" lines of a file of the topology; others are left out."""
    text = path.read_text(errors="replace")
    return {key: int(value) for key, value in KFD_PROPERTY.findall(text)}


def topology_nodes(root: str = KFD_NODES) -> list[TopologyNode]:
    """Return the nodes in numeric order, which is HIP's order of the GPUs among them."""
    with contextlib.suppress(OSError):
        folders = [path for path in Path(root).iterdir() if path.name.isdigit()]
        return [TopologyNode(path) for path in sorted(folders, key=lambda path: int(path.name))]
    return []


def check_kfd_topology(check: Check, planned: list[dict[str, Any]], root: str = KFD_NODES) -> None:
    """Find every planned GPU in the topology, which ROCm reads before it opens anything."""
    nodes = topology_nodes(root)
    gpus = [node for node in nodes if node.is_gpu]
    hidden = [node.number for node in nodes if node.hidden]
    check.evidence.update(
        nodes=len(nodes), gpus=[node.described() for node in gpus], hidden_nodes=hidden
    )
    missing = [gpu for gpu in planned if not any(node.is_planned(gpu) for node in gpus)]
    if missing:
        names = ", ".join(str(gpu.get("pci_address") or gpu.get("index")) for gpu in missing)
        where = "KFD shows no topology here" if not nodes else f"KFD's topology lacks {names}"
        msg = f"{where}: {len(missing)} of {len(planned)} planned GPUs cannot be found by ROCm"
        raise CheckFailed(msg)
    others = [node for node in gpus if not any(node.is_planned(gpu) for gpu in planned)]
    if planned and others:
        names = ", ".join(node.address or f"node {node.number}" for node in others)
        check.degrade(
            f"KFD also shows {names}, which the plan does not pass: no device cgroup hides them, "
            "and ROCm's tools will list or try them"
        )


# --- overrides: HSA_OVERRIDE_GFX_VERSION: under which other name a GPU answers here, and whether that is needed ---

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
RENDER_NODES = "/dev/dri"
VERSION = re.compile(r"\s*([0-9]+)\.([0-9]+)\.([0-9]+)")
MOST_IN_VERSION = (63, 255, 255)


def overrides(environment: Mapping[str, str]) -> dict[str, str | None]:
    """Return each override that is set with the target that it makes of a GPU; None for what is no version.

    Empty is none, and is not unset: the runtime gives up on it.
    """
    return {
        name: overridden(value)
        for name, value in sorted(environment.items())
        if name == OVERRIDE or name.startswith(f"{OVERRIDE}_")
    }


def overridden(version: str) -> str | None:
    """Return "gfx1030" for "10.3.0": decimal numbers, of which the last two are hexadecimal in the name."""
    match = VERSION.fullmatch(version)
    numbers = tuple(map(int, match.groups())) if match else ()
    if not numbers or any(map(int.__gt__, numbers, MOST_IN_VERSION)):
        return None
    major, minor, step = numbers
    return f"gfx{major}{minor:x}{step:x}"


def usable_nodes(root: str = KFD_NODES, render_nodes: str = RENDER_NODES) -> list[TopologyNode]:
    """Return the nodes of KFD that the runtime counts here: it leaves out GPUs that it cannot open."""
    return [
        node
        for node in topology_nodes(root)
        if not node.hidden
        and (not node.is_gpu or open_error(f"{render_nodes}/renderD{node.render_minor}") is None)
    ]


@functools.lru_cache(maxsize=None)
def override_nodes() -> Sequence[TopologyNode]:
    """Return this process's nodes where an override counts them, else none."""
    return usable_nodes() if any(name != OVERRIDE for name in overrides(os.environ)) else []


def deciding(
    gpu: Mapping[str, Any], environment: Mapping[str, str], nodes: Sequence[TopologyNode]
) -> list[str]:
    """Return the override that is for a planned GPU; every one where its number is not known."""
    known = list(overrides(environment))
    if not any(name != OVERRIDE for name in known):
        return known
    for number, node in enumerate(nodes):
        if node.is_gpu and node.is_planned(dict(gpu)):
            own = f"{OVERRIDE}_{number}"
            return [name for name in (own, OVERRIDE) if name in environment][:1]
    return known


def answers_as(
    gpu: Mapping[str, Any], environment: Mapping[str, str], nodes: Sequence[TopologyNode] = ()
) -> tuple[str, ...]:
    """Return what a planned GPU may call itself here: its own target, and what an override makes of it."""
    names = [str(gpu["gfx"]).lower()] if gpu.get("gfx") else []
    names += [
        target
        for name in deciding(gpu, environment, nodes)
        if (target := overridden(environment[name]))
    ]
    return tuple(dict.fromkeys(names))


def check_override(
    check: Check,
    built: list[str],
    planned: list[dict[str, Any]],
    environment: Mapping[str, str],
    nodes: Sequence[TopologyNode],
) -> None:
    """Say what overrides make of the GPUs: it may work, and nobody vouches for it."""
    found = overrides(environment)
    names = {index: deciding(gpu, environment, nodes) for index, gpu in enumerate(planned)}
    counted = {name for deciders in names.values() for name in deciders} if planned else set(found)
    changed = [
        (str(gpu["gfx"]).lower(), found[name])
        for index, gpu in enumerate(planned)
        for name in names[index]
        if gpu.get("gfx") and found[name] not in (None, str(gpu["gfx"]).lower())
    ]
    check.evidence.update(
        overrides={name: f"{environment[name]}: {target}" for name, target in found.items()},
        kernel=sorted({str(gpu["gfx"]).lower() for gpu in planned if gpu.get("gfx")}),
        deciding=names,
    )
    reasons = [
        f"{name}={environment[name]} is not major.minor.step: the runtime ignores it or fails"
        for name in found
        if name in counted and found[name] is None
    ]
    reasons += [
        f"{name} is for no GPU here: numbers count the nodes of KFD that this container can use, "
        "processors first"
        for name in found
        if name not in counted and name != OVERRIDE
    ]
    told = ", ".join(f"{name}={environment[name]}" for name in found if name in counted)
    targets = sorted({target for name, target in found.items() if name in counted and target})
    if changed:
        pairs = ", ".join(f"{gfx} answer as {target}" for gfx, target in sorted(set(changed)))
        reasons.append(
            f"{told}: GPUs {pairs}, which AMD does not support{unneeded(changed, built)}"
        )
    elif targets and not check.evidence["kernel"]:
        reasons.append(f"{told}: GPUs answer as {', '.join(targets)}, which AMD does not support")
    check.evidence["needed"] = bool(changed)
    if reasons:
        check.degrade("; ".join(reasons))


def unneeded(changed: list[tuple[str, Any]], built: list[str]) -> str:
    """Return the advice for GPUs that torch has code for as they are."""
    own = sorted({gfx for gfx, _ in changed})
    native = [gfx for gfx in own if code_for(gfx, built) in ("exact", "generic", "family")]
    return f"; this torch has code for {', '.join(native)}: unset it" if native else ""


# --- build: What torch was built for, and how many devices it finds ---

def stage_import(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Import torch. Told when it fails, and once when it does not."""
    with reporter.check("build", "torch", quiet=not job["told"]) as check:
        check.evidence.update(python=platform.python_version(), executable=sys.executable)
        try:
            torch = importlib.import_module("torch")
        except ModuleNotFoundError as error:
            if error.name == "torch":
                check.evidence.update(missing_module="torch", **torch_elsewhere())
                msg = f"{sys.executable} (Python {platform.python_version()}) has no torch"
                raise CheckFailed(msg) from error
            raise
        if not hasattr(torch, "__version__"):
            msg = f"what imports as torch is not PyTorch: {getattr(torch, '__path__', torch)}"
            raise CheckFailed(msg)
        check.evidence.update(version=str(torch.__version__), path=str(torch.__file__))
        state["torch"] = torch


def stage_build(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Compare what torch was built for, and how many devices it finds, with what was promised."""
    torch = state["torch"]
    accelerator = job["accelerator"]
    with reporter.check("build", "accelerator") as check:
        versions = {
            name: getattr(torch.version, name, None) for name in ("hip", "cuda", "git_version")
        }
        built_for = "rocm" if versions["hip"] else "cuda" if versions["cuda"] else "cpu"
        check.evidence.update(versions, built_for=built_for)
        if accelerator not in ("cpu", built_for):
            msg = f"this is a {built_for.upper()} build of torch ({torch.__version__}), {accelerator} was promised"
            raise CheckFailed(msg)
    if accelerator == "cpu" or check.status == "fail":
        return
    planned = job["expect"].get("gpus") or []
    with reporter.check("build", "libraries") as check:
        check_libraries(check, torch, accelerator)
    if accelerator == "rocm" and overrides(os.environ):
        with reporter.check("build", "gfx_override") as check:
            built = list(torch.cuda.get_arch_list())
            check_override(check, built, planned, os.environ, override_nodes())
    with reporter.check("build", "arch_list") as check:
        check_architectures(check, torch, planned, accelerator)
    with reporter.check("build", "device_count") as check:
        check_device_count(check, torch, job["gpus"])


def check_libraries(check: Check, torch: Any, accelerator: str) -> None:
    """Record the versions of what torch computes and communicates with; None is not told."""
    rocm = accelerator == "rocm"
    dnn = answer(check, torch, "backends.cudnn.version")
    check.evidence["miopen" if rocm else "cudnn"] = (
        # torch/csrc/cuda/shared/cudnn.cpp: MIOpen's is major * 1000000 + minor * 1000 + patch.
        f"{dnn // 1000000}.{dnn // 1000 % 1000}.{dnn % 1000}" if rocm and dnn else dnn
    )
    ccl = answer(check, torch, "cuda.nccl.version")
    check.evidence["rccl" if rocm else "nccl"] = (
        ".".join(str(part) for part in ccl) if isinstance(ccl, (tuple, list)) else ccl
    )


def check_architectures(
    check: Check, torch: Any, planned: list[dict[str, Any]], accelerator: str
) -> None:
    """Compare the targets that torch was compiled for with each GPU's; the products have the last word."""
    built = list(torch.cuda.get_arch_list())
    check.evidence["arch_list"] = built
    if not built:
        check.skip(
            "torch lists no targets, which says nothing: it lists none while no GPU is usable"
        )
        return
    if accelerator != "rocm":
        return
    covered: dict[str, dict[str, str]] = {}
    for gpu in planned:
        gfx, *named = answers_as(gpu, os.environ, override_nodes()) if gpu.get("gfx") else ("",)
        if gfx:
            covered.setdefault(gfx, {}).update(
                {name: code_for(name, built) for name in named or [gfx]}
            )
    check.evidence["code_for"] = covered
    bare = [
        gfx for gfx, answers in covered.items() if not set(answers.values()) - {"none", "features"}
    ]
    if bare:
        check.degrade(
            f"this torch has no code for {', '.join(bare)}: it was built for {', '.join(built)}; use an "
            "image with that target"
        )


def check_device_count(check: Check, torch: Any, planned: int | None) -> None:
    """Compare the number of devices with the plan's. torch may ask SMI, so the driver is asked too."""
    found = torch.cuda.device_count()
    check.evidence.update(device_count=found, planned=planned, driver_count=None)
    try:
        check.evidence["driver_count"] = torch._C._cuda_getDeviceCount()  # noqa: SLF001
    except Exception as error:
        check.evidence["driver_error"] = described(error)
    hidden = {key: value for key, value in os.environ.items() if is_visibility(key)}
    note = (
        f" ({', '.join(f'{key}={value!r}' for key, value in sorted(hidden.items()))})"
        if hidden
        else ""
    )
    driver = check.evidence["driver_count"]
    if driver is not None and driver != found:
        msg = f"torch counts {found} devices, the driver {driver}{note}"
        raise CheckFailed(msg)
    if not found:
        because = check.evidence.get("driver_error") or "torch.cuda.device_count() is 0"
        msg = f"no device is visible: {because}{note}"
        raise CheckFailed(msg)
    if planned is not None and found != planned:
        msg = f"{found} devices are visible, {planned} were passed in{note}"
        raise CheckFailed(msg)


# --- arithmetic: What computed results are compared with, and by how much they may differ ---

CONFIDENCE = 4.0
SUM_SOURCE = (
    "Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, "
    "SIAM J. Sci. Comput. 41 (2019)"
)


def synchronize(torch: Any, device: str) -> None:
    """Wait until the device has done what it was given."""
    if device != "cpu":
        torch.cuda.synchronize()


def rate(amount: float, seconds: float, unit: float = 1e9) -> float:
    """Return how many times *unit* a second, to five digits; thousands of millions unless said."""
    return float(f"{amount / max(seconds, 1e-9) / unit:.5g}")


def growth_of(inner: int, unit: float) -> float:
    """Return what of (|A||B|) a sum of *inner* products, rounded with *unit*, may be off by."""
    return CONFIDENCE * math.sqrt(inner) * unit


def compare(check: Check, computed: Any, exact: Any, bound: Any, source: str) -> None:
    """Fail where what a device computed is further from the float64 *exact* than *bound*."""
    count = math.prod(exact.shape)
    error = (computed.cpu().double() - exact).abs()
    share = error / bound
    # Counted by what is within, so that a NaN is wrong.
    wrong = count - int((share <= 1.0).sum().item())
    worst = float(share.max().item())
    check.evidence.update(wrong=wrong, worst_share_of_bound=worst)
    check.evidence["largest_error"] = float(error.max().item())
    check.threshold, check.threshold_source = 1.0, source
    if wrong:
        msg = (
            f"{wrong} of {count} results are wrong, the worst by {worst:.3g} times the error bound"
        )
        raise CheckFailed(msg)


def compare_bits(check: Check, torch: Any, first: Any, second: Any, name: str) -> None:
    """Fail where two runs on the same input differ in a single bit."""
    count = math.prod(first.shape)
    bits = {"fp32": "int32", "fp64": "int64"}.get(name, "int16")
    dtype = getattr(torch, bits)
    changed = int((first.view(dtype) != second.view(dtype)).sum().item())
    check.evidence.update(results=count, changed=changed)
    if changed:
        msg = f"{changed} of {count} results differ between two runs on the same input"
        raise CheckFailed(msg)


# --- collective_operations: The collectives: what goes in, what must come out, and how busy the links were ---

PATTERN_PERIOD = (
    251  # a prime: data that arrives shifted by a power of two is not what was expected
)
BANDWIDTH_SOURCE = (
    "rccl-tests, doc/PERFORMANCE.md: algbw = S / t, busbw = algbw * factor; t is the slowest rank's"
)
# What one rank is to run, what it then holds, and what it should hold.
Made = tuple[Callable[[], Any], Any, Any]


class Collective(NamedTuple):
    """One collective of torch.distributed.

    Attributes:
        name: As people call it.
        function: What it calls in torch.distributed.
        make: (torch, distributed, rank, world, elements, device) -> what to run, result, expected.
        factor: From algorithm bandwidth to bus bandwidth, by the number of ranks.
    """

    name: str
    function: str
    make: Callable[..., Made]
    factor: Callable[[int], float]


def counted(torch: Any, elements: int, device: str) -> Any:
    """Return 0, 1, 2 … on the device; whole numbers up to 2**24 are exact in fp32, in any order."""
    return torch.arange(elements, dtype=torch.int32, device=device)


def empty_result(torch: Any, elements: int, device: str) -> Any:
    """Return memory that holds no value which could be expected."""
    return torch.full((elements,), -1.0, dtype=torch.float32, device=device)


def made_all_reduce(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets the sum of what all have."""
    pattern = counted(torch, elements, device) % PATTERN_PERIOD
    values = (pattern + rank).to(torch.float32)
    expected = pattern * world + world * (world - 1) // 2
    return (lambda: distributed.all_reduce(values)), values, expected


def made_all_gather(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets what each has, one after the other."""
    share = elements // world
    mine = (counted(torch, share, device) % PATTERN_PERIOD + rank).to(torch.float32)
    index = counted(torch, share * world, device)
    expected = index % share % PATTERN_PERIOD + index // share
    result = empty_result(torch, share * world, device)
    return (lambda: distributed.all_gather_into_tensor(result, mine)), result, expected


def made_reduce_scatter(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets a share of the sum of what all have."""
    share = elements // world
    values = (counted(torch, share * world, device) % PATTERN_PERIOD + rank).to(torch.float32)
    pattern = (counted(torch, share, device) + rank * share) % PATTERN_PERIOD
    expected = pattern * world + world * (world - 1) // 2
    result = empty_result(torch, share, device)
    return (lambda: distributed.reduce_scatter_tensor(result, values)), result, expected


def made_broadcast(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets what the last rank has."""
    root = world - 1
    expected = counted(torch, elements, device) % PATTERN_PERIOD + root
    result = expected.to(torch.float32) if rank == root else empty_result(torch, elements, device)
    return (lambda: distributed.broadcast(result, root)), result, expected


def made_all_to_all(
    torch: Any, distributed: Any, rank: int, world: int, elements: int, device: str
) -> Made:
    """Everybody gets a share from each, made for it alone."""
    share = elements // world
    index = counted(torch, share * world, device)
    pattern, other = index % share % PATTERN_PERIOD, index // share
    values = (pattern + other + rank * world).to(torch.float32)
    expected = pattern + other * world + rank
    result = empty_result(torch, share * world, device)
    return (lambda: distributed.all_to_all_single(result, values)), result, expected


def share_of_others(world: int) -> float:
    """Return the part of the data that has to come from other ranks."""
    return (world - 1) / world


COLLECTIVES = (
    Collective("all_reduce", "all_reduce", made_all_reduce, lambda n: 2 * share_of_others(n)),
    Collective("all_gather", "all_gather_into_tensor", made_all_gather, share_of_others),
    Collective("reduce_scatter", "reduce_scatter_tensor", made_reduce_scatter, share_of_others),
    Collective("broadcast", "broadcast", made_broadcast, lambda _: 1.0),
    Collective("all_to_all", "all_to_all_single", made_all_to_all, share_of_others),
)
# Bytes of one message, the larger of what a rank puts in and gets out. `quick` sends what it always
# did: one size shows that the ranks reach each other, more would only show how fast.
MESSAGE_BYTES = {
    "cpu": {
        "quick": (64 << 10,),
        "standard": (64 << 10, 1 << 20),
        "full": (4096, 64 << 10, 1 << 20, 4 << 20),
    },
    "gpu": {
        "quick": (4 << 20,),
        "standard": (64 << 10, 4 << 20, 64 << 20),
        "full": (4096, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20),
    },
}
REPEATS = {"quick": 3, "standard": 5, "full": 20}  # timed runs of one size, after one that is not


def collective_names(level: str) -> list[str]:
    """Return the collectives that a level runs."""
    names = [collective.name for collective in COLLECTIVES]
    return names[:1] if level == "quick" else names


def message_elements(accelerator: str, level: str, world: int, most_bytes: int | None) -> list[int]:
    """Return how many fp32 values each message has: a multiple of the ranks."""
    sizes = MESSAGE_BYTES["cpu" if accelerator == "cpu" else "gpu"][level]
    rounded = [max(1, min(size, most_bytes or size) // 4 // world) * world for size in sizes]
    return list(dict.fromkeys(rounded))


def bandwidth(name: str, world: int, size: int, seconds: float) -> dict[str, Any]:
    """Return one row of the table that rccl-tests prints: bytes, seconds, algbw and busbw in GB/s."""
    (factor,) = (known.factor(world) for known in COLLECTIVES if known.name == name)
    algbw = size / max(seconds, 1e-9) / 1e9
    return {
        "bytes": size,
        "seconds": round(seconds, 7),
        "algbw_gb_per_s": round(algbw, 3),
        "busbw_gb_per_s": round(algbw * factor, 3),
    }


# --- transports: How ranks reach each other: what NCCL and RCCL say about it under NCCL_DEBUG=INFO ---

KEPT_TRANSPORT_LINES = 6  # of each rank: one says what hundreds repeat, a channel each
KEPT_WARNINGS = 8
# "Channel 00/0 : 0[3000] -> 1[d000] via P2P/IPC comm 0x2bc1f840 nRanks 02" (RCCL names the
# communicator), "Channel 01 : 0[1] -> 1[1] [send] via NET/Socket/0", "… via direct shared memory" (before 2.8)
CHANNEL_LINE = re.compile(
    r"NCCL INFO (?:Channel|Ring) \d+(?:/\d+)? : (\d+)(?:\[\w+\])? -> (\d+)(?:\[\w+\])? "
    r"(?:\[(?:send|receive)\] )?via (.+?)(?: comm \w+.*)?$"
)
VERSION_LINE = re.compile(r"\b([NR]CCL version ?:? ?[0-9][\w.+-]*)")
NETWORK_LINE = re.compile(r"NCCL INFO (?:Bootstrap ?: Using|NET/\w+ ?: Using) (.+)$")
WARNING_LINE = re.compile(r"NCCL (?:WARN|ERROR) (.+)$|\[FATAL ERROR\]: (.+)$")
# What NCCL, RCCL (posix_fallocate, ftruncate) and torch print when /dev/shm is full.
SHARED_MEMORY_FULL = re.compile(
    r"No space left on device|Error while creating shared memory segment|failed to extend /dev/shm"
    r"|posix_fallocate failed|signal SIGBUS|killed by SIGBUS"
)


def transport_environment() -> dict[str, str]:
    """Return what makes a rank say how it reaches the others, a line at a time.

    On a pipe C's standard output holds lines back, and a rank that hangs or is killed never lets them
    go; a debug file is written a line at a time (setlinebuf in RCCL's src/debug.cc), and this one is
    standard output again. The channels belong to the subsystem INIT.
    """
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV",
        "NCCL_DEBUG_FILE": "/proc/self/fd/1",
    }


def transport_kind(text: str) -> str:
    """Return "P2P/IPC", "SHM/direct" or "NET/Socket" from what follows "via"."""
    if "shared memory" in text:
        return "SHM/direct"
    return "/".join(text.split("/")[:2])


class TransportLog:
    """What one rank's lines say. Bounded: takes any number of them."""

    def __init__(self) -> None:
        self.version = ""
        self.network = ""
        self.kinds: dict[str, int] = {}
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def take(self, line: str) -> None:
        """Note what *line* says; most say nothing about transports."""
        channel = CHANNEL_LINE.search(line)
        if channel:
            source, target, via = channel.groups()
            kind = transport_kind(via)
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
            said = f"{source} -> {target} via {via}"
            if said not in self.lines and len(self.lines) < KEPT_TRANSPORT_LINES:
                self.lines.append(said)
            return
        warning = WARNING_LINE.search(line)
        if warning:
            text = next(filter(None, warning.groups()))
            if text not in self.warnings and len(self.warnings) < KEPT_WARNINGS:
                self.warnings.append(text)
            return
        version, network = VERSION_LINE.search(line), NETWORK_LINE.search(line)
        self.version = self.version or (version.group(1) if version else "")
        self.network = self.network or (network.group(1) if network else "")

    def evidence(self) -> dict[str, Any]:
        """Return what was noted."""
        return {
            "channels": self.kinds,
            "lines": self.lines,
            "network": self.network,
            "warnings": self.warnings,
        }


def shared_memory_bytes() -> int | None:
    """Return the size of /dev/shm, None where there is none."""
    try:
        state = os.statvfs("/dev/shm")
    except OSError:
        return None
    return state.f_blocks * state.f_frsize


def shared_memory_reason(texts: list[str]) -> str:
    """Return that /dev/shm is too small where one of *texts* says so, else nothing."""
    for text in texts:
        if SHARED_MEMORY_FULL.search(text):
            size = shared_memory_bytes()
            holds = "is missing"
            if size is not None:
                whole = f"{size / (1 << 20):g} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
                holds = f"holds {whole}"
            return (
                f"/dev/shm {holds}, too little for the ranks' shared memory: "
                "give the container more (shm_size, --shm-size)"
            )
    return ""


# --- collectives: All devices together: what one rank does ---

# gloo's words for a collective that it has not: every rank hears them before anything is sent.
NOT_IN_BACKEND = re.compile(r"not support|not implemented|no backend|unsupported", re.IGNORECASE)


def stage_collectives(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Take part in the collectives as one rank, one check for each.

    Wrong values are noted and the rank goes on, in step with the others. After any other error it is
    out of step: it stops, and the controller frees those that wait for it.
    """
    torch = state["torch"]
    distributed = None
    for collective in COLLECTIVES:
        if collective.name not in job["names"]:
            continue
        with reporter.check("collectives", collective.name) as check:
            check.evidence["rank"] = job["rank"]
            if distributed is None:
                distributed = joined(reporter, job)
                reporter.send(doing=collective.name, group="collectives")
            wrong = run_collective(check, torch, distributed, job, collective)
            check.evidence["in_step"] = True
            if wrong:
                raise CheckFailed(wrong)
        if "in_step" not in check.evidence:
            return
    if distributed is not None and job["level"] != "quick":
        reporter.send(doing="destroy_process_group", group="collectives")
        distributed.destroy_process_group()


def joined(reporter: Reporter, job: dict[str, Any]) -> Any:
    """Meet the other ranks on loopback; return torch.distributed."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(job["port"]))
    if job["backend"] == "nccl":
        os.environ.update(transport_environment())
    distributed = importlib.import_module("torch.distributed")
    if not distributed.is_available():
        msg = "this torch was built without torch.distributed"
        raise CheckFailed(msg)
    reporter.send(doing="rendezvous", group="collectives")
    distributed.init_process_group(
        job["backend"],
        init_method="env://",
        rank=job["rank"],
        world_size=job["world"],
        timeout=timedelta(seconds=job["timeout"]),
    )
    return distributed


def run_collective(
    check: Check, torch: Any, distributed: Any, job: dict[str, Any], collective: Collective
) -> str:
    """Run one collective in every size; return what is wrong with the values, "" when nothing is."""
    if not hasattr(distributed, collective.function):
        check.skip(f"this torch has no torch.distributed.{collective.function}")
        return ""
    check.evidence.update(sizes=[], wrong=0)
    problem = ""
    for elements in job["elements"]:
        try:
            row = measured(torch, distributed, job, collective, elements)
        except (RuntimeError, NotImplementedError) as error:
            if job["backend"] != "gloo" or not NOT_IN_BACKEND.search(str(error)):
                raise
            check.skip(f"gloo in this torch: {' '.join(str(error).split())[:200]}")
            return ""
        check.evidence["sizes"].append(row)
        check.evidence["wrong"] += row["wrong"]
        if row["wrong"]:
            what = "sums" if "reduce" in collective.name else "values"
            problem = problem or (
                f"{row['wrong']} of {row['values']} {what} are wrong on rank {job['rank']}"
            )
    return problem


def measured(
    torch: Any, distributed: Any, job: dict[str, Any], collective: Collective, elements: int
) -> dict[str, Any]:
    """Run one size twice with fresh values, which are checked, and in between some more for the time.

    The first run of all also sets up the connections, so it has a time of its own.
    """
    device = "cpu" if job["accelerator"] == "cpu" else "cuda:0"
    row: dict[str, Any] = {"bytes": 4 * elements, "wrong": 0}
    for again in (False, True):
        run, result, expected = collective.make(
            torch, distributed, job["rank"], job["world"], elements, device
        )
        begin = time.monotonic()
        run()
        synchronize(torch, device)
        if not again:
            row["first_seconds"] = round(time.monotonic() - begin, 6)
        wrong = int((result != expected.to(torch.float32)).sum().item())
        row.update(wrong=max(row["wrong"], wrong), values=len(result))
        if not again:
            row["seconds"] = time_of(torch, run, device, REPEATS[job["level"]])
    return row


def time_of(torch: Any, run: Any, device: str, repeats: int) -> float:
    """Return the seconds of one run, over several of them."""
    synchronize(torch, device)
    begin = time.monotonic()
    for _ in range(repeats):
        run()
    synchronize(torch, device)
    return (time.monotonic() - begin) / repeats


# --- kernels: What models are made of beside products: a convolution, reductions, attention, each against float64 ---

UNIT = 2.0**-24  # of fp32, in which all of these add up
EPSILON = {"float32": 2.0**-23, "float16": 2.0**-10}
# images, channels in, channels out, rows and columns; 3x3 kernels
CONVOLUTIONS = {"cpu": (2, 16, 16, 28), "gpu": (8, 64, 64, 56)}
REDUCTIONS = {"cpu": (256, 1024), "gpu": (2048, 4096)}
# batch, heads, tokens, width of a head
ATTENTIONS = {"cpu": (1, 4, 128, 64), "gpu": (2, 8, 512, 64)}
BACKENDS = ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION")
CONVOLUTION_SOURCE = (
    f"4*sqrt(K)*u*(|w|*|x|) + eps*|y| with K products a sum: {SUM_SOURCE}; what that leaves over "
    "what is seen also covers the transforms of Winograd's algorithm"
)
REDUCTION_SOURCE = f"4*sqrt(K)*u*sum|x| + eps*|sum|: {SUM_SOURCE}"
SDPA_SOURCE = (
    "(2*d + 3*eps + 4*sqrt(L)*u)*(P|V|) + eps*|O|, d the largest error of a score, "
    f"4*sqrt(D)*u*(|Q||K|)/sqrt(D) + 3*eps*|S|, doubled by the softmax: {SUM_SOURCE}, and the "
    "roundings to the format that a kernel may make of scores, weights and results"
)


def kind_of(device: str) -> str:
    """Return which of the sizes a device gets."""
    return "cpu" if device == "cpu" else "gpu"


def uniform(torch: Any, seed: int, *shape: int) -> Any:
    """Return fp32 numbers in +-1, the same on every machine."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    return torch.rand(*shape, generator=generator) * 2 - 1


def check_convolution(reporter: Reporter, torch: Any, device: str) -> None:
    """Convolve in fp32, and once more: torch promises equal bits in its deterministic mode."""
    images, width, out, side = CONVOLUTIONS[kind_of(device)]
    first = second = None
    with reporter.check("device", "convolution") as check:
        if lacks(check, torch, "nn.functional.conv2d"):
            return
        # A search for MIOpen's fastest kernel compiles many of them and takes minutes.
        os.environ.setdefault("MIOPEN_FIND_MODE", "FAST")
        inputs = uniform(torch, 3, images, width, side, side)
        weights = uniform(torch, 4, out, width, 3, 3)
        convolve = torch.nn.functional.conv2d
        there, there_weights = inputs.to(device), weights.to(device)
        begin = time.monotonic()
        first = convolve(there, there_weights, padding=1)
        synchronize(torch, device)
        middle = time.monotonic()
        second = convolve(there, there_weights, padding=1)
        synchronize(torch, device)
        check.evidence.update(
            first_seconds=round(middle - begin, 4),
            second_seconds=round(time.monotonic() - middle, 4),
            input=list(inputs.shape),
            weights=list(weights.shape),
        )
        exact = convolve(inputs.double(), weights.double(), padding=1)
        terms = convolve(inputs.double().abs(), weights.double().abs(), padding=1)
        bound = terms * growth_of(width * 9, UNIT) + exact.abs() * EPSILON["float32"]
        stays(check, first, device)
        compare(check, first, exact, bound, CONVOLUTION_SOURCE)
    if first is None or second is None or check.status == "fail":
        return
    with reporter.check("device", "repeat_convolution") as check:
        compare_bits(check, torch, first, second, "fp32")


def check_reduction(reporter: Reporter, torch: Any, device: str) -> None:
    """Add up rows, columns and everything, and find the largest of each row."""
    rows, columns = REDUCTIONS[kind_of(device)]
    with reporter.check("device", "reduction") as check:
        if lacks(check, torch, "amax", "sum", "cat"):
            return
        values = uniform(torch, 5, rows, columns)
        there, exact = values.to(device), values.double()
        check.evidence["shape"] = [rows, columns]
        largest = torch.amax(there, dim=1)
        stays(check, largest, device)
        wrong = int((largest.cpu() != torch.amax(values, dim=1)).sum().item())
        if wrong:
            msg = f"{wrong} of {rows} rows have another largest value"
            raise CheckFailed(msg)
        sums, exacts, bounds = [], [], []
        for dims, terms in (((1,), columns), ((0,), rows), ((0, 1), rows * columns)):
            sums.append(torch.sum(there, dim=dims).reshape(-1))
            exacts.append(torch.sum(exact, dim=dims).reshape(-1))
            bounds.append(torch.sum(exact.abs(), dim=dims).reshape(-1) * growth_of(terms, UNIT))
        whole = torch.cat(exacts)
        bound = torch.cat(bounds) + whole.abs() * EPSILON["float32"]
        compare(check, torch.cat(sums), whole, bound, REDUCTION_SOURCE)


def check_attention(reporter: Reporter, torch: Any, device: str) -> None:
    """Attend causally with each of torch's backends that works here; torch promises no equal bits."""
    batch, heads, tokens, width = ATTENTIONS[kind_of(device)]
    kind = "float32" if device == "cpu" else "float16"
    with reporter.check("device", "attention") as check:
        if lacks(check, torch, "nn.functional.scaled_dot_product_attention"):
            return
        dtype = getattr(torch, kind)
        # Rounded first, so that device and reference attend to the same numbers.
        query, key, value = (
            uniform(torch, seed, batch, heads, tokens, width).to(dtype) for seed in (6, 7, 8)
        )
        check.evidence.update(shape=[batch, heads, tokens, width], format=kind)
        exact, bound = attention_reference(torch, query, key, value, EPSILON[kind])
        there = [tensor.to(device) for tensor in (query, key, value)]
        attend_and_compare(check, torch, device, there, exact, bound)
        backends = attention_backends()
        check.evidence["backends"] = sorted(backends)
    if check.status == "fail":
        return
    for name, backend in backends.items():
        with reporter.check("device", f"attention:{name}") as check:
            only = importlib.import_module("torch.nn.attention").sdpa_kernel
            try:
                with only([backend]):
                    attend_and_compare(check, torch, device, there, exact, bound)
            except RuntimeError as error:
                if not refusal(error):
                    raise
                check.skip(f"torch: {refusal(error)}")


def attention_backends() -> dict[str, Any]:
    """Return torch's ways to compute attention by name; none where it lets nobody choose."""
    with contextlib.suppress(ImportError):
        known = importlib.import_module("torch.nn.attention").SDPBackend
        return {
            name.partition("_")[0].lower(): getattr(known, name)
            for name in BACKENDS
            if hasattr(known, name)
        }
    return {}


def attend_and_compare(
    check: Check, torch: Any, device: str, there: list[Any], exact: Any, bound: Any
) -> None:
    """Attend on the device and compare; whether a second time gives equal bits is recorded only."""
    attend = torch.nn.functional.scaled_dot_product_attention
    first = attend(*there, is_causal=True)
    second = attend(*there, is_causal=True)
    synchronize(torch, device)
    stays(check, first, device)
    check.evidence["same_bits_twice"] = int((first != second).sum().item()) == 0
    compare(check, first, exact, bound, SDPA_SOURCE)


def attention_reference(
    torch: Any, query: Any, key: Any, value: Any, epsilon: float
) -> tuple[Any, Any]:
    """Return causal attention in float64, and how far a kernel of the format may be off."""
    query, key, value = query.double(), key.double(), value.double()
    tokens, width = query.shape[-2], query.shape[-1]
    scale = 1 / math.sqrt(width)
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    scores = ((query @ key.transpose(-1, -2)) * scale).masked_fill(future, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    exact = weights @ value
    terms = (query.abs() @ key.abs().transpose(-1, -2)) * scale
    error = terms * growth_of(width, UNIT) + scores.masked_fill(future, 0.0).abs() * 3 * epsilon
    worst = error.masked_fill(future, 0.0).amax(dim=-1, keepdim=True)
    relative = 2 * worst + 3 * epsilon + growth_of(tokens, UNIT)
    return exact, relative * (weights @ value.abs()) + exact.abs() * epsilon


def stays(check: Check, result: Any, device: str) -> None:
    """Fail where a result is not on the device that was to compute it."""
    check.evidence["device"] = str(result.device)
    if str(result.device) != device:
        msg = f"the result is on {result.device}, not on {device}: it was computed elsewhere"
        raise CheckFailed(msg)


# --- compiled: A kernel that torch compiles here, where there is something to compile with ---

COMPILE_SHAPE = {"cpu": (64, 256), "gpu": (1024, 1024)}
COMPILERS = {"cpu": ("CXX", "g++", "clang++"), "gpu": ("CC", "gcc", "clang", "cc")}
COMPILE_SOURCE = f"4*sqrt(K)*u*sum(|x||y|+|z|) + eps*|sum|: {SUM_SOURCE}"


def check_compile(check: Check, torch: Any, device: str) -> None:
    """Compile a product, a sum and a reduction into one kernel, and compare it with float64."""
    kind = "cpu" if device == "cpu" else "gpu"
    if lacks(check, torch, "compile"):
        return
    missing = missing_tool(check, kind)
    if missing:
        check.skip(missing)
        return
    # Workers would import this program again, which has no file that can be imported.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    without_openssl()
    begin = time.monotonic()
    compiled = torch.compile(lambda x, y, z: (x * y + z).sum(dim=1))
    inputs = [uniform(torch, seed, *COMPILE_SHAPE[kind]) for seed in (9, 10, 11)]
    result = compiled(*(tensor.to(device) for tensor in inputs))
    synchronize(torch, device)
    check.evidence["first_seconds"] = round(time.monotonic() - begin, 3)
    left, right, added = (tensor.double() for tensor in inputs)
    exact = (left * right + added).sum(dim=1)
    terms = ((left * right).abs() + added.abs()).sum(dim=1)
    # Two roundings a term before it is added.
    bound = terms * (growth_of(left.shape[1], UNIT) + 2 * UNIT) + exact.abs() * EPSILON["float32"]
    stays(check, result, device)
    compare(check, result, exact, bound, COMPILE_SOURCE)


def missing_tool(check: Check, kind: str) -> str:
    """Return what of a toolchain is not there, looked for before anything is compiled; "" is nothing."""
    variable, *names = COMPILERS[kind]
    given = os.environ.get(variable)
    compiler = next(
        filter(None, (shutil.which(name) for name in ([given] if given else names))), None
    )
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    triton = kind == "cpu" or importlib.util.find_spec("triton") is not None
    check.evidence.update(compiler=compiler, python_header=header.exists())
    if not triton:
        return "there is no triton, which compiles kernels for GPUs"
    if compiler is None:
        return f"there is no compiler: {given or ', '.join(names)} not found on PATH"
    return (
        "" if header.exists() else f"there is no {header}: compiled kernels need Python's headers"
    )


def without_openssl() -> None:
    """Keep inductor from precompiling headers, for which it runs the program openssl where there may be none."""
    config: Any = importlib.import_module("torch._inductor.config")
    if hasattr(config, "cpp_cache_precompile_headers") and shutil.which("openssl") is None:
        config.cpp_cache_precompile_headers = False


# --- hip_library: libamdhip64 and libhiprtc by ctypes, without torch: found, loaded, and every call's code given its name ---

# The newest first. The plain name is a development link, or what a wheel of torch brings along.
SONAME_SUFFIXES = (".so.7", ".so.6", ".so.5", ".so")
ROCM_FOLDERS = ("opt/rocm*/lib", "opt/rocm*/core*/lib")
# Packages whose wheels bring HIP: torch's own, and the ROCm SDK's, which newer builds of torch use.
WHEELS = (("torch", "lib"), ("_rocm_sdk_core", "lib"))
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3  # hipMemcpyKind
HIP_NAME_BYTES = 256
HIP_UUID_BYTES = 16
HIP_PROPERTIES_BYTES = 1 << 16  # the struct has about 1.5 KiB; a newer one may grow
ARCHITECTURE = re.compile(rb"gfx[0-9a-f]+(?:-[0-9a-z-]+)?(?::[a-z]+[+-])*(?=\0)")

_C_INT, _SIZE, _POINTER, _TEXT = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_UINT = ctypes.c_uint
# Of include/hip/hip_runtime_api.h and include/hip/hiprtc.h in github.com/ROCm/HIP: only calls whose
# arguments are the same in ROCm 5, 6 and 7. An argument without a type would be cut to 32 bits.
HIP_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "hipRuntimeGetVersion": (_POINTER,),
    "hipDriverGetVersion": (_POINTER,),
    "hipGetDeviceCount": (_POINTER,),
    "hipDeviceGetName": (_POINTER, _C_INT, _C_INT),
    "hipDeviceGetPCIBusId": (_POINTER, _C_INT, _C_INT),
    "hipDeviceGetUuid": (_POINTER, _C_INT),
    "hipGetDevicePropertiesR0600": (_POINTER, _C_INT),
    "hipGetDeviceProperties": (_POINTER, _C_INT),
    "hipMemGetInfo": (_POINTER, _POINTER),
    "hipMalloc": (_POINTER, _SIZE),
    "hipFree": (_POINTER,),
    "hipMemcpy": (_POINTER, _POINTER, _SIZE, _C_INT),
    "hipMemset": (_POINTER, _C_INT, _SIZE),
    "hipDeviceSynchronize": (),
    "hipModuleLoadData": (_POINTER, _POINTER),
    "hipModuleUnload": (_POINTER,),
    "hipModuleGetFunction": (_POINTER, _POINTER, _TEXT),
    "hipModuleLaunchKernel": (_POINTER, *(_UINT,) * 7, _POINTER, _POINTER, _POINTER),
    "hiprtcCreateProgram": (_POINTER, _TEXT, _TEXT, _C_INT, _POINTER, _POINTER),
    "hiprtcCompileProgram": (_POINTER, _C_INT, _POINTER),
    "hiprtcGetProgramLogSize": (_POINTER, _POINTER),
    "hiprtcGetProgramLog": (_POINTER, _POINTER),
    "hiprtcGetCodeSize": (_POINTER, _POINTER),
    "hiprtcGetCode": (_POINTER, _POINTER),
    "hiprtcDestroyProgram": (_POINTER,),
}


class LibraryMissing(CheckFailed):
    """A library is not here, or cannot be loaded."""


class HipError(CheckFailed):
    """A call that did not succeed."""


def library_names(stem: str, *, torch_first: bool, beside: str | None) -> list[str]:
    """Return what to try for a library such as "libamdhip64": plain names, which the loader looks up, and files.

    With *torch_first* the one that torch's wheel brings comes first, since that is the one torch uses;
    before all others comes the one in the folder of *beside*, a library that belongs to it.
    """
    same = sorted(Path(beside).parent.glob(f"{stem}.so*"), reverse=True) if beside else []
    names = [stem + suffix for suffix in SONAME_SUFFIXES]
    wheels = [folder for package, below in WHEELS for folder in package_folders(package, below)]
    rocm = [str(path) for pattern in ROCM_FOLDERS for path in sorted(Path("/").glob(pattern))]
    in_wheels, in_rocm = (
        [
            str(path)
            for folder in folders
            for path in sorted(Path(folder).glob(f"{stem}.so*"), reverse=True)
        ]
        for folders in (wheels, rocm)
    )
    others = [*in_wheels, *names, *in_rocm] if torch_first else [*names, *in_rocm, *in_wheels]
    return [*map(str, same), *others]


def package_folders(package: str, below: str) -> list[str]:
    """Return where an installed package keeps *below*, without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [f"{path}/{below}" for path in (spec and spec.submodule_search_locations) or ()]


def load_library(stem: str, *, torch_first: bool = False, beside: str | None = None) -> ctypes.CDLL:
    """Load the first library of a name that can be loaded.

    Raises:
        LibraryMissing: there is none, or none that loads; the reason of one that is there counts.
    """
    problems = []
    for name in library_names(stem, torch_first=torch_first, beside=beside):
        library = loaded_or_why(name)
        if isinstance(library, ctypes.CDLL):
            return library
        problems += [library] if library else []
    msg = f"{stem} cannot be loaded: {problems[0]}" if problems else f"there is no {stem}.so here"
    raise LibraryMissing(msg)


def loaded_or_why(name: str) -> ctypes.CDLL | str:
    """Return a library, or what is wrong with it; "" where there is no such file.

    Of a plain name that no folder has the loader says so by that name (glibc in the first words, musl
    in the second); anything else, such as a dependency that is missing, is about a file that is there.
    """
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        said = str(error)
    absent = (f"{name}: cannot open shared object file", f"Error loading shared library {name}: No")
    return "" if said.startswith(absent) else said


def mapped_library(stem: str) -> str | None:
    """Return the path of a library that this process has loaded already."""
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        path = Path("/" + line.partition("/")[2])
        if path.name.startswith(stem):
            return str(path)
    return None


class Api:
    """Calls into one library: each returns a code, and one that is not 0 is raised under its name."""

    def __init__(self, library: ctypes.CDLL, namer: str) -> None:
        self.library = library
        self._namer = namer

    def has(self, name: str) -> bool:
        """Whether the library has a function."""
        return hasattr(self.library, name)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            HipError: it returned an error, or the library does not have it.
        """
        code = self.code_of(name, *arguments)
        if code:
            msg = f"{name} returned {self.name_of(code)}"
            raise HipError(msg)

    def code_of(self, name: str, *arguments: Any) -> int:
        """Call a function and return its code."""
        if not self.has(name):
            msg = f"this library has no {name}"
            raise HipError(msg)
        function = getattr(self.library, name)
        function.argtypes, function.restype = HIP_ARGUMENTS[name], _C_INT
        return int(function(*arguments))

    def number(self, name: str, *arguments: Any) -> int:
        """Call a function whose first argument takes an int, and return that."""
        found = _C_INT(-1)
        self.call(name, ctypes.byref(found), *arguments)
        return found.value

    def name_of(self, code: int) -> str:
        """Return "hipErrorNoDevice (100)"."""
        if not self.has(self._namer):
            return f"error {code}"
        function = getattr(self.library, self._namer)
        function.argtypes, function.restype = (_C_INT,), _TEXT
        name = (function(code) or b"").decode(errors="replace")
        return f"{name} ({code})" if name else f"error {code}"


class Hip(Api):
    """The HIP runtime.

    *torch_first*: its library was looked for beside torch first, and so is hipRTC's.
    """

    def __init__(self, library: ctypes.CDLL, *, torch_first: bool = False) -> None:
        super().__init__(library, "hipGetErrorName")
        self.torch_first = torch_first

    def text(self, name: str, device: int) -> str:
        """Call a function that writes a text about a device."""
        buffer = ctypes.create_string_buffer(HIP_NAME_BYTES)
        self.call(name, buffer, HIP_NAME_BYTES, device)
        return buffer.value.decode(errors="replace")

    def architecture(self, device: int) -> str | None:
        """Return gcnArchName, "gfx942:sramecc+:xnack-"; None where the runtime tells none.

        No call tells it by itself: it is a field of hipDeviceProp_t, which ROCm 6 laid out anew as
        hipDeviceProp_tR0600 (include/hip/hip_runtime_api.h in github.com/ROCm/HIP) while
        hipGetDeviceProperties kept the layout of ROCm 5. Either fills the buffer, and the field is
        looked for by what it holds: after `name`, the first field in all layouts and skipped here
        (a device without a marketing name is called by its architecture), no other field is a text
        that starts with gfx.
        """
        names = ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties")
        name = next((name for name in names if self.has(name)), None)
        if name is None:
            return None
        buffer = ctypes.create_string_buffer(HIP_PROPERTIES_BYTES)
        self.call(name, buffer, device)
        found = ARCHITECTURE.search(buffer.raw, HIP_NAME_BYTES)
        return found.group().decode() if found else None

    def uuid(self, device: int) -> str | None:
        """Return 16 bytes as hex digits, as torch prints them; None before ROCm 5.1, which lacks the call."""
        if not self.has("hipDeviceGetUuid"):
            return None
        buffer = (ctypes.c_char * HIP_UUID_BYTES)()
        self.call("hipDeviceGetUuid", buffer, device)
        return buffer.raw.hex()

    def memory(self) -> tuple[int, int]:
        """Return the free and the total bytes of the current device."""
        free, total = _SIZE(), _SIZE()
        self.call("hipMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size: int) -> int:
        """Return the address of *size* bytes on the device."""
        address = _POINTER()
        self.call("hipMalloc", ctypes.byref(address), size)
        return int(address.value or 0)

    def to_device(self, address: int, data: bytes) -> None:
        """Copy *data* to the device."""
        self.call("hipMemcpy", address, data, len(data), HOST_TO_DEVICE)

    def to_host(self, address: int, size: int) -> bytes:
        """Copy from the device."""
        buffer = ctypes.create_string_buffer(size)
        self.call("hipMemcpy", buffer, address, size, DEVICE_TO_HOST)
        return buffer.raw


def version_text(number: int) -> str:
    """Return "6.2.41134" for 60241134: HIP_VERSION is major * 10^7 + minor * 10^5 + patch."""
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"


# --- identity: Which device this is, and whether it is one that was passed in ---

UNIQUE_ID_DIGITS = 16


def check_identity(check: Check, torch: Any, job: dict[str, Any], *, on_gpu: bool) -> None:
    """Record which device this is and, where both are known, compare with what was passed in."""
    if not on_gpu:
        check.evidence.update(name=processor_name(), threads=torch.get_num_threads())
        return
    check.evidence["visible"] = torch.cuda.device_count()
    if check.evidence["visible"] != 1:
        msg = f"{check.evidence['visible']} devices are visible where exactly one was named"
        raise CheckFailed(msg)
    seen = device_identity(torch, job["accelerator"])
    if job["accelerator"] == "rocm":
        complete_by_hip(check, seen)
    check.evidence.update(seen)
    if seen["architecture"] is not None:
        check.evidence["code"] = code_for(seen["architecture"], torch.cuda.get_arch_list())
    if job["planned"]:
        check.evidence["claims"] = claimed(seen, job["planned"], job["index"])


def claimed(seen: dict[str, Any], planned: list[dict[str, Any]], index: int) -> list[int]:
    """Return which of the planned GPUs a device can be, by their positions.

    Raises:
        CheckFailed: it is none of them; the reason compares it with the one of its own *index*.
    """
    claims = [position for position, gpu in enumerate(planned) if not differences(seen, gpu)]
    if not claims:
        own = planned[index] if index < len(planned) else planned[0]
        msg = f"this is none of the GPUs that were passed in: {'; '.join(differences(seen, own))}"
        raise CheckFailed(msg)
    return claims


def same_device(every: list[list[int]]) -> list[str]:
    """Return why devices cannot be told apart; partitions of one GPU may say the same.

    *every* holds, for each device, the planned GPUs that it can be.
    """
    return [
        f"{same} devices say that they are the same GPU: two indices reach one device"
        for claims in sorted({tuple(claims) for claims in every})
        if (same := sum(tuple(other) == claims for other in every)) > len(claims)
    ]


def device_identity(torch: Any, accelerator: str) -> dict[str, Any]:
    """Return what torch tells of the visible device; versions without a field leave None."""
    properties = torch.cuda.get_device_properties(0)
    domain, bus, slot = (
        getattr(properties, name, None) for name in ("pci_domain_id", "pci_bus_id", "pci_device_id")
    )
    architecture = getattr(properties, "gcnArchName", None) if accelerator == "rocm" else None
    uuid = getattr(properties, "uuid", None)
    return {
        "name": properties.name,
        "architecture": architecture,
        "gfx": architecture.partition(":")[0] if architecture else None,
        "total_memory_bytes": properties.total_memory,
        "pci_address": None if bus is None else f"{domain or 0:04x}:{bus:02x}:{slot or 0:02x}",
        "uuid": None if uuid is None else str(uuid),
        "unique_id": decoded_unique_id(str(uuid)) if accelerator == "rocm" and uuid else None,
    }


def complete_by_hip(check: Check, seen: dict[str, Any]) -> None:
    """Ask the HIP that torch has loaded for what torch's version does not tell: the same device 0, at no cost."""
    missing = [name for name in ("pci_address", "uuid", "architecture") if seen[name] is None]
    path = mapped_library("libamdhip64") if missing else None
    if path is None:
        return
    try:
        told = hip_identity(Hip(ctypes.CDLL(path)))
    except (CheckFailed, OSError) as error:
        check.evidence["hip_error"] = str(error)
        return
    check.evidence["told_by_hip"] = [name for name in missing if told[name] is not None]
    seen.update({name: told[name] for name in told if seen[name] is None})


def hip_identity(hip: Hip, device: int = 0) -> dict[str, Any]:
    """Return what HIP tells of a device, under the names that torch's identity has."""
    address = hip.text("hipDeviceGetPCIBusId", device).lower()
    architecture = hip.architecture(device)
    uuid = hip.uuid(device)
    return {
        "name": hip.text("hipDeviceGetName", device),
        "architecture": architecture,
        "gfx": architecture.partition(":")[0] if architecture else None,
        "pci_address": address.partition(".")[0] or None,
        "uuid": uuid,
        "unique_id": decoded_unique_id(uuid) if uuid else None,
    }


def decoded_unique_id(uuid: str) -> str | None:
    """Return the 16 hex digits of a ROCm uuid, whose bytes are their ASCII codes; None for "XX" (no id)."""
    try:
        text = bytes.fromhex(uuid.replace("-", "")).decode("ascii").lower()
        int(text, 16)
    except ValueError:
        return None
    return text if len(text) == UNIQUE_ID_DIGITS else None


def differences(seen: dict[str, Any], planned: dict[str, Any]) -> list[str]:
    """Return where a device differs from a planned GPU. A PCI function is not compared: torch tells none."""
    found = []
    address = planned.get("pci_address")
    for what, value, expected in (
        (
            "PCI address",
            seen["pci_address"],
            address.lower().partition(".")[0] if address else None,
        ),
        ("unique id", seen["unique_id"], planned.get("unique_id")),
    ):
        if value is not None and expected is not None and value != expected.lower():
            found.append(f"{what} {value}, not {expected}")
    gfx, names = seen["gfx"], answers_as(planned, os.environ, override_nodes())
    # Under an override a GPU gives another target's name; that is a check of its own.
    if gfx is not None and planned.get("gfx") and gfx not in names:
        found.append(f"gfx {gfx}, not {planned['gfx']}")
    return found


# --- speed: How fast something runs, and whether that is slow for what it runs on ---

# Seconds that one measurement lasts; the best of three counts, so that a busy host is not a slow GPU.
WINDOWS = {"quick": 0.005, "standard": 0.1, "full": 0.1}
MEASUREMENTS = 3
LONG_RUN_SECONDS = 0.5  # one of these is a measurement by itself
# Shorter runs say more of the host, which has to start them, than of the GPU.
JUDGED_FROM_SECONDS = {"quick": 1e-3, "standard": 1e-4, "full": 1e-4}
# Up to this length, the GPU must also have been waited for: a host that took that much of the time
# to start the runs kept the GPU hungry.
LONG_ENOUGH_SECONDS = 1e-3
HOST_SHARE = 0.7
# No more runs than the queues of a device hold: a host that waits for room in one seems busy.
MOST_RUNS = 400
# AMD's floors are for products of about this size and its own tuned kernels; a smaller product, or
# another library, may stay below without anything being wrong: hence the half.
JUDGED_FROM_ROWS = 4096
SHARE_OF_FLOOR = 0.5
# The least that AMD publishes of its current GPUs as reachable, of which again half is asked.
LEAST_REACHED = 0.44
LEAST_REACHED_SOURCE = (
    "AMD's blog on max-achievable FLOPS (February 2025): 44 to 70 % of the peak are reached"
)
SHARE_OF_BANDWIDTH = 0.4
MEMORY_SPEED_SOURCE = (
    "this project's choice: a copy that reaches less than 40 % of the peak is slow"
)


class Timing(NamedTuple):
    """How long one run took, and whether the host needed most of that to start it."""

    seconds: float
    host_bound: bool = False


def time_runs(torch: Any, device: str, level: str, work: Callable[[], Any]) -> Timing:
    """Return how long one run of *work* takes at best, after one to warm up. A CPU runs it once."""

    def lasted(runs: int) -> Timing:
        synchronize(torch, device)
        begin = time.monotonic()
        for _ in range(runs):
            work()
        started = time.monotonic() - begin
        synchronize(torch, device)
        whole = time.monotonic() - begin
        return Timing(whole / runs, host_bound=started > HOST_SHARE * whole)

    once = lasted(1)
    if device == "cpu":
        return once
    once = lasted(1)
    if once.seconds > LONG_RUN_SECONDS:
        return once
    runs = max(1, min(MOST_RUNS, int(WINDOWS[level] / max(once.seconds, 1e-7))))
    return min(once, *(lasted(runs) for _ in range(MEASUREMENTS)))


def record_speed(check: Check, level: str, figure: str, value: float, timing: Timing) -> None:
    """Keep a speed under the name *figure*, so that the device's siblings can be compared with it."""
    seconds = timing.seconds
    check.evidence.update({"figure": figure, figure: value, "seconds_a_run": seconds})
    hungry = timing.host_bound and seconds < LONG_ENOUGH_SECONDS
    check.evidence["long_enough"] = seconds >= JUDGED_FROM_SECONDS[level] and not hungry
    if hungry:
        check.evidence["waited_for_host"] = True


def judge_product(check: Check, name: str, rows: int, peaks: dict[str, Any] | None) -> None:
    """Compare the TFLOP/s of a product with what the table of GPUs says of the model."""
    speed = check.evidence["tflops"]
    peak = (peaks or {}).get("tflops", {}).get(name)
    if not peaks or not peak:
        return
    check.evidence.update(
        peak_tflops=peak, share_of_peak=round(speed / peak, 3), peak_source=peaks["source"]
    )
    floor = peaks.get("floor_tflops", {}).get(name)
    if floor:
        least, source = floor * SHARE_OF_FLOOR, f"half of {floor} TFLOP/s: {peaks['floor_source']}"
    elif name in ("fp16", "bf16"):
        least = peak * LEAST_REACHED * SHARE_OF_FLOOR
        source = f"half of 44 % of {peak} TFLOP/s ({peaks['source']}): {LEAST_REACHED_SOURCE}"
    else:
        return
    if rows >= JUDGED_FROM_ROWS and "waited_for_host" not in check.evidence:
        judge(check, speed, least, "TFLOP/s", source)


def judge_memory_speed(check: Check, peaks: dict[str, Any] | None) -> None:
    """Compare the GB/s of a copy within the device with the model's."""
    peak = (peaks or {}).get("memory_gb_per_s")
    if not peaks or not peak:
        return
    speed = check.evidence["copy_gb_per_s"]
    check.evidence.update(
        peak_gb_per_s=peak, share_of_peak=round(speed / peak, 3), peak_source=peaks["source"]
    )
    judge(
        check, speed, peak * SHARE_OF_BANDWIDTH, "GB/s", f"{MEMORY_SPEED_SOURCE}; {peaks['source']}"
    )


def judge(check: Check, speed: float, least: float, unit: str, source: str) -> None:
    """Degrade a check whose speed is below *least*; being slow is never a failure."""
    check.threshold, check.threshold_source = round(least, 3), source
    if speed < least:
        check.degrade(f"slow: {speed:.4g} {unit} where {least:.4g} are expected of this model")


def peaks_of_device(job: dict[str, Any], claims: list[int]) -> dict[str, Any] | None:
    """Return what the plan says of the GPU that this device is; None where that is not known."""
    planned = job.get("planned") or []
    position = claims[0] if claims else job.get("index", 0)
    peaks: dict[str, Any] | None = (
        planned[position].get("peaks") if position < len(planned) else None
    )
    return peaks


# --- memory: Device memory: whether it keeps what is written, and how fast it moves ---

GIB = 1 << 30
CHUNK_BYTES = 256 << 20
WORD_BYTES = 8
SHARES = {"standard": 0.25, "full": 0.9}  # of the memory that is free
LEFT_FREE = GIB
APU_BYTES = 2 * GIB  # what an APU calls its own is the host's memory
CPU_BYTES = 16 << 20  # host memory is not what is proved: this only shows that the sweep works
SWEEP_SECONDS = {"standard": 30, "full": 180}
UNCOUNTED = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING")
# Matrices of 8 bytes an element that products in all formats need room for, with a margin.
MATRICES = 12
LEAST_ROWS = 1024
STREAM_BYTES = {"cpu": 16 << 20, "gpu": 256 << 20}


def fitting_rows(torch: Any, rows: int) -> int:
    """Return *rows*, halved until products of that size fit into the memory that is free."""
    free = int(torch.cuda.mem_get_info()[0])
    while rows > LEAST_ROWS and MATRICES * 8 * rows**2 > free:
        rows //= 2
    return rows


def check_allocate(check: Check, torch: Any, device: str, size: int) -> None:
    """Fill memory with a pattern and read it back on the device."""
    pattern = 0xA5
    memory = torch.full((size,), pattern, dtype=torch.uint8, device=device)
    wrong = int((memory != pattern).sum().item())
    check.evidence.update(bytes=size, wrong=wrong)
    if wrong:
        msg = f"{wrong} of {size} bytes do not hold what was written"
        raise CheckFailed(msg)


def check_copy(check: Check, torch: Any, device: str, size: int) -> None:
    """Copy memory to the device and back, pageable and pinned, and compare."""
    if device == "cpu":
        check.skip("a cpu has no memory of its own to copy to")
        return
    pageable = torch.arange(size // 4, dtype=torch.int32)
    check.evidence["bytes"] = size
    copied_both_ways(check, torch, device, pageable, "")
    if not hasattr(pageable, "pin_memory"):
        check.evidence["pinned"] = "this torch has no Tensor.pin_memory"
        return
    copied_both_ways(check, torch, device, pageable.pin_memory(), "pinned_")


def copied_both_ways(check: Check, torch: Any, device: str, host: Any, kind: str) -> None:
    """Copy *host* there and back twice; the first time also sets up what the second one uses."""
    back = host
    for _ in range(2):
        begin = time.monotonic()
        there = host.to(device)
        synchronize(torch, device)
        middle = time.monotonic()
        back = there.cpu() if not kind else into_pinned(torch, there, host)
        synchronize(torch, device)
        end = time.monotonic()
        check.evidence.update(
            {
                f"{kind}to_device_gb_per_s": rate(check.evidence["bytes"], middle - begin),
                f"{kind}to_host_gb_per_s": rate(check.evidence["bytes"], end - middle),
            }
        )
    wrong = int((back != host).sum().item())
    check.evidence["wrong"] = wrong
    if wrong:
        msg = f"{wrong} of {len(host)} values changed on the way to the device and back"
        raise CheckFailed(msg)


def into_pinned(torch: Any, there: Any, like: Any) -> Any:
    """Copy a tensor of the device into pinned memory of its own."""
    back = torch.empty_like(like).pin_memory()
    back.copy_(there)
    return back


def check_memory_pattern(check: Check, torch: Any, device: str, job: dict[str, Any]) -> None:
    """Write patterns over a share of the free memory, then read all of it back, on the device.

    The first holds each word's own address, so that two addresses of one cell, or two chunks in one
    place, overwrite each other: it is read only after everything is written.
    """
    if lacks(check, torch, "empty", "int64"):
        return
    asked = sweep_bytes(check, torch, device, job)
    if not asked:
        return
    chunks = chunks_of(check, torch, device, asked)
    held = sum(len(chunk) for chunk in chunks) * WORD_BYTES
    check.evidence.update(asked_bytes=asked, swept_bytes=held, patterns=[])
    if held < asked // 2:
        check.degrade(f"{asked} bytes were said to be free, only {held} could be allocated")
    end = time.monotonic() + SWEEP_SECONDS[job["level"]]
    for name, write, differs in patterns(torch, device) if chunks else ():
        if time.monotonic() > end:
            check.evidence["stopped"] = f"after {SWEEP_SECONDS[job['level']]} s, before {name}"
            break
        start = 0
        for chunk in chunks:
            write(chunk, start)
            start += len(chunk)
        start = 0
        for chunk in chunks:
            wrong = differs(chunk, start)
            count = int(wrong.sum().item())
            if count:
                first = (start + int(wrong.nonzero()[0].item())) * WORD_BYTES
                msg = f"{count} words of a chunk do not hold the pattern {name}, the first at byte {first} of the sweep"
                raise CheckFailed(msg)
            start += len(chunk)
        check.evidence["patterns"].append(name)


def sweep_bytes(check: Check, torch: Any, device: str, job: dict[str, Any]) -> int:
    """Return how much to sweep: a share of what is free, of which 1 GiB stays."""
    if device == "cpu":
        return CPU_BYTES
    torch.cuda.empty_cache()
    free, total = (int(value) for value in torch.cuda.mem_get_info())
    planned = job.get("planned") or []
    apu = any(gpu.get("apu") for gpu in planned[job.get("index", 0) :][:1])
    apu = apu or bool(getattr(torch.cuda.get_device_properties(0), "is_integrated", False))
    share = SHARES[str(job["level"])]
    check.evidence.update(free_bytes=free, total_bytes=total, share_of_free=share, apu=apu)
    wanted = min(int(free * share), free - LEFT_FREE)
    if apu:
        wanted = min(wanted, APU_BYTES)
    if wanted <= 0:
        check.skip(f"{free} bytes are free, and 1 GiB is to stay free")
    return max(0, wanted)


def chunks_of(check: Check, torch: Any, device: str, asked: int) -> list[Any]:
    """Return 64-bit words in chunks of *asked* bytes together, or what of that can be had."""
    chunks: list[Any] = []
    left = asked
    while left >= WORD_BYTES:
        try:
            words = min(left, CHUNK_BYTES) // WORD_BYTES
            chunks.append(torch.empty(words, dtype=torch.int64, device=device))
        except RuntimeError as error:  # somebody else took what was free a moment ago
            if "out of memory" not in str(error):
                raise
            check.evidence["out_of_memory_after_bytes"] = asked - left
            break
        left -= words * WORD_BYTES
    return chunks


def patterns(torch: Any, device: str) -> list[tuple[str, Any, Any]]:
    """Return each pattern's name, what writes it into a chunk and what tells where it is not."""

    def addresses(chunk: Any, start: int, turn: int) -> Any:
        counted = torch.arange(start, start + len(chunk), dtype=torch.int64, device=device)
        return counted if turn > 0 else -1 - counted

    def by_address(turn: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            lambda chunk, start: chunk.copy_(addresses(chunk, start, turn)),
            lambda chunk, start: chunk != addresses(chunk, start, turn),
        )

    def constant(value: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        return (
            lambda chunk, _start: chunk.fill_(value),
            lambda chunk, _start: chunk != value,
        )

    checkered = 0x5555555555555555
    return [
        ("address", *by_address(1)),
        ("inverted_address", *by_address(-1)),
        ("01", *constant(checkered)),
        ("10", *constant(-1 - checkered)),
        ("ones", *constant(-1)),
        ("zeros", *constant(0)),
    ]


def check_bandwidth(check: Check, torch: Any, device: str, level: str, peaks: Any) -> None:
    """Measure a copy and a triad within device memory, in bytes read and written."""
    if lacks(check, torch, "empty", "add"):
        return
    size = STREAM_BYTES["cpu" if device == "cpu" else "gpu"]
    if device != "cpu":  # three of them, and room for others
        size = min(size, int(torch.cuda.mem_get_info()[0]) // 8 // WORD_BYTES * WORD_BYTES)
    first, second, third = (
        torch.full((size // 4,), value, dtype=torch.float32, device=device)
        for value in (1.0, 2.0, 0.0)
    )
    triad = time_runs(torch, device, level, lambda: torch.add(first, second, alpha=3.0, out=third))
    wrong = int((third != first + 3 * second).sum().item())
    check.evidence.update(bytes=size, wrong=wrong, triad_gb_per_s=rate(3 * size, triad.seconds))
    copy = time_runs(torch, device, level, lambda: third.copy_(first))
    wrong += int((third != first).sum().item())
    record_speed(check, level, "copy_gb_per_s", rate(2 * size, copy.seconds), copy)
    if wrong:
        msg = f"{wrong} of {size // 4} values are not what was copied or added"
        raise CheckFailed(msg)
    judge_memory_speed(check, peaks)


def check_peak_memory(check: Check, torch: Any, *, on_gpu: bool) -> None:
    """Record the most memory that the stage took."""
    check.evidence["host_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if on_gpu:
        check.evidence["device_bytes"] = torch.cuda.max_memory_allocated()
        free, total = torch.cuda.mem_get_info()
        check.evidence.update(free_bytes=free, total_bytes=total)


def check_cpu_fallback(check: Check, torch: Any, size: int) -> None:
    """Fail where the device never held the matrices that it is said to have multiplied."""
    if lacks(check, torch, "cuda.max_memory_allocated"):
        return
    uncounted = [name for name in UNCOUNTED if os.environ.get(name)]
    if uncounted:
        check.skip(f"with {uncounted[0]} torch does not count its memory")
        return
    held, needed = torch.cuda.max_memory_allocated(), 3 * 4 * size**2
    check.evidence.update(device_bytes=held, needed_bytes=needed)
    if held < needed:
        msg = f"at most {held} bytes of the device were ever in use, three matrices of fp32 need {needed}"
        raise CheckFailed(msg)


# --- products: Matrix products against a float64 reference ---

# Every kernel computes its result in tiles of 64 rows or more, so one row in 64 touches them all.
SAMPLE_EVERY = 64
SAMPLED_ABOVE = 1024  # rows; up to here the reference costs next to nothing
# format: (its inputs, unit roundoff of the accumulator, epsilon of the stored result). All of
# torch's kernels sum half formats in fp32 once reduced-precision reductions are off.
FORMATS = {
    "fp32": ("fine", 2.0**-24, 2.0**-23),
    "fp64": ("fine", 2.0**-53, 2.0**-52),
    "fp16": ("half", 2.0**-24, 2.0**-10),
    "bf16": ("half", 2.0**-24, 2.0**-7),
    "fp8": ("eighth", 2.0**-24, 2.0**-7),  # stored as bf16
}
QUICK_FORMATS = ("fp32", "fp16", "bf16")
TORCH_TYPES = {"fp32": "float32", "fp64": "float64", "fp16": "float16", "bf16": "bfloat16"}
# AMD's GPUs with matrix instructions for fp8, and which of the two encodings they take.
# Source: ROCm documentation, "Data types and precision support" (FNUZ on CDNA3, OCP on CDNA4, RDNA4).
FP8_TYPES = {
    "gfx942": "float8_e4m3fnuz",
    "gfx950": "float8_e4m3fn",
    "gfx1200": "float8_e4m3fn",
    "gfx1201": "float8_e4m3fn",
}
FP8_ROWS = 16  # torch's _scaled_mm takes multiples of it
FP8_CAPABILITY = (8, 9)  # of NVIDIA's: Ada, Hopper and later
PRODUCT_SOURCE = (
    f"4*sqrt(K)*u*(|A||B|) + eps*|C|: {SUM_SOURCE}, plus the rounding of the stored result"
)
# NVIDIA's fp8 units keep 13 bits behind the leading one while they add 128 products in four steps.
NARROW_GROWTH = 4 * 2.0**-13
NARROW_SOURCE = (
    "4*2^-13*(|A||B|) + eps*|C|: DeepSeek-V3 Technical Report (arXiv:2412.19437), section 3.3.2, on "
    "what Hopper's fp8 units keep between promotions to fp32"
)


class Operands:
    """Two matrices on the device, and float64 products of a sample of their rows.

    Formats that can hold the same numbers share them and the reference: fp32 and fp64 all bits of
    fp32, fp16 and bf16 the eight of bf16, fp8 its own four. One pair is kept at a time.
    """

    def __init__(self, torch: Any, device: str, size: int) -> None:
        self.torch, self.device, self.size = torch, device, size
        self._inputs = ""

    def prepare(self, inputs: str) -> None:
        """Make the pair of *inputs*, unless it is there."""
        if inputs == self._inputs:
            return
        self._inputs = inputs
        left, right = (self._matrix(seed) for seed in (1, 2))
        step = SAMPLE_EVERY if self.size > SAMPLED_ABOVE else 1
        # The odd remainder moves the sample within its tile from one tile to the next.
        starts = range(0, self.size, step)
        self.rows = self.torch.tensor(
            [min(start + start // step * 7 % step, self.size - 1) for start in starts]
        )
        sample, other = left[self.rows].double(), right.double()
        self.exact = sample @ other
        self.magnitude = sample.abs() @ other.abs()
        self.left, self.right = left.to(self.device), right.to(self.device)

    def _matrix(self, seed: int) -> Any:
        """Return a square fp32 matrix with entries in +-[0.25, 1], the same on every machine."""
        generator = self.torch.Generator()
        generator.manual_seed(seed)
        uniform = self.torch.rand(self.size, self.size, generator=generator) * 1.5 - 0.75
        values = uniform + uniform.sign() * 0.25
        if self._inputs == "half":
            values = values.to(self.torch.bfloat16).to(self.torch.float32)
        elif self._inputs == "eighth":
            values = (values * 16).round() / 16  # k/16 with k up to 16 needs four bits
        return values


def check_matmul(
    reporter: Reporter, operands: Operands, name: str, job: dict[str, Any], peaks: Any
) -> None:
    """Multiply two matrices: against a float64 reference, once more for equality, and for speed.

    With K the inner dimension, u the unit roundoff of the accumulator and eps the epsilon of the
    stored format, each element must satisfy

        |computed - exact| <= 4 * sqrt(K) * u * (|A| |B|) + eps * |exact|

    The first term is Higham and Mary's bound for a sum of K products in any order, whose rounding
    errors are independent with mean zero; 4 standard deviations of a worst case leave a factor of
    hundreds over what is seen, and still tell fp32 from TF32 at these sizes. The second is the
    rounding of the result, by nearest or by truncation. The entries are at least 1/4 in magnitude:
    matrix units that flush subnormal numbers change nothing.
    """
    torch, device, size = operands.torch, operands.device, operands.size
    multiply = product = None
    with reporter.check("device", f"matmul_{name}") as check:
        check.evidence["size"] = size
        multiply = product_of(check, operands, name, job["accelerator"])
        if multiply is not None:
            product = multiply()
            synchronize(torch, device)
            compare_rows(check, operands, product, name, job["accelerator"])
    if multiply is None or product is None or check.status == "fail":
        return
    with reporter.check("device", f"repeat_{name}") as check:
        begin = time.monotonic()
        again = multiply()
        synchronize(torch, device)
        timing = Timing(time.monotonic() - begin)
        compare_bits(check, torch, product, again, name)
    if check.status == "fail":
        return
    with reporter.check("device", f"speed_{name}") as check:
        if device != "cpu":
            timing = time_runs(torch, device, job["level"], multiply)
        tflops = rate(2.0 * size**3, timing.seconds, 1e12)
        record_speed(check, job["level"], "tflops", tflops, timing)
        judge_product(check, name, size, peaks)


def product_of(check: Check, operands: Operands, name: str, accelerator: str) -> Any:
    """Return what multiplies in a format; None, with the check skipped, where the device does not."""
    torch = operands.torch
    if name != "fp8":
        operands.prepare(FORMATS[name][0])
        dtype = getattr(torch, TORCH_TYPES[name])
        left, right = operands.left.to(dtype), operands.right.to(dtype)
        return lambda: torch.matmul(left, right)
    narrow = fp8_type(check, torch, accelerator)
    if narrow is None or lacks(check, torch, "_scaled_mm", narrow):
        return None
    if operands.size % FP8_ROWS:
        check.skip(f"torch multiplies fp8 in multiples of {FP8_ROWS} rows only")
        return None
    operands.prepare(FORMATS[name][0])
    left = operands.left.to(getattr(torch, narrow))
    right = operands.right.to(getattr(torch, narrow)).t().contiguous().t()
    one = torch.ones((), dtype=torch.float32, device=operands.device)

    def multiply() -> Any:
        how = {"scale_a": one, "scale_b": one, "use_fast_accum": False}
        done = torch._scaled_mm(left, right, out_dtype=torch.bfloat16, **how)  # noqa: SLF001
        return (
            done[0] if isinstance(done, tuple) else done
        )  # with the largest value up to torch 2.4

    try:
        multiply()
    except Exception as error:
        if not refusal(error):
            raise
        check.skip(f"torch: {refusal(error)}")
        return None
    return multiply


def fp8_type(check: Check, torch: Any, accelerator: str) -> str | None:
    """Return which fp8 the device multiplies; None, with the check skipped, where it has none."""
    if accelerator == "rocm":
        properties = torch.cuda.get_device_properties(0)
        gfx = str(getattr(properties, "gcnArchName", "")).partition(":")[0]
        if gfx not in FP8_TYPES:
            check.skip(f"{gfx or 'this GPU'} is not known to multiply fp8")
        return FP8_TYPES.get(gfx)
    if lacks(check, torch, "cuda.get_device_capability"):
        return None
    capability = tuple(torch.cuda.get_device_capability(0))
    if capability < FP8_CAPABILITY:
        check.skip(f"a GPU of compute capability {capability[0]}.{capability[1]} has no fp8")
        return None
    return "float8_e4m3fn"


def compare_rows(
    check: Check, operands: Operands, product: Any, name: str, accelerator: str
) -> None:
    """Compare a sample of whole rows, spread over all of them, with the float64 reference."""
    torch, size, rows = operands.torch, operands.size, operands.rows
    where = str(product.device)
    if where != operands.device:
        msg = f"the product is on {where}, not on {operands.device}: it was computed elsewhere"
        raise CheckFailed(msg)
    finite = int(torch.isfinite(product).sum().item())
    if finite != size * size:
        msg = f"{size * size - finite} of {size * size} results are not finite"
        raise CheckFailed(msg)
    _, unit, epsilon = FORMATS[name]
    growth, source = growth_of(size, unit), PRODUCT_SOURCE
    if name == "fp8" and accelerator == "cuda":
        growth, source = NARROW_GROWTH, NARROW_SOURCE
    bound = operands.magnitude * growth + operands.exact.abs() * epsilon
    compare(check, product[rows.to(operands.device)], operands.exact, bound, source)
    check.evidence["rows"] = len(rows)


# --- device: One device, exercised by a process that sees no other ---

def stage_device(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Exercise the one device that this process can see."""
    torch = state["torch"]
    on_gpu = job["accelerator"] != "cpu"
    device = "cuda:0" if on_gpu else "cpu"
    with reporter.check("device", "identity") as check:
        check_identity(check, torch, job, on_gpu=on_gpu)
    if on_gpu and check.evidence.get("visible") == 0:
        return
    peaks = peaks_of_device(job, check.evidence.get("claims") or [])
    make_exact(torch)
    if on_gpu:
        job = {**job, "size": fitting_rows(torch, job["size"])}
    with reporter.check("device", "allocate") as check:
        check_allocate(check, torch, device, 4 * job["size"] ** 2)
    if job["level"] != "quick":
        exercise_memory(job, reporter, torch, device, peaks)
    operands = Operands(torch, device, job["size"])
    for name in formats_of(job["level"], on_gpu=on_gpu):
        check_matmul(reporter, operands, name, job, peaks)
    del operands
    if job["level"] != "quick":
        check_convolution(reporter, torch, device)
        check_reduction(reporter, torch, device)
        check_attention(reporter, torch, device)
    if job["level"] == "full" or (job["level"] == "standard" and on_gpu):
        with reporter.check("device", "compile") as check:
            check_compile(check, torch, device)
    with reporter.check("device", "peak_memory") as check:
        check_peak_memory(check, torch, on_gpu=on_gpu)
    if on_gpu:
        with reporter.check("device", "cpu_fallback") as check:
            check_cpu_fallback(check, torch, job["size"])


def make_exact(torch: Any) -> None:
    """Ask torch for plain arithmetic: no TF32, no half-precision sums, the same result twice."""
    torch.set_float32_matmul_precision("highest")
    matmul = torch.backends.cuda.matmul
    for name in (
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    ):
        if hasattr(matmul, name):
            setattr(matmul, name, False)
    if hasattr(torch.backends, "cudnn"):
        torch.backends.cudnn.allow_tf32 = False
    # Not use_deterministic_algorithms: that imports torch._inductor, which takes a second.
    torch.set_deterministic_debug_mode("warn")
    # Which would also write every new tensor full of NaN before its use.
    filling = offered(torch, "utils.deterministic")
    if hasattr(filling, "fill_uninitialized_memory"):
        filling.fill_uninitialized_memory = False


def exercise_memory(
    job: dict[str, Any], reporter: Reporter, torch: Any, device: str, peaks: Any
) -> None:
    """Copy to the device and back, sweep its memory, and measure how fast that is."""
    with reporter.check("device", "copy") as check:
        check_copy(check, torch, device, 4 * job["size"] ** 2)
    with reporter.check("device", "memory_pattern") as check:
        check_memory_pattern(check, torch, device, job)
    release = offered(torch, "cuda.empty_cache")
    if device != "cpu" and release:
        release()  # the next checks, and the siblings on this GPU, need room
    with reporter.check("device", "memory_bandwidth") as check:
        check_bandwidth(check, torch, device, job["level"], peaks)


def formats_of(level: str, *, on_gpu: bool) -> tuple[str, ...]:
    """Return the formats to multiply in; a CPU's float64 is what everything is compared with."""
    return tuple(FORMATS) if on_gpu and level != "quick" else QUICK_FORMATS


# --- limits: The limits of the cgroup and of the process ---

def check_limits(check: Check, expect: dict[str, Any]) -> None:
    """Compare the limits with the planned ones: a lower limit is the site's, a higher one is nobody's."""
    seen: dict[str, Any] = {
        "memory_bytes": memory_limit(),
        "pids": number(cgroup_value("pids", "pids.max", "pids.max")),
        "cpus": cpu_limit(),
    }
    known = {
        "memory_bytes": cgroup_value("memory", "memory.max", "memory.limit_in_bytes"),
        "pids": cgroup_value("pids", "pids.max", "pids.max"),
        "cpus": cgroup_value("cpu", "cpu.max", "cpu.cfs_quota_us"),
    }
    check.evidence.update(
        seen,
        usable_cpus=len(os.sched_getaffinity(0)),
        allowed_cpus=sorted(os.sched_getaffinity(0)),
        not_readable=[name for name, text in known.items() if text is None],
    )
    limits = expect.get("limits") or {}
    wrong = []
    for name, value in seen.items():
        planned = limits.get(name)
        if planned and known[name] is not None and (value is None or value > planned):
            wrong.append(f"{name} is {value if value is not None else 'unlimited'}, not {planned}")
    if limits.get("cpuset_cpus"):
        beyond = sorted(os.sched_getaffinity(0) - cpu_list(limits["cpuset_cpus"]))
        wrong += [f"processor {cpu} may be used, beside {limits['cpuset_cpus']}" for cpu in beyond]
    wrong += wrong_ulimits(check, expect.get("ulimits") or {})
    if wrong:
        msg = f"{'; '.join(wrong)} as planned"
        raise CheckFailed(msg)


def wrong_ulimits(check: Check, planned: dict[str, list[int]]) -> list[str]:
    """Record the limits of the process and return those that are not as planned."""
    wrong = []
    for name in sorted({"nofile", "nproc", "core", "memlock", *planned}):
        kind = getattr(resource, f"RLIMIT_{name.upper()}", None)
        if kind is None:
            continue
        check.evidence[name] = list(resource.getrlimit(kind))
        if name in planned and check.evidence[name] != list(planned[name]):
            wrong.append(f"ulimit {name} is {check.evidence[name]}, not {list(planned[name])}")
    return wrong


def cpu_limit() -> float | None:
    """Return how many processors' time the cgroup may take; None is no limit."""
    text = cgroup_value("cpu", "cpu.max", "cpu.cfs_quota_us")
    quota, _, period = (text or "").partition(" ")
    if not quota.isdigit():  # "max", or -1 on cgroup v1
        return None
    period = period or cgroup_value("cpu", "cpu.max", "cpu.cfs_period_us") or "100000"
    return round(
        int(quota) / int(period), 6
    )  # exact: a limit rounded up would be more than planned


def cpu_list(text: str) -> set[int]:
    """Return the processors of the kernel's list form, "0-3,8"."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


# --- mounts: The mounts of this container, compared with the planned ones ---

MOUNT_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))
# What engines mount in every container: the init process, name resolution, Podman's own files.
ENGINE_MOUNTS = (
    "/",
    "/proc",
    "/sys",
    "/dev",
    "/dev/pts",
    "/dev/mqueue",
    "/dev/shm",
    "/dev/console",
    "/dev/init",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/random",
    "/dev/urandom",
    "/etc/resolv.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/sbin/docker-init",
    "/usr/sbin/docker-init",
    "/run/podman-init",
    "/run/.containerenv",
    "/run/secrets",
)
PODMANS_MARKS = {"/run/podman-init", "/run/.containerenv"}
# Podman's copies, with a line for the user where the image has none.
PODMANS_MOUNTS = ("/etc/passwd", "/etc/group")


class MountPoint:
    """One line of /proc/self/mountinfo."""

    def __init__(self, line: str) -> None:
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        self.root, self.target = unescaped(fields[3]), unescaped(fields[4])
        self.options = fields[5].split(",")
        self.kind = kinds[0]

    @property
    def read_only(self) -> bool:
        """Whether the mount itself refuses to be written; its file system may still be writable."""
        return "ro" in self.options

    def is_below(self, folder: str) -> bool:
        """Whether this is mounted at *folder* or under it."""
        return self.target == folder or self.target.startswith(folder.rstrip("/") + "/")


def unescaped(text: str) -> str:
    """Return a path as it is: the kernel writes blanks and line ends in octal."""
    for code, character in MOUNT_ESCAPES:
        text = text.replace(code, character)
    return text


def mount_points(text: str | None = None) -> list[MountPoint]:
    """Return every mount here; what is mounted over another comes later, and counts."""
    if text is None:
        text = Path("/proc/self/mountinfo").read_text(errors="replace")
    found: dict[str, MountPoint] = {}
    for line in text.splitlines():
        mount = MountPoint(line)
        found[mount.target] = mount
    return list(found.values())


def check_mounts(check: Check, expect: dict[str, Any]) -> None:
    """Compare what is mounted with the plan: one mount too many is an ungranted right."""
    mounts = mount_points()
    own = [mount for mount in mounts if not is_engine_mount(mount)]
    check.evidence["mounts"] = {
        mount.target: ",".join([mount.kind, *mount.options]) for mount in own
    }
    granted = expect.get("granted")
    if granted is not None:
        judge_mounts(check, mounts, granted)


def is_engine_mount(mount: MountPoint) -> bool:
    """Whether every container has such a mount; what lies under /proc and /sys has checks of its own."""
    return mount.target in ENGINE_MOUNTS or mount.is_below("/proc") or mount.is_below("/sys")


def judge_mounts(check: Check, mounts: list[MountPoint], granted: dict[str, Any]) -> None:
    """Fail for what is missing, writable against the plan or not in it; a read-only stranger degrades."""
    here = {mount.target: mount for mount in mounts}
    podmans = PODMANS_MOUNTS if PODMANS_MARKS & here.keys() else ()
    binds, tmpfs = granted.get("mounts") or {}, granted.get("tmpfs") or {}
    wrong = [f"{target} is not mounted" for target in (*binds, *tmpfs) if target not in here]
    wrong += [
        f"{target} is writable, not read-only as planned"
        for target, mode in binds.items()
        if mode == "ro" and target in here and not here[target].read_only
    ]
    for target, mode in tmpfs.items():
        wanted = {"nosuid", "nodev"} | ({"noexec"} if mode == "noexec" else set())
        if target in here and (missing := wanted - set(here[target].options)):
            wrong.append(f"{target} is mounted without {', '.join(sorted(missing))}")
    strange = []
    for mount in mounts:
        if mount.target in binds or mount.target in tmpfs or mount.target in granted["devices"]:
            continue
        above = [target for target in binds if mount.is_below(target)]
        if above and binds[above[0]] == "ro" and not mount.read_only:
            strange.append(f"{mount.target} is writable under {above[0]}, which is read-only")
        elif not above and not is_engine_mount(mount) and mount.target not in podmans:
            text = f"{mount.target} ({mount.kind}) is mounted, which the plan does not have"
            (strange if mount.read_only else wrong).append(text)
    if wrong:
        raise CheckFailed("; ".join(wrong))
    if strange:
        check.degrade("; ".join(strange))


# --- environment: What this process may do here, compared with what was planned ---

ERRNO_MEANINGS = {
    errno.EACCES: "permission denied: the node's group is not among this process's groups",
    errno.EPERM: "not permitted: the device cgroup does not allow this node",
    errno.ENOENT: "no such node: it was not passed in",
    errno.ENXIO: "no driver stands behind the node",
    errno.ENODEV: "no driver stands behind the node",
    errno.EINVAL: "the kernel refuses a compute process: a stuck GPU or a driver conflict",
    errno.ENOMEM: "the driver has no GPU that it can use for compute",
}

# AppArmor's word, and the SELinux types of containers that are left alone.
UNCONFINED = ("unconfined", "unconfined_t", "spc_t")

CACHE_VARIABLES = (
    "HOME",
    "XDG_CACHE_HOME",
    "MIOPEN_USER_DB_PATH",
    "MIOPEN_CUSTOM_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "NUMBA_CACHE_DIR",
    "MPLCONFIGDIR",
    "HF_HOME",
    "VLLM_CACHE_ROOT",
)


def stage_environment(job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]) -> None:
    """Record what this process may do here, and compare it with what was planned."""
    expect = job["expect"]
    for name, examine in (
        ("kernel", check_kernel),
        ("user", check_user),
        ("groups", check_groups),
        ("capabilities", check_capabilities),
        ("no_new_privileges", check_no_new_privileges),
        ("seccomp", check_seccomp),
        ("security_module", check_security_module),
        ("root_filesystem", check_root_filesystem),
        ("shared_memory", check_shared_memory),
        ("temporary_directory", check_temporary_directory),
        ("home", check_home),
        ("visibility", check_visibility),
        ("limits", check_limits),
        ("mounts", check_mounts),
        ("device_nodes", check_device_nodes),
    ):
        with reporter.check("environment", name) as check:
            examine(check, expect)
    paths = list(expect.get("devices") or [])
    if job["accelerator"] == "rocm" and "/dev/kfd" not in paths:
        paths.insert(0, "/dev/kfd")
    for path in paths:
        with reporter.check("environment", f"open:{path}") as check:
            check_open(check, path)
    if job["accelerator"] == "rocm":
        with reporter.check("environment", "kfd_topology") as check:
            check_kfd_topology(check, list(expect.get("gpus") or []))


def check_kernel(check: Check, _expect: dict[str, Any]) -> None:
    """Record kernel and interpreter."""
    check.evidence.update(
        release=platform.release(),
        machine=platform.machine(),
        python=platform.python_version(),
        executable=sys.executable,
    )


def check_user(check: Check, expect: dict[str, Any]) -> None:
    """Compare the user with the planned one."""
    try:
        entry: str | None = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        entry = None
    check.evidence.update(uid=os.getuid(), gid=os.getgid(), passwd_entry=entry)
    check.evidence.update({name: os.environ.get(name) for name in ("USER", "LOGNAME")})
    check.require("the user id", os.getuid(), expect.get("uid"))
    check.require("the group id", os.getgid(), expect.get("gid"))
    for name in ("USER", "LOGNAME"):
        check.require(name, os.environ.get(name), expect.get("user_name"))


def check_groups(check: Check, expect: dict[str, Any]) -> None:
    """Compare the supplementary groups: one too few closes a node, one too many is an ungranted right."""
    groups = sorted(set(os.getgroups()) - {os.getgid()})
    check.evidence["groups"] = groups
    if expect.get("groups") is not None:
        planned = sorted({int(group) for group in expect["groups"]} - {os.getgid()})
        check.require("the list of supplementary groups", groups, planned)


def check_capabilities(check: Check, expect: dict[str, Any]) -> None:
    """Compare the capability sets, as hexadecimal masks."""
    status = process_status()
    for name in ("CapEff", "CapBnd", "CapPrm", "CapInh", "CapAmb"):
        check.evidence[name] = status.get(name)
    for name, key in (("CapEff", "cap_eff"), ("CapBnd", "cap_bnd")):
        planned = expect.get(key)
        if planned is not None:
            mask = planned if isinstance(planned, int) else int(planned, 16)
            check.require(name, status.get(name), f"{mask:016x}")


def check_no_new_privileges(check: Check, expect: dict[str, Any]) -> None:
    """Compare the flag that keeps set-user-id files from raising anybody."""
    value = process_status().get("NoNewPrivs")
    seen = None if value is None else value == "1"
    check.evidence["no_new_privileges"] = seen
    check.require("no_new_privileges", seen, expect.get("no_new_privileges"))


def check_seccomp(check: Check, expect: dict[str, Any]) -> None:
    """Compare the seccomp mode: 0 is none, 2 is a filter."""
    status = process_status()
    seen = int(status["Seccomp"]) if "Seccomp" in status else None
    check.evidence.update(mode=seen, filters=status.get("Seccomp_filters"))
    check.require("the seccomp mode", seen, expect.get("seccomp_mode"))


def check_security_module(check: Check, expect: dict[str, Any]) -> None:
    """Record the AppArmor profile or SELinux label; one that confines nothing is no grant of the plan."""
    label = first_line("/proc/self/attr/apparmor/current", "/proc/self/attr/current")
    label = None if label is None else label.rstrip("\0")
    enabled = first_line("/sys/module/apparmor/parameters/enabled") == "Y"
    check.evidence.update(label=label, apparmor_enabled=enabled)
    judge_label(check, label, (expect.get("granted") or {}).get("security_label"))


def judge_label(check: Check, label: str | None, granted: bool | None) -> None:  # noqa: FBT001
    """Degrade where the kernel has a security module and the engine did not confine this process."""
    kind = (label or "").split(":")[2] if (label or "").count(":") > 1 else label or ""
    check.evidence["confined"] = None if label is None else kind not in UNCONFINED
    if granted is False and kind in UNCONFINED:
        check.degrade(
            f"the security module confines nothing here ({label}), the plan did not ask for that"
        )


def check_root_filesystem(check: Check, expect: dict[str, Any]) -> None:
    """Try to create a file where nothing should be created, and read the mount's own flag."""
    read_only = bool(os.statvfs("/").f_flag & os.ST_RDONLY)
    created = {folder: try_to_create(folder) for folder in ("/", "/usr")}
    check.evidence.update(read_only=read_only, create=created)
    if expect.get("read_only_root"):
        written = [folder for folder, result in created.items() if result == "created"]
        if written:
            msg = f"files can be created in {', '.join(written)}, the plan has a read-only root"
            raise CheckFailed(msg)
        check.require("the read-only flag of /", read_only, True)  # noqa: FBT003


def check_shared_memory(check: Check, expect: dict[str, Any]) -> None:
    """Record the size of /dev/shm, which collectives need."""
    stat = os.statvfs("/dev/shm")
    total = stat.f_blocks * stat.f_frsize
    check.evidence.update(
        total_bytes=total,
        free_bytes=stat.f_bavail * stat.f_frsize,
        create=try_to_create("/dev/shm"),
    )
    planned = expect.get("shm_size_bytes")
    if planned is not None and total < planned - mmap.PAGESIZE:
        msg = f"/dev/shm has {total} bytes, not {planned} as planned"
        raise CheckFailed(msg)


def check_temporary_directory(check: Check, _expect: dict[str, Any]) -> None:
    """Write a file and map it executable, as the loader does with a library that was just compiled."""
    folder = os.environ.get("TMPDIR") or "/tmp"
    stat = os.statvfs(folder)
    check.evidence.update(path=folder, free_bytes=stat.f_bavail * stat.f_frsize)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"\0" * mmap.PAGESIZE)
        file.flush()
        try:
            flags = {"flags": mmap.MAP_PRIVATE, "prot": mmap.PROT_READ | mmap.PROT_EXEC}
            mmap.mmap(file.fileno(), mmap.PAGESIZE, **flags).close()
            check.evidence["executable"] = True
        except OSError as error:
            check.evidence["executable"] = False
            check.degrade(
                f"{folder} is mounted noexec ({errno_name(error)}): kernels compiled there cannot be loaded"
            )


def check_home(check: Check, expect: dict[str, Any]) -> None:
    """Record where caches go and whether files can be created there."""
    for name in CACHE_VARIABLES:
        folder = os.environ.get(name)
        if folder:
            check.evidence[name] = {"path": folder, "create": try_to_create(folder)}
    check.require("HOME", os.environ.get("HOME"), expect.get("home"))
    if expect.get("home_writable"):
        home = check.evidence.get("HOME", {"path": "unset", "create": "unset"})
        check.require(f"creating a file in HOME ({home['path']})", home["create"], "created")


def check_visibility(check: Check, expect: dict[str, Any]) -> None:
    """Compare the variables that hide devices; what they leave is judged by the device count."""
    seen = {key: value for key, value in os.environ.items() if is_visibility(key)}
    check.evidence.update(seen)
    for key, value in (expect.get("visibility") or {}).items():
        check.require(key, seen.get(key), value)


def check_device_nodes(check: Check, _expect: dict[str, Any]) -> None:
    """Record which GPU nodes exist here and whether each opens read-write."""
    nodes = [
        Path("/dev/kfd"),
        *sorted(Path("/dev/dri").glob("*")),
        *sorted(Path("/dev").glob("nvidia*")),
    ]
    for node in nodes:
        if node.is_char_device():
            error = open_error(str(node))
            check.evidence[str(node)] = "opened" if error is None else errno_name(error)


def check_open(check: Check, path: str) -> None:
    """Open a node that the job needs, read-write: reading one tells nothing about a GPU."""
    with contextlib.suppress(OSError):
        stat = Path(path).stat()
        check.evidence.update(mode=f"{stat.st_mode & 0o7777:04o}", uid=stat.st_uid, gid=stat.st_gid)
        check.evidence["device"] = f"{os.major(stat.st_rdev)}:{os.minor(stat.st_rdev)}"
    error = open_error(path)
    check.evidence["errno"] = None if error is None else errno_name(error)
    if error is not None:
        meaning = ERRNO_MEANINGS.get(error.errno or 0, os.strerror(error.errno or 0))
        owner = ""
        if error.errno == errno.EACCES and "gid" in check.evidence:
            groups = sorted({os.getgid(), *os.getgroups()})
            owner = (
                f" (mode {check.evidence['mode']}, group {check.evidence['gid']}; groups {groups})"
            )
        msg = f"cannot open {path}: {errno_name(error)}, {meaning}{owner}"
        raise CheckFailed(msg)


# --- hip_kernels: Kernels that are compiled on the spot by hipRTC, and what they must compute ---

HIP_SOURCE = b"""
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

template <typename T>
__device__ void multiply(const T* a, const T* b, T* c, unsigned int n) {
    unsigned int column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    T sum = 0;
    for (unsigned int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void matmul_int32(const int* a, const int* b, int* c, unsigned int n) {
    multiply(a, b, c, n);
}

extern "C" __global__ void matmul_fp32(const float* a, const float* b, float* c, unsigned int n) {
    multiply(a, b, c, n);
}
"""
# At most, whatever the level: what comes back is compared in plain Python.
MOST_ELEMENTS = 1 << 18
MOST_ROWS = 96
# Every product and every partial sum is a whole number that the format holds: whatever the order of
# the sum and whether multiply and add are fused, there is one right result, to the last bit.
EXACT_SUMS = (
    "every partial sum is a whole number below 2^24 (fp32) or 2^31 (int32): exact in any order"
)
HIP_FACTORS = {"int32": ("i", 2039), "fp32": ("f", 251)}
HIP_LOG_LENGTH = 2000
HIPRTC_MISSING = "no kernel was compiled: only copies and memset prove this GPU"


class Kernels:
    """The compiled kernels, loaded on the current device."""

    def __init__(self, hip: Hip, code: bytes) -> None:
        self._hip = hip
        self._module = ctypes.c_void_p()
        hip.call("hipModuleLoadData", ctypes.byref(self._module), code)

    def run(self, name: str, inputs: list[array[Any]], n: int, grid: int, block: int, rows: int = 1) -> bytes:  # fmt: skip
        """Launch a kernel on *inputs* and return what it wrote: as many bytes as one input has.

        *grid* blocks of *block* threads, in *rows* dimensions.
        """
        hip = self._hip
        function = ctypes.c_void_p()
        hip.call("hipModuleGetFunction", ctypes.byref(function), self._module, name.encode())
        size = len(inputs[0]) * inputs[0].itemsize
        addresses = [hip.allocate(size) for _ in range(len(inputs) + 1)]
        for address, values in zip(addresses, inputs):
            hip.to_device(address, values.tobytes())
        hip.call("hipMemset", addresses[-1], 0xFF, size)  # a kernel that never ran leaves no zeros
        kept = [*map(ctypes.c_void_p, addresses), ctypes.c_uint(n)]
        pointers = (ctypes.c_void_p * len(kept))(*(ctypes.addressof(value) for value in kept))
        shape = (grid, grid if rows > 1 else 1, 1, block, block if rows > 1 else 1, 1)
        hip.call("hipModuleLaunchKernel", function, *shape, 0, None, pointers, None)
        hip.call("hipDeviceSynchronize")
        result = hip.to_host(addresses[-1], size)
        for address in addresses:
            hip.call("hipFree", address)
        return result


def check_kernels(reporter: Reporter, hip: Hip, size: int, *, sole: bool) -> None:
    """Compile the kernels and compare what they compute, on matrices of *size* rows at most.

    With *sole* nothing else computes on this GPU, so a hipRTC that is missing is worth a word.
    """
    with reporter.check("hip", "compile") as check:
        try:
            compiler = hiprtc(hip)
        except LibraryMissing as error:
            missing = f"{error}; {HIPRTC_MISSING}"
            if sole:
                check.degrade(missing)
            else:
                check.skip(str(error))
            return
        code = hip_code(check, compiler, hip.architecture(0))
        kernels = Kernels(hip, code)
    if check.status == "fail":
        return
    with reporter.check("hip", "kernel_vector_add") as check:
        check_vector_add(check, kernels, min(size**2, MOST_ELEMENTS))
    for name in HIP_FACTORS:
        with reporter.check("hip", f"kernel_matmul_{name}") as check:
            check_matmul_kernel(check, kernels, name, min(size, MOST_ROWS))


def hiprtc(hip: Hip) -> Api:
    """Return hipRTC: a library of its own, and part of libamdhip64 before ROCm 7.

    Raises:
        LibraryMissing: it is neither.
    """
    namer = "hiprtcGetErrorString"
    if hip.has("hiprtcCompileProgram"):
        return Api(hip.library, namer)
    beside = mapped_library("libamdhip64")
    library = load_library("libhiprtc", torch_first=hip.torch_first, beside=beside)
    return Api(library, namer)


def hip_code(check: Check, compiler: Api, architecture: str | None) -> bytes:
    """Return the code of HIP_SOURCE for this device; without *architecture* hipRTC asks the device for it."""
    program = ctypes.c_void_p()
    compiler.call(
        "hiprtcCreateProgram", ctypes.byref(program), HIP_SOURCE, b"probe.hip", 0, None, None
    )
    options = [f"--offload-arch={architecture}"] if architecture else []
    texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    try:
        compiler.call("hiprtcCompileProgram", program, len(options), texts)
    except HipError as error:
        log = (
            read_back(compiler, "hiprtcGetProgramLog", program)
            .rstrip(b"\0")
            .decode(errors="replace")
        )
        check.evidence["log"] = log[:HIP_LOG_LENGTH]
        first = next((line for line in log.splitlines() if line.strip()), "its log is empty")
        msg = f"{error}: {first.strip()[:300]}"
        raise CheckFailed(msg) from error
    code = read_back(compiler, "hiprtcGetCode", program)
    check.evidence.update(options=options, code_bytes=len(code))
    compiler.call("hiprtcDestroyProgram", ctypes.byref(program))
    return code


def read_back(compiler: Api, name: str, program: Any) -> bytes:
    """Return what a pair of functions tells: the size, then the bytes."""
    size = ctypes.c_size_t()
    compiler.call(f"{name}Size", program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    compiler.call(name, program, buffer)
    return buffer.raw


def check_vector_add(check: Check, kernels: Kernels, count: int) -> None:
    """Add two vectors of whole numbers."""
    a, b = array("f", range(count)), array("f", range(0, 2 * count, 2))
    seen = array("f")
    seen.frombytes(kernels.run("vector_add", [a, b], count, -(-count // 256), 256))
    compare_values(check, seen, array("f", range(0, 3 * count, 3)))


def check_matmul_kernel(check: Check, kernels: Kernels, name: str, rows: int) -> None:
    """Multiply two matrices of whole numbers."""
    code, factor = HIP_FACTORS[name]
    a = [(7 * i * i + 3 * i + 1) % factor - factor // 2 for i in range(rows * rows)]
    b = [(5 * i * i + 11 * i + 2) % factor - factor // 2 for i in range(rows * rows)]
    lines = [a[start : start + rows] for start in range(0, rows * rows, rows)]
    columns = [b[column::rows] for column in range(rows)]
    expected = [sum(map(mul, line, column)) for line in lines for column in columns]
    seen = array(code)
    inputs = [array(code, a), array(code, b)]
    seen.frombytes(kernels.run(f"matmul_{name}", inputs, rows, -(-rows // 16), 16, 2))
    compare_values(check, seen, array(code, expected))


def compare_values(check: Check, seen: array[Any], expected: array[Any]) -> None:
    """Fail unless all values are the same."""
    check.threshold, check.threshold_source = 0.0, EXACT_SUMS
    wrong = [] if seen == expected else [i for i, pair in enumerate(zip(seen, expected)) if pair[0] != pair[1]]  # fmt: skip
    check.evidence.update(elements=len(expected), wrong=len(wrong))
    if wrong:
        first = wrong[0]
        msg = f"{len(wrong)} of {len(expected)} values are wrong; at {first} it is {seen[first]}, not {expected[first]}"
        raise CheckFailed(msg)


# --- hip: The HIP runtime below torch: what it finds, and whether one GPU keeps and computes what it is given ---

MOST_HIP_BYTES = 64 << 20  # they are compared on the host
MEMSET_BYTE = 0xA5


def stage_hip_runtime(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Load HIP in a process that sees every GPU, and count them.

    Where torch computes as well, an image whose HIP ctypes cannot load is none the worse for it.
    """
    with reporter.check("hip", "runtime") as check:
        try:
            hip = loaded_hip(check, job)
        except LibraryMissing as error:
            if job["sole"]:
                raise
            check.skip(str(error))
            return
    if check.status == "fail":
        return
    with reporter.check("hip", "device_count") as check:
        check_hip_count(check, hip, job["gpus"])
    state["hip"] = hip


def stage_hip(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Exercise the one GPU that this process can see, without torch."""
    with reporter.check("hip", "identity") as check:
        hip = loaded_hip(check, job)
        check_hip_identity(check, hip, job)
    if check.evidence.get("visible") != 1:
        return
    size = min(4 * job["size"] ** 2, MOST_HIP_BYTES)
    with reporter.check("hip", "allocate") as check:
        check_hip_allocate(check, hip, size)
    with reporter.check("hip", "copy") as check:
        check_hip_copy(check, hip, size)
    with reporter.check("hip", "memset") as check:
        check_hip_memset(check, hip, size)
    check_kernels(reporter, hip, job["size"], sole=job["sole"])
    state["hip"] = hip


def loaded_hip(check: Check, job: dict[str, Any]) -> Hip:
    """Load HIP, and record where from and of which version."""
    torch_first = not job["sole"]
    hip = Hip(load_library("libamdhip64", torch_first=torch_first), torch_first=torch_first)
    check.evidence.update(
        library=mapped_library("libamdhip64"),
        hip=version_text(hip.number("hipRuntimeGetVersion")),
        driver=version_text(hip.number("hipDriverGetVersion")),
    )
    return hip


def check_hip_count(check: Check, hip: Hip, planned: int | None) -> None:
    """Compare the number of devices with the plan's."""
    hidden = {key: value for key, value in os.environ.items() if is_visibility(key)}
    note = ", ".join(f"{key}={value!r}" for key, value in sorted(hidden.items()))
    note = f" ({note})" if note else ""
    try:
        found = hip.number("hipGetDeviceCount")
    except CheckFailed as error:
        msg = f"no device is visible: {error}{note}"
        raise CheckFailed(msg) from error
    check.evidence.update(device_count=found, planned=planned)
    if not found:
        msg = f"no device is visible: hipGetDeviceCount counts 0{note}"
        raise CheckFailed(msg)
    if planned is not None and found != planned:
        msg = f"{found} devices are visible, {planned} were passed in{note}"
        raise CheckFailed(msg)


def check_hip_identity(check: Check, hip: Hip, job: dict[str, Any]) -> None:
    """Record which device this is and compare it with what was passed in."""
    check.evidence["visible"] = hip.number("hipGetDeviceCount")
    if check.evidence["visible"] != 1:
        msg = f"{check.evidence['visible']} devices are visible where exactly one was named"
        raise CheckFailed(msg)
    seen = hip_identity(hip)
    check.evidence.update(seen)
    if job["planned"]:
        check.evidence["claims"] = claimed(seen, job["planned"], job["index"])


def check_hip_allocate(check: Check, hip: Hip, size: int) -> None:
    """Allocate memory and see that there is less of it then."""
    free, total = hip.memory()
    check.evidence.update(free_bytes=free, total_bytes=total, bytes=size)
    if not free or not total:
        msg = f"hipMemGetInfo tells {free} free bytes of {total}"
        raise CheckFailed(msg)
    if free > total:
        check.degrade(f"hipMemGetInfo tells {free} free bytes of {total}")
    address = hip.allocate(size)
    if not address:
        msg = f"hipMalloc gave no address for {size} bytes"
        raise CheckFailed(msg)
    check.evidence["free_bytes_after"] = hip.memory()[0]
    hip.call("hipFree", address)


def check_hip_copy(check: Check, hip: Hip, size: int) -> None:
    """Copy random bytes to the device, there to another place, and back."""
    data = random.Random(0x5EED).getrandbits(8 * size).to_bytes(size, "little")
    first, second = hip.allocate(size), hip.allocate(size)
    begin = time.monotonic()
    hip.to_device(first, data)
    hip.call("hipMemcpy", second, first, size, DEVICE_TO_DEVICE)
    back = hip.to_host(second, size)
    seconds = time.monotonic() - begin
    check.evidence["seconds_for_all_three"] = round(seconds, 4)
    require_same(check, back, data, "changed on the way to the device and back")
    for address in (first, second):
        hip.call("hipFree", address)


def check_hip_memset(check: Check, hip: Hip, size: int) -> None:
    """Let the device fill memory, and read it back."""
    address = hip.allocate(size)
    hip.to_device(address, bytes(size))
    hip.call("hipMemset", address, MEMSET_BYTE, size)
    hip.call("hipDeviceSynchronize")
    expected = bytes([MEMSET_BYTE]) * size
    require_same(check, hip.to_host(address, size), expected, "do not hold what was set")
    hip.call("hipFree", address)


def require_same(check: Check, seen: bytes, expected: bytes, what: str) -> None:
    """Fail unless all bytes are the same."""
    wrong = 0 if seen == expected else sum(map(int.__ne__, seen, expected))
    check.evidence.update(bytes=len(expected), wrong=wrong)
    if wrong:
        msg = f"{wrong} of {len(expected)} bytes {what}"
        raise CheckFailed(msg)


# --- grants: What the plan grants, and how something that can be reached is judged ---

NO_PLAN = "recorded, not judged: there is no plan to compare with"
CAP_NET_RAW, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_MKNOD = 13, 19, 21, 27  # linux/capability.h
MOST_REACHED, MOST_NAMED = 40, 5


class Grants:
    """The plan's grants; *known* is False for a run by hand that was told of none."""

    def __init__(self, expect: dict[str, Any]) -> None:
        given = expect.get("granted")
        self.known = given is not None
        self._given: dict[str, Any] = given or {}
        self._effective = int(str(expect.get("cap_eff") or "0"), 16)
        self.read_only_root = bool(expect.get("read_only_root"))
        self.devices: dict[str, str] = self._given.get("devices") or {}

    def word(self, key: str) -> Any:
        """Return what the plan says of *key*."""
        return self._given.get(key)

    def capability(self, number: int) -> bool:
        """Whether the plan makes a capability effective."""
        return bool(self._effective >> number & 1)

    def judge(self, check: Check, reached: list[str], *, granted: bool = False) -> None:
        """Fail for what was reached, one sentence each, unless the plan grants it all."""
        check.evidence["reached"] = reached[:MOST_REACHED]
        if not reached:
            return
        if self.known:
            check.evidence["granted"] = granted
        if granted:
            return
        if not self.known:
            check.skip(f"{NO_PLAN} ({'; '.join(reached[:MOST_NAMED])})")
            return
        left = len(reached) - MOST_NAMED
        more = f" and {left} more" if left > 0 else ""
        raise CheckFailed("; ".join(reached[:MOST_NAMED]) + more + ": the plan does not grant it")


# --- isolation_files: Writing the image, the kernel's settings, and reading what engines mask ---

ROOT_FOLDERS = (
    "/",
    "/etc",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/opt",
    "/srv",
    "/var",
    "/var/tmp",
    "/run",
)
SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/power/state",
)
# Where a mount that can be written would be the kernel's or other containers' to lose.
SETTING_MOUNTS = ("/proc/sys", "/sys")
MOST_HIERARCHIES = 4  # of control groups: cgroup v1 has a dozen, mounted alike
# Kernel memory, keys of other containers, firmware tables: engines put /dev/null or an empty,
# read-only tmpfs over them.
MASKED_FILES = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug")
MASKED_FOLDERS = ("/sys/firmware", "/proc/acpi", "/proc/scsi")


def check_root_writes(check: Check, grants: Grants) -> None:
    """Create a file in every usual folder of the image that no other mount covers."""
    root = os.stat("/").st_dev  # noqa: PTH116
    reached = []
    for folder in ROOT_FOLDERS:
        with contextlib.suppress(OSError):  # a folder above it may be closed to this user
            if os.path.isdir(folder) and os.stat(folder).st_dev == root:  # noqa: PTH112, PTH116
                check.evidence[folder] = try_to_create(folder)
                if check.evidence[folder] == "created":
                    reached.append(f"a file can be created in {folder}")
    if not os.statvfs("/").f_flag & os.ST_RDONLY:
        reached.append("/ is mounted writable")
    grants.judge(check, reached, granted=grants.known and not grants.read_only_root)


def check_kernel_settings(check: Check, grants: Grants) -> None:
    """Open the kernel's settings for writing, and write nothing; make a control group, and remove it."""
    system: list[str] = []
    process: list[str] = []
    for path in SETTINGS:
        if Path(path).exists():
            check.evidence[path] = open_for_writing(path)
            if check.evidence[path] == "opened":
                (process if path.startswith("/proc/") else system).append(f"{path} can be written")
    for folder in SETTING_MOUNTS:
        read_only = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
        check.evidence[folder] = "read-only" if read_only else "writable"
        if not read_only:
            (process if folder == "/proc/sys" else system).append(f"{folder} is mounted writable")
    groups = [mount.target for mount in mount_points() if mount.kind in ("cgroup", "cgroup2")]
    for folder in groups[:MOST_HIERARCHIES]:
        if (made := try_to_make_folder(folder)) == "made":
            system.append(f"a control group can be made in {folder}")
        check.evidence[f"{folder} (mkdir)"] = made
    # Unmasked means that /proc/sys is as the kernel has it; nothing ever opens /sys.
    unmasked = grants.word("masks") is False
    check.evidence["unmasked_as_planned"] = bool(unmasked and process)
    grants.judge(check, system if unmasked else system + process)


def open_for_writing(path: str) -> str:
    """Return "opened", or the error's name."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return errno_name(error)
    return "opened"


def try_to_make_folder(folder: str) -> str:
    """Return "made" when a folder can be made in *folder*, else the error's name."""
    path = Path(folder) / f"probe-{os.getpid()}"
    try:
        path.mkdir()
        path.rmdir()
    except OSError as error:
        return errno_name(error)
    return "made"


def check_masked_paths(check: Check, grants: Grants) -> None:
    """Read what the engine should have covered."""
    reached = []
    for path in MASKED_FILES:
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.stat(path).st_mode):  # noqa: PTH116
                check.evidence[path] = "covered"
                continue
            with Path(path).open("rb") as file:
                check.evidence[path] = "readable" if file.read(1) else "empty"
            if check.evidence[path] == "readable":
                reached.append(f"{path} can be read")
    for path in MASKED_FOLDERS:
        with contextlib.suppress(OSError):
            names = os.listdir(path)  # noqa: PTH208
            check.evidence[path] = f"{len(names)} entries"
            if names:
                reached.append(f"{path} can be read")
    grants.judge(check, reached, granted=grants.word("masks") is False)


# --- isolation_kernel: Raw sockets, new user namespaces and tracing: what capabilities and the seccomp filter keep shut ---

CLONE_NEWUSER = 0x10000000
PTRACE_SEIZE = 0x4206
RAW_SOCKETS = (
    ("ip", socket.AF_INET, socket.IPPROTO_ICMP),
    ("ip6", socket.AF_INET6, 58),
    ("packet", getattr(socket, "AF_PACKET", 17), 0),
)


def check_raw_sockets(check: Check, grants: Grants) -> None:
    """Open raw sockets, which can forge packets and listen to others'."""
    for name, family, protocol in RAW_SOCKETS:
        check.evidence[name] = open_raw_socket(family, protocol)
    reached = [
        f"a raw {name} socket can be opened"
        for name, _, _ in RAW_SOCKETS
        if check.evidence[name] == "opened"
    ]
    grants.judge(check, reached, granted=grants.capability(CAP_NET_RAW))


def open_raw_socket(family: int, protocol: int) -> str:
    """Return "opened", or the error's name."""
    try:
        socket.socket(family, socket.SOCK_RAW, protocol).close()
    except OSError as error:
        return errno_name(error)
    return "opened"


def check_user_namespaces(check: Check, grants: Grants) -> None:
    """Make a user namespace, in which every capability opens more of the kernel to be attacked.

    Docker's default filter refuses it, Podman's does not, and some kernels refuse it themselves.
    Under a filter it is a smaller kernel surface lost and nothing of the host reached: degraded.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    result = in_child(lambda: libc.unshare(CLONE_NEWUSER))
    filtered = process_status().get("Seccomp") != "0"
    check.evidence.update(unshare=result, seccomp_filter=filtered)
    granted = grants.word("seccomp") == "unconfined" or grants.capability(CAP_SYS_ADMIN)
    if result == "done" and filtered and grants.known and not granted:
        check.evidence.update(reached=["a user namespace can be made"], granted=False)
        own = grants.word("seccomp") == "own"
        whose = "the profile's own seccomp filter" if own else "this engine's seccomp filter"
        check.degrade(
            f"a user namespace can be made: {whose} allows it; nothing outside is reached, "
            "and more of the kernel can be"
        )
        return
    without = "" if filtered else ", with no seccomp filter"
    reached = [f"a user namespace can be made{without}"] if result == "done" else []
    grants.judge(check, reached, granted=granted)


def check_ptrace(check: Check, grants: Grants) -> None:
    """Attach to PID 1. A container's own init has this process's user and rights: nothing is gained."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    # Seizing stops nobody, and the tracer's end lets go again.
    result = in_child(lambda: int(libc.ptrace(PTRACE_SEIZE, 1, None, None)))
    more = "" if os.getpid() == 1 else more_rights(process_of("1"), process_status())
    check.evidence.update(attach=result, pid_1_beyond_us=more)
    reached = [f"PID 1 can be traced, and it has {more}"] if result == "done" and more else []
    grants.judge(check, reached, granted=grants.capability(CAP_SYS_PTRACE))


def process_of(pid: str) -> dict[str, str]:
    """Return a process's /proc/PID/status as a mapping; empty where it cannot be read."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return {}


def more_rights(other: dict[str, str], own: dict[str, str]) -> str:
    """Return what another process may do that this one may not, in words; "" is nothing."""
    found = []
    if other.get("Uid") != own.get("Uid"):
        found.append(f"another user ({(other.get('Uid') or 'unknown').split()[0]})")
    beyond = int(other.get("CapPrm") or "0", 16) & ~int(own.get("CapPrm") or "0", 16)
    if beyond:
        found.append(f"capabilities that are not ours ({beyond:016x})")
    return " and ".join(found)


def in_child(action: Callable[[], int]) -> str:
    """Run a call of the C library in a forked process, so that what it changes ends with it.

    Returns:
        "done", or the name of the error.
    """
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # of threads: this process's only other one never runs Python
        child = os.fork()
    if child == 0:
        code = 255
        with contextlib.suppress(BaseException):
            code = 0 if action() == 0 else min(ctypes.get_errno(), 254)
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    return "done" if code == 0 else errno.errorcode.get(code, str(code))


# --- isolation_namespaces: Processes, network and names: whether this container has its own ---

# The inode numbers of the first namespaces, which the kernel fixes (include/linux/proc_ns.h).
FIRST_NAMESPACES = {
    "ipc": 0xEFFFFFFF,
    "uts": 0xEFFFFFFE,
    "user": 0xEFFFFFFD,
    "pid": 0xEFFFFFFC,
    "cgroup": 0xEFFFFFFB,
}
NOWHERE = ("192.0.2.1", 9)  # TEST-NET-1 of RFC 5737: nobody has it, a route to it leads outside
INTERFACE_IS_UP = 0x1  # IFF_UP, in /sys/class/net/NAME/flags


def namespace(kind: str) -> int | None:
    """Return a namespace's number; None where the kernel has no such kind."""
    try:
        return os.stat(f"/proc/self/ns/{kind}").st_ino  # noqa: PTH116
    except OSError:
        return None


def check_processes(check: Check, grants: Grants) -> None:
    """Look for processes that are not this container's: the host's, or another container's."""
    own = namespace("pid")
    oldest = oldest_ancestor()
    threads = (first_line("/proc/2/comm") or "") == "kthreadd"
    check.evidence.update(
        namespace=own,
        pid_1=first_line("/proc/1/comm"),
        oldest_ancestor=oldest,
        visible=sum(name.isdigit() for name in os.listdir("/proc")),  # noqa: PTH208
    )
    reached = []
    if own == FIRST_NAMESPACES["pid"] or threads:
        reached.append("the host's processes are visible")
    elif oldest != 1:
        reached.append("processes of another container are visible: PID 1 did not start this one")
    grants.judge(check, reached, granted=grants.word("pid") == "host")


def oldest_ancestor() -> int:
    """Return the process at the top of this one's line of parents, 1 in a container of its own."""
    pid = os.getpid()
    while pid > 1:
        parent = int(process_of(str(pid)).get("PPid") or "0")
        if parent == 0:  # its parent is outside
            break
        pid = parent
    return pid


def check_network(check: Check, grants: Grants) -> None:
    """Compare interfaces and routes with the plan's network."""
    up = [name for _, name in socket.if_nameindex() if name != "lo" and is_up(name)]
    hosts = [name for name in up if is_hosts(name)]
    check.evidence.update(
        namespace=namespace("net"), interfaces=up, of_the_host=hosts, route=route_outside()
    )
    planned = grants.word("network")
    reached = [f"the host's interface {name} is here" for name in hosts]
    if planned in (None, "none"):
        reached += [f"the interface {name} is up" for name in up if name not in hosts]
        if check.evidence["route"] == "found":
            reached.append("there is a route to other machines")
    grants.judge(check, reached, granted=planned == "host")


def is_up(name: str) -> bool:
    """Whether an interface is up; one that cannot be asked counts as up."""
    flags = first_line(f"/sys/class/net/{name}/flags")
    return flags is None or bool(int(flags, 16) & INTERFACE_IS_UP)


def is_hosts(name: str) -> bool:
    """Whether an interface is a machine's: hardware, or a bridge that containers hang on."""
    folder = Path("/sys/class/net") / name
    return (folder / "device").exists() or (folder / "bridge").exists()


def route_outside() -> str:
    """Return "found" when the kernel has a way to other machines; no packet is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(NOWHERE)
    except OSError as error:  # also of a kernel or a filter that has no such sockets
        return errno_name(error)
    return "found"


def check_namespaces(check: Check, grants: Grants) -> None:
    """Compare ipc, uts and cgroup with the host's own, and record the user namespace."""
    reached = []
    for kind in ("ipc", "uts", "cgroup", "user"):
        number = namespace(kind)
        shared = number == FIRST_NAMESPACES[kind]
        check.evidence[kind] = {"number": number, "is_the_hosts": shared}
        allowed = kind == "user" or grants.word(kind) == "host"
        if shared and not allowed:
            reached.append(f"the {kind} namespace is the host's")
    grants.judge(check, reached)


# --- isolation_nodes: Device nodes that the plan does not pass: those that are there, and those that could be made ---

# Nodes that every container has, with the numbers that its device cgroup allows: null, zero, full,
# random, urandom, tty, console, ptmx, and terminals.
ENGINE_NODES = ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2))
PTS_MAJORS = range(136, 144)
DRM_MAJOR = 226
MEM_MAJOR = 1  # mem, kmem, port, kmsg: opening one does nothing
# Where nothing was listed by the kernel: the first card, the first render node, /dev/mem, /dev/kmsg.
USUAL_NUMBERS = ("c 226:0", "c 226:128", "c 1:1", "c 1:11")
MOST_NODES, MOST_NUMBERS, MOST_ENTRIES = 400, 12, 2000


class Node:
    """A device node, by its path and number."""

    def __init__(self, path: str, status: os.stat_result) -> None:
        self.path = path
        self.block = stat.S_ISBLK(status.st_mode)
        self.number = (os.major(status.st_rdev), os.minor(status.st_rdev))

    @property
    def is_gpu(self) -> bool:
        """Whether it stands for a GPU, by its number or by its name."""
        named = re.search(r"/dri/(card|renderD)\d+$|/kfd$|/nvidia[^/]*$", self.path) is not None
        return named or (not self.block and self.number[0] == DRM_MAJOR)

    @property
    def is_the_engines(self) -> bool:
        """Whether every container has it."""
        return not self.block and (self.number in ENGINE_NODES or self.number[0] in PTS_MAJORS)

    def __str__(self) -> str:
        kind = "b" if self.block else "c"
        return f"{self.path} ({kind} {self.number[0]}:{self.number[1]})"


def node_at(path: str) -> Node | None:
    """Return the device node at *path* itself, None where there is none."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
            return Node(path, status)
    return None


def nodes_here() -> list[Node]:
    """Return the device nodes under /dev, and at the top of every mount that allows any."""
    found: dict[str, Node] = {}
    for path in [*paths_under("/dev", depth=3), *paths_of_mounts()]:
        node = node_at(path)
        if node is not None:
            found[path] = node
        if len(found) >= MOST_NODES:
            break
    return list(found.values())


def paths_of_mounts() -> Iterator[str]:
    """Yield mount targets and what lies in them, where a device node would be one."""
    for mount in mount_points():
        kernel = any(mount.is_below(folder) for folder in ("/proc", "/sys", "/dev"))
        if kernel or "nodev" in mount.options:
            continue
        yield mount.target
        yield from paths_under(mount.target, depth=1)


def paths_under(folder: str, *, depth: int) -> Iterator[str]:
    """Yield the paths in *folder*, the nearest first; a large folder is cut off."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        folders = []
        for count, entry in enumerate(entries):
            if count >= MOST_ENTRIES:
                break
            yield entry.path
            if depth > 1 and entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
        for path in folders:
            yield from paths_under(path, depth=depth - 1)


def reach(node: Node) -> tuple[str, str]:
    """Return which of "rw" the kernel allows on *node*, and how that was found out.

    access(2) asks the node's mode and the device cgroup without opening: to open some devices is
    to use them (a watchdog starts, a tape rewinds). GPU nodes and memory are opened all the same.
    """
    if os.statvfs(node.path).f_flag & os.ST_NODEV:
        return "", "nodev"
    allowed = "".join(
        letter for letter, mode in (("r", os.R_OK), ("w", os.W_OK)) if os.access(node.path, mode)
    )
    if allowed and not (node.is_gpu or (node.number[0] == MEM_MAJOR and not node.block)):
        return allowed, f"{allowed} allowed, not opened"
    flags = os.O_RDWR if allowed == "rw" else os.O_WRONLY if allowed == "w" else os.O_RDONLY
    try:
        os.close(os.open(node.path, flags | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        # No driver behind a node that may be opened is no protection: another day there is one.
        return allowed, errno_name(error)
    return allowed, "opened"


def granted_numbers(grants: Grants) -> dict[tuple[int, int], str]:
    """Return the numbers of the nodes that the plan passes, and the access to each."""
    found = {}
    for path, permissions in grants.devices.items():
        with contextlib.suppress(OSError):
            number = os.stat(path).st_rdev  # noqa: PTH116
            found[os.major(number), os.minor(number)] = permissions
    return found


def check_nodes(check: Check, grants: Grants, nodes: list[Node]) -> None:
    """Judge every node by what the plan passes of it: nothing, or less than what is reached."""
    granted = granted_numbers(grants)
    reached = []
    for node in nodes:
        allowed, how = reach(node)
        given = granted.get(node.number, "")
        check.evidence[str(node)] = f"{how}, granted {given}" if given else how
        beyond = "".join(letter for letter in allowed if letter not in given)
        if beyond:
            reached.append(
                f"{node} can be opened ({allowed}{', planned ' + given if given else ''})"
            )
    grants.judge(check, reached)


def check_gpu_nodes(check: Check, grants: Grants) -> None:
    """Open every GPU node that is here: the device cgroup must refuse the others."""
    check_nodes(check, grants, [node for node in nodes_here() if node.is_gpu])


def check_host_devices(check: Check, grants: Grants) -> None:
    """Ask for every other device of the host: memory, disks, /dev/kvm, /dev/fuse."""
    nodes = nodes_here()
    check_nodes(check, grants, [n for n in nodes if not n.is_gpu and not n.is_the_engines])
    check.evidence["engine_nodes"] = sum(node.is_the_engines for node in nodes)


def check_new_nodes(check: Check, grants: Grants) -> None:
    """Try to make nodes for other GPUs, memory and disks, and to open what could be made."""
    given = granted_numbers(grants)
    made, opened = [], []
    for text in host_numbers():
        kind, _, number = text.partition(" ")
        major, _, minor = number.partition(":")
        if (int(major), int(minor)) in given:
            continue
        result, allowed = make_node(kind, int(major), int(minor))
        check.evidence[text] = result
        if result.startswith("made"):
            made.append(f"a node for {text} can be made")
        if allowed:
            opened.append(f"a node for {text} can be made and opened ({allowed})")
    # A grant of MKNOD is a grant of nodes; what may be opened is the device cgroup's to say.
    grants.judge(check, opened or made, granted=not opened and grants.capability(CAP_MKNOD))


def host_numbers() -> list[str]:
    """Return numbers of devices that this host has: GPUs, KFD, disks, memory."""
    found = list(USUAL_NUMBERS)
    for pattern, kind in (
        ("/sys/class/drm/*/dev", "c"),
        ("/sys/class/kfd/kfd/dev", "c"),
        ("/sys/class/block/*/dev", "b"),
    ):
        for path in sorted(Path("/").glob(pattern.lstrip("/")))[:MOST_NUMBERS]:
            number = first_line(str(path))
            if number and number.replace(":", "").isdigit():
                found.append(f"{kind} {number}")
    return list(dict.fromkeys(found))[: 2 * MOST_NUMBERS]


def make_node(kind: str, major: int, minor: int) -> tuple[str, str]:
    """Make a node where one can be written, and return what came of it and the access to it."""
    mode = 0o600 | (stat.S_IFBLK if kind == "b" else stat.S_IFCHR)
    refused: list[str] = []
    for folder in ("/dev", os.environ.get("TMPDIR") or "/tmp", os.environ.get("HOME") or "/"):
        path = f"{folder.rstrip('/')}/.probe-node-{os.getpid()}"
        try:
            os.mknod(path, mode, os.makedev(major, minor))
        except OSError as error:
            refused.append(errno_name(error))
            continue
        try:
            node = node_at(path)
            allowed, how = reach(node) if node is not None else ("", "gone")
        finally:
            os.unlink(path)  # noqa: PTH108
        if how != "nodev":
            return f"made, {how}", allowed
        refused.append("made, nodev")
    # EPERM is the kernel's word on nodes; a folder that cannot be written says nothing of them.
    best = [word for word in refused if word == "EPERM" or word.startswith("made")]
    return (best or refused)[0], ""


# --- isolation_sockets: Sockets of container engines: whoever talks to one is root on the host ---

SOCKET_PATTERNS = (
    "/run/docker.sock",
    "/run/docker/*.sock",
    "/run/containerd/*.sock*",
    "/run/containerd/s/*",
    "/run/docker/containerd/*.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/cri-dockerd.sock",
    "/run/user/*/docker.sock",
    "/run/user/*/podman/podman.sock",
    "/var/run/docker.sock",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
)
ENGINE_NAME = re.compile(
    r"docker|containerd|podman|crio|cri-o|buildkit|kubelet|incus|lxd", re.IGNORECASE
)
# What engines of Docker's API put into the headers of every answer.
ENGINE_ANSWER = re.compile(
    rb"^(Server: (Docker|Libpod)|Api-Version:|Libpod-)", re.IGNORECASE | re.MULTILINE
)
WAIT_SECONDS = 0.1
ANSWERS = "answers as an engine"
MOST_SOCKETS = 32
LISTENS = 0x10000  # __SO_ACCEPTCON, in the flags of /proc/net/unix


def check_engine_sockets(check: Check, grants: Grants) -> None:
    """Connect to every socket that is an engine's by name, and ask the others whether they are."""
    reached = []
    for name in candidate_sockets()[:MOST_SOCKETS]:
        by_name = is_an_engines_by_name(name)
        outcome = ask(name, wait=not by_name)
        check.evidence[name] = outcome
        if outcome == ANSWERS or (by_name and outcome.startswith("connected")):
            reached.append(f"the engine's socket {name} can be reached")
    # No plan can grant one: it is refused whatever the reason.
    grants.judge(check, reached)


def is_an_engines_by_name(name: str) -> bool:
    """Whether a socket is an engine's whatever it answers: a folder of the job's own may be called after one."""
    own_place = name.startswith(("@", "/run/", "/var/run/", "/var/lib/"))
    return ENGINE_NAME.search(name if own_place else os.path.basename(name)) is not None  # noqa: PTH119


def candidate_sockets() -> list[str]:
    """Return sockets at usual paths, at the top of mounts, and abstract ones ("@name")."""
    found = [
        str(path)
        for pattern in SOCKET_PATTERNS
        for path in sorted(Path("/").glob(pattern.lstrip("/")))
    ]
    for path in paths_of_mounts():
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                found.append(path)
    with contextlib.suppress(OSError):  # not every kernel has the table
        table = Path("/proc/net/unix").read_text(errors="replace")
        found += [name for name in listening_sockets(table) if ENGINE_NAME.search(name)]
    return list(dict.fromkeys(found))


def listening_sockets(table: str) -> list[str]:
    """Return the names of listening sockets in the form of /proc/net/unix."""
    rows = (line.split(None, 7) for line in table.splitlines()[1:])
    return [row[7] for row in rows if len(row) > 7 and int(row[3], 16) & LISTENS]  # noqa: PLR2004


def ask(name: str, *, wait: bool) -> str:
    """Return what a socket does when it is connected to and, to *wait* for an answer, greeted in HTTP."""
    address = "\0" + name[1:] if name.startswith("@") else name
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(WAIT_SECONDS)
        try:
            client.connect(address)
        except OSError as error:
            return errno_name(error)
        if not wait:
            return "connected"
        with contextlib.suppress(OSError):
            client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            if ENGINE_ANSWER.search(client.recv(4096)):
                return ANSWERS
    return "connected, answers as something else"


# --- isolation: What was not granted must be out of reach: each thing is tried, not read from a setting ---

# What makes, seizes or writes something: by hand, on somebody's own machine, it has no reason.
ACTING = ("new_device_nodes", "ptrace_pid_1", "root_writes", "kernel_settings")


def stage_isolation(job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]) -> None:
    """Try to reach what the plan does not grant."""
    grants = Grants(job["expect"])
    for name, examine in (
        ("other_gpu_nodes", check_gpu_nodes),
        ("host_devices", check_host_devices),
        ("new_device_nodes", check_new_nodes),
        ("engine_sockets", check_engine_sockets),
        ("raw_sockets", check_raw_sockets),
        ("user_namespaces", check_user_namespaces),
        ("ptrace_pid_1", check_ptrace),
        ("root_writes", check_root_writes),
        ("kernel_settings", check_kernel_settings),
        ("masked_paths", check_masked_paths),
        ("processes", check_processes),
        ("network", check_network),
        ("namespaces", check_namespaces),
    ):
        with reporter.check("isolation", name) as check:
            if name in ACTING and not grants.known:
                check.skip("not tried: there is no plan to compare with")
            else:
                examine(check, grants)


# --- transformer: A causal transformer in plain torch operations, and what fp32 rounding may do to one ---

# Small enough for a float64 run on a few processors, large enough for tiled kernels on a GPU.
MODEL_SHAPES = {
    "cpu": {"layers": 2, "width": 128, "heads": 4, "words": 512, "context": 256},
    "gpu": {"layers": 4, "width": 512, "heads": 8, "words": 2048, "context": 512},
}
FP32_UNIT = 2.0**-24
# Roundings of one elementwise function: exp, division and their like are good to about 2 ulp each.
FUNCTION_ROUNDINGS = 16.0


class PlainOperations:
    """Operations as torch does them, in whatever format the weights have."""

    def product(self, left: Any, right: Any) -> Any:
        """Return a matrix product."""
        return left @ right

    def rounded(self, value: Any, terms: int = 1) -> Any:  # noqa: ARG002 - the other one wants it
        """Return the result of an elementwise function, or of one that sums *terms* values."""
        return value


class RoundedAsFp32:
    """Operations in float64, each result moved by the most that fp32 rounding may move it."""

    def __init__(self, torch: Any, seed: int) -> None:
        self._torch = torch
        self._random = torch.Generator()
        self._random.manual_seed(seed)

    def product(self, left: Any, right: Any) -> Any:
        """Return a matrix product and its rounding."""
        bound = (left.abs() @ right.abs()) * (CONFIDENCE * math.sqrt(left.shape[-1]) * FP32_UNIT)
        return left @ right + bound * self._signs(bound)

    def rounded(self, value: Any, terms: int = 1) -> Any:
        """Return *value* and its rounding."""
        share = (FUNCTION_ROUNDINGS + CONFIDENCE * math.sqrt(terms)) * FP32_UNIT
        return value * (1.0 + share * self._signs(value))

    def _signs(self, like: Any) -> Any:
        drawn = self._torch.randint(0, 2, like.shape, generator=self._random)
        return drawn.double() * 2.0 - 1.0


PLAIN = PlainOperations()


def made_weights(torch: Any, shape: dict[str, int]) -> dict[str, Any]:
    """Return seeded weights; each product keeps the size of what goes in."""
    random = torch.Generator()
    random.manual_seed(20)
    width = shape["width"]
    sizes = {
        "words": (shape["words"], width),
        "places": (shape["context"], width),
        "head": (width, shape["words"]),
    }
    for layer in range(shape["layers"]):
        sizes[f"{layer}.attention"] = (width, 3 * width)
        sizes[f"{layer}.merge"] = (width, width)
        sizes[f"{layer}.widen"] = (width, 4 * width)
        sizes[f"{layer}.narrow"] = (4 * width, width)
    return {
        name: torch.randn(*size, generator=random) / math.sqrt(size[0] if "." in name else width)
        for name, size in sizes.items()
    }


def tokens_for(torch: Any, shape: dict[str, int], rows: int, columns: int, seed: int) -> Any:
    """Return a seeded input."""
    random = torch.Generator()
    random.manual_seed(seed)
    return torch.randint(0, shape["words"], (rows, columns), generator=random)


def logits_of(
    torch: Any,
    shape: dict[str, int],
    weights: dict[str, Any],
    tokens: Any,
    operations: Any,
    cache: dict[int, tuple[Any, Any]] | None = None,
) -> Any:
    """Return the logits after every token; *cache* holds keys and values of what came before."""
    begin = cache[0][0].shape[2] if cache else 0
    end = begin + tokens.shape[1]
    flow = weights["words"][tokens] + weights["places"][begin:end]
    for layer in range(shape["layers"]):
        normal = normalised(operations, flow)
        mixed = operations.product(normal, weights[f"{layer}.attention"])
        seen = attended(torch, shape, mixed, operations, cache, layer)
        merged = operations.product(seen, weights[f"{layer}.merge"])
        flow = operations.rounded(flow + merged)
        wide = operations.product(normalised(operations, flow), weights[f"{layer}.widen"])
        active = operations.rounded(torch.nn.functional.silu(wide))
        flow = operations.rounded(flow + operations.product(active, weights[f"{layer}.narrow"]))
    return operations.product(normalised(operations, flow), weights["head"])


def normalised(operations: Any, flow: Any) -> Any:
    """Return each vector at length one per element (RMSNorm without a scale)."""
    mean = (flow * flow).mean(dim=-1, keepdim=True)
    return operations.rounded(flow * (mean + 1e-6).rsqrt(), flow.shape[-1])


def attended(
    torch: Any,
    shape: dict[str, int],
    mixed: Any,
    operations: Any,
    cache: dict[int, tuple[Any, Any]] | None,
    layer: int,
) -> Any:
    """Return what each token takes from itself and those before it."""
    rows, columns, _ = mixed.shape
    heads = shape["heads"]
    size = shape["width"] // heads
    parts = mixed.view(rows, columns, 3, heads, size).permute(2, 0, 3, 1, 4)
    query, key, value = parts[0], parts[1], parts[2]
    if cache is not None:
        if layer in cache:
            key = torch.cat([cache[layer][0], key], dim=2)
            value = torch.cat([cache[layer][1], value], dim=2)
        cache[layer] = (key, value)
    scores = operations.product(query, key.transpose(-1, -2)) / math.sqrt(size)
    before = key.shape[2] - columns
    future = torch.ones(columns, key.shape[2], dtype=torch.bool, device=mixed.device)
    scores = scores.masked_fill(future.triu(before + 1), float("-inf"))
    shares = operations.rounded(torch.softmax(scores, dim=-1), key.shape[2])
    joined = operations.product(shares, value)
    return joined.permute(0, 2, 1, 3).reshape(rows, columns, shape["width"])


def decoded(
    torch: Any, shape: dict[str, int], weights: dict[str, Any], prompt: Any, count: int
) -> Any:
    """Return the *count* likeliest tokens that follow *prompt*, one after the other."""
    cache: dict[int, tuple[Any, Any]] = {}
    logits = logits_of(torch, shape, weights, prompt, PLAIN, cache)
    written = [logits[:, -1].argmax(dim=-1, keepdim=True)]
    while len(written) < count:
        logits = logits_of(torch, shape, weights, written[-1], PLAIN, cache)
        written.append(logits[:, -1].argmax(dim=-1, keepdim=True))
    return torch.cat(written, dim=1)


# --- model: A small transformer with seeded weights: saved, loaded, asked, compared, repeated ---

SHORT_INPUT = 8
BATCH_ROWS = 4
DECODED_TOKENS = 24
MODEL_REPEATS = 10
PERTURBED_RUNS = 2
MODEL_BOUND_SOURCE = (
    "largest change of a logit in a float64 run whose every operation is moved, with random signs, by what "
    "fp32 rounding may do to it: 4*sqrt(K)*u*(|A||B|), Higham and Mary, SIAM J. Sci. Comput. 41 (2019); "
    "method: Parker, Monte Carlo Arithmetic, UCLA CSD-970002 (1997)"
)
DEVICE_GROWTH_SOURCE = (
    "torch.cuda.memory_allocated counts live tensors: repeats that keep none end where they began"
)
# mallopt(3): a block below M_MMAP_THRESHOLD, which adapts up to 32 MiB, may stay with the process.
HOST_GROWTH_BYTES = 32 << 20
HOST_GROWTH_SOURCE = (
    "DEFAULT_MMAP_THRESHOLD_MAX of glibc, mallopt(3): freed blocks below 32 MiB may stay"
)
MODEL_NEEDS = ("save", "load", "randn", "randint", "softmax", "stack", "cat", "nn", "no_grad")


def stage_model(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Use the device as a language model does: load weights, read, write, and do it again."""
    torch = state["torch"]
    device = "cpu" if job["accelerator"] == "cpu" else "cuda:0"
    shape = MODEL_SHAPES["cpu" if device == "cpu" else "gpu"]
    weights: dict[str, Any] = {}
    there: dict[str, Any] = {}
    with reporter.check("model", "load") as check:
        missing = [name for name in MODEL_NEEDS if not hasattr(torch, name)]
        if missing:
            check.skip(f"this torch has no {', '.join(missing)}")
        else:
            weights = made_weights(torch, shape)
            there = check_load(check, torch, weights, device)
    if check.status != "pass":
        return
    exact = {name: tensor.double() for name, tensor in weights.items()}
    if (
        device == "cpu"
    ):  # products this small gain nothing from threads, and lose much where others run
        torch.set_num_threads(1)
    with torch.no_grad():
        for name, rows, columns in (
            ("short_input", 1, SHORT_INPUT),
            ("long_input", 1, shape["context"]),
            ("batch", BATCH_ROWS, shape["context"] // 4),
        ):
            with reporter.check("model", name) as check:
                tokens = tokens_for(torch, shape, rows, columns, seed=rows + columns)
                check_logits(check, torch, shape, exact, there, tokens, device)
        with reporter.check("model", "greedy_decode") as check:
            check_decode(check, torch, shape, exact, there, device)
        with reporter.check("model", "memory_growth") as check:
            check_growth(check, torch, shape, there, device)


def check_load(check: Check, torch: Any, weights: dict[str, Any], device: str) -> dict[str, Any]:
    """Save the weights, load them onto the device, and compare every bit."""
    folder = writable_folder()
    check.evidence["folder"] = str(folder.parent)
    try:
        path = folder / "weights.pt"
        begin = time.monotonic()
        torch.save(weights, path)
        saved = time.monotonic()
        size = path.stat().st_size
        try:
            there = torch.load(path, map_location=device, weights_only=True)
            check.evidence["weights_only"] = True
        except TypeError:  # before torch 1.13
            there = torch.load(path, map_location=device)
            check.evidence["weights_only"] = False
        synchronize(torch, device)
        loaded = time.monotonic()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    check.evidence.update(
        bytes=size,
        save_gb_per_s=rate(size, saved - begin),
        load_gb_per_s=rate(size, loaded - saved),
    )
    changed = [name for name in weights if not torch.equal(weights[name], there[name].cpu())]
    if changed:
        msg = f"{len(changed)} of {len(weights)} tensors are not what was saved: {', '.join(changed[:5])}"
        raise CheckFailed(msg)
    elsewhere = [name for name in there if str(there[name].device) != device]
    if elsewhere:
        msg = f"{elsewhere[0]} was loaded onto {there[elsewhere[0]].device}, not {device}"
        raise CheckFailed(msg)
    return dict(there)


def writable_folder() -> Path:
    """Return a new folder in the cache, or where temporary files go.

    Raises:
        CheckFailed: nothing can be written anywhere.
    """
    refused = []
    for place in (os.environ.get("XDG_CACHE_HOME"), os.environ.get("TMPDIR"), "/tmp"):
        if not place:
            continue
        try:
            Path(place).mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix="rocmrun-probe-model-", dir=place))
        except OSError as error:
            refused.append(f"{place}: {error.strerror}")
    msg = f"no folder can be written to: {', '.join(refused)}"
    raise CheckFailed(msg)


def logit_bound(torch: Any, shape: dict[str, int], exact: Any, tokens: Any) -> tuple[Any, float]:
    """Return the logits in float64, and how far fp32 rounding may move one of them."""
    right = logits_of(torch, shape, exact, tokens, PLAIN)
    moved = [
        logits_of(torch, shape, exact, tokens, RoundedAsFp32(torch, seed))
        for seed in range(PERTURBED_RUNS)
    ]
    return right, max(float((logits - right).abs().max().item()) for logits in moved)


def check_logits(
    check: Check,
    torch: Any,
    shape: dict[str, int],
    exact: dict[str, Any],
    there: dict[str, Any],
    tokens: Any,
    device: str,
) -> None:
    """Read an input on the device and compare every logit with a float64 run on the processor."""
    logits_of(torch, shape, there, tokens.to(device), PLAIN)  # what is slow only once
    synchronize(torch, device)
    begin = time.monotonic()
    seen = logits_of(torch, shape, there, tokens.to(device), PLAIN)
    synchronize(torch, device)
    seconds = time.monotonic() - begin
    check.evidence.update(
        rows=tokens.shape[0],
        tokens=tokens.shape[1],
        tokens_per_second=round(tokens.numel() / max(seconds, 1e-9), 1),
    )
    right, bound = logit_bound(torch, shape, exact, tokens)
    error = (seen.cpu().double() - right).abs()
    unusable = int((~torch.isfinite(error)).sum().item())
    if unusable:
        msg = f"{unusable} of {error.numel()} logits are not finite"
        raise CheckFailed(msg)
    worst = float(error.max().item())
    wrong = int((error > bound).sum().item())
    check.evidence.update(largest_error=worst, worst_share_of_bound=worst / bound, wrong=wrong)
    check.threshold, check.threshold_source = bound, MODEL_BOUND_SOURCE
    if wrong:
        msg = f"{wrong} of {error.numel()} logits are wrong, the worst by {worst / bound:.3g} times the error bound"
        raise CheckFailed(msg)


def check_decode(
    check: Check,
    torch: Any,
    shape: dict[str, int],
    exact: dict[str, Any],
    there: dict[str, Any],
    device: str,
) -> None:
    """Write tokens one by one, with a cache, and ask the float64 run whether each was the likeliest.

    A token counts as equal where the float64 run puts it so close to its own choice that rounding
    decides between the two.
    """
    prompt = tokens_for(torch, shape, 1, SHORT_INPUT, seed=1)
    first = decoded(torch, shape, there, prompt.to(device), DECODED_TOKENS)
    synchronize(torch, device)
    begin = time.monotonic()
    written = decoded(torch, shape, there, prompt.to(device), DECODED_TOKENS)
    synchronize(torch, device)
    seconds = time.monotonic() - begin
    whole = torch.cat([prompt, written.cpu()], dim=1)
    right, bound = logit_bound(torch, shape, exact, whole[:, :-1])
    asked = right[0, SHORT_INPUT - 1 :]
    behind = asked.max(dim=-1).values - asked.gather(1, written.cpu()[0].unsqueeze(1))[:, 0]
    equal = int((behind == 0).sum().item())
    wrong = int((behind > 2 * bound).sum().item())
    repeated = bool(torch.equal(first, written))
    check.evidence.update(
        tokens=DECODED_TOKENS,
        equal=equal,
        undecided=DECODED_TOKENS - equal - wrong,
        repeated=repeated,
        tokens_per_second=round(DECODED_TOKENS / max(seconds, 1e-9), 1),
    )
    check.threshold, check.threshold_source = 2 * bound, f"twice the {MODEL_BOUND_SOURCE}"
    if wrong:
        msg = f"{wrong} of {DECODED_TOKENS} tokens are not the likeliest"
        raise CheckFailed(msg)
    if not repeated and equal == DECODED_TOKENS:
        msg = "two runs on the same prompt wrote different tokens"
        raise CheckFailed(msg)


def check_growth(
    check: Check, torch: Any, shape: dict[str, int], there: dict[str, Any], device: str
) -> None:
    """Repeat one input and see whether memory grows on, once everybody has warmed up."""
    tokens = tokens_for(torch, shape, 1, SHORT_INPUT, seed=2).to(device)

    def repeat() -> tuple[int, int]:
        for _ in range(MODEL_REPEATS):
            decoded(torch, shape, there, tokens, 2)
        synchronize(torch, device)
        return (0 if device == "cpu" else torch.cuda.memory_allocated()), resident_bytes()

    repeat()
    before, after = repeat(), repeat()
    on_device, on_host = after[0] - before[0], after[1] - before[1]
    check.evidence.update(repeats=MODEL_REPEATS, host_bytes=on_host)
    if device != "cpu":
        check.evidence["device_bytes"] = on_device
    check.threshold, check.threshold_source = float(HOST_GROWTH_BYTES), HOST_GROWTH_SOURCE
    if on_host > HOST_GROWTH_BYTES:
        check.degrade(f"{MODEL_REPEATS} repeats left {on_host >> 20} MiB more in the process")
    if on_device > 0:
        check.threshold, check.threshold_source = 0.0, DEVICE_GROWTH_SOURCE
        msg = f"{MODEL_REPEATS} repeats left {on_device} bytes more on the device"
        raise CheckFailed(msg)


def resident_bytes() -> int:
    """Return how much memory this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


# --- linkage: Which GPU runtime a library is linked against: its needed names, read from the ELF file itself ---

# Bounds: a file that claims more is not a library that anything would load.
MAX_PROGRAM_HEADERS = 256
MAX_DYNAMIC_BYTES = 1 << 20
MAX_NEEDED = 512
MAX_NAME = 256
MAX_LIBRARIES = 400  # of one package
PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB = 1, 5
CLASS_64, LITTLE_ENDIAN = 2, 1
PROGRAM_HEADER_64 = "<IIQQQQQQ"
# Libraries that a wheel brings along have part of their hash in the name: libcudart.faf08d9a.so.13 in
# torchvision's, libcudart-c3a75b33.so.11.0 in others (auditwheel writes the second form).
BUNDLED = r"([-.][0-9a-f]{8})?"
# libc10_hip and libtorch_hip are those of a ROCm torch, libc10_cuda and libtorch_cuda of a CUDA one:
# a ROCm torch has no such file (huggingface/autotrain-advanced#735, pytorch/pytorch#139410).
ROCM_LIBRARY = re.compile(
    r"lib(amdhip64|hiprtc|hsa-runtime64|MIOpen|rccl|c10_hip|torch_hip"
    r"|(hip|roc)(blas|blaslt|fft|rand|solver|sparse|sparselt|tx64|profiler\w*))" + BUNDLED + r"\.so"
)
CUDA_LIBRARY = re.compile(
    r"lib(cuda|cudart|nccl|c10_cuda|torch_cuda|cu(blas|blasLt|fft|rand|solver|sparse|sparseLt|dnn\w*|pti)"
    r"|nv(rtc|JitLink|ToolsExt|jpeg))" + BUNDLED + r"\.so"
)


class Segment(NamedTuple):
    """One program header: what part of the file lies where in memory."""

    kind: int
    offset: int
    address: int
    size: int


def needed_libraries(path: str) -> list[str] | None:
    """Return the names in a library's DT_NEEDED entries; None when it is no 64-bit ELF file that has any."""
    try:
        with Path(path).open("rb") as file:
            segments = program_headers(file)
            dynamic = next((one for one in segments if one.kind == PT_DYNAMIC), None)
            if dynamic is None or dynamic.size > MAX_DYNAMIC_BYTES:
                return None
            entries = dynamic_entries(file, dynamic)
            tables = [value for tag, value in entries if tag == DT_STRTAB]
            offset = file_offset(tables[0], segments)
            needed = [value for tag, value in entries if tag == DT_NEEDED][:MAX_NEEDED]
            return [name_at(file, offset + value) for value in needed]
    except (OSError, ValueError, struct.error, LookupError, OverflowError):
        return None


def program_headers(file: BinaryIO) -> list[Segment]:
    """Return the program headers of a 64-bit little-endian ELF file.

    Raises:
        ValueError: it is none.
    """
    head = file.read(64)
    if head[:6] != bytes([0x7F, *b"ELF", CLASS_64, LITTLE_ENDIAN]):
        msg = "not a 64-bit little-endian ELF file"
        raise ValueError(msg)
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    if size < struct.calcsize(PROGRAM_HEADER_64) or count > MAX_PROGRAM_HEADERS:
        msg = "no program headers that can be read"
        raise ValueError(msg)
    segments = []
    for index in range(count):
        file.seek(offset + index * size)
        data = file.read(struct.calcsize(PROGRAM_HEADER_64))
        kind, _, begin, address, _, length, *_ = struct.unpack(PROGRAM_HEADER_64, data)
        segments.append(Segment(kind, begin, address, length))
    return segments


def dynamic_entries(file: BinaryIO, dynamic: Segment) -> list[tuple[int, int]]:
    """Return tag and value of each entry of the dynamic segment."""
    file.seek(dynamic.offset)
    data = file.read(dynamic.size)
    return list(struct.iter_unpack("<qQ", data[: len(data) // 16 * 16]))


def file_offset(address: int, segments: list[Segment]) -> int:
    """Return where in the file the byte at *address* is.

    Raises:
        LookupError: no segment holds it.
    """
    for segment in segments:
        if segment.kind == PT_LOAD and 0 <= address - segment.address < segment.size:
            return segment.offset + address - segment.address
    raise LookupError(address)


def name_at(file: BinaryIO, offset: int) -> str:
    """Return the string at *offset*."""
    file.seek(offset)
    return file.read(MAX_NAME).partition(b"\0")[0].decode(errors="replace")


def linked_to(needed: list[str]) -> str:
    """Return "rocm", "cuda", "both" or "none", by the names that a library needs."""
    rocm = any(ROCM_LIBRARY.match(name) for name in needed)
    cuda = any(CUDA_LIBRARY.match(name) for name in needed)
    return "both" if rocm and cuda else "rocm" if rocm else "cuda" if cuda else "none"


def libraries_below(places: list[str]) -> list[str]:
    """Return the shared libraries in these directories, and those of these files that are one."""
    found = [place for place in places if is_library(place) and Path(place).is_file()]
    for place in places:
        for folder, folders, names in os.walk(place):
            folders.sort()
            found += [f"{folder}/{name}" for name in sorted(names) if is_library(name)]
            if len(found) > MAX_LIBRARIES:
                return found[:MAX_LIBRARIES]
    return found


def is_library(path: str) -> bool:
    """Whether this is the name of a shared library: with or without a version behind."""
    return ".so" in Path(path).suffixes


def mapped_libraries() -> set[str]:
    """Return the shared libraries that this process has loaded."""
    lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) > 5}  # noqa: PLR2004 - the path is the sixth field
    return {path for path in paths if is_library(path)}


def linkage(libraries: list[str]) -> dict[str, list[str]]:
    """Return the libraries by what they are linked to; what is no ELF library is left out."""
    found: dict[str, list[str]] = {}
    for library in libraries:
        needed = needed_libraries(library)
        if needed is not None:
            found.setdefault(linked_to(needed), []).append(library)
    return found


def runtime_of(by_runtime: dict[str, Any]) -> str:
    """Return the one runtime that a package's libraries are linked to: "rocm", "cuda", "both" or "none"."""
    kinds = {kind for kind, libraries in by_runtime.items() if libraries and kind != "none"}
    if not kinds:
        return "none"
    return kinds.pop() if len(kinds) == 1 else "both"


# --- operator_calls: One cheap call of each known extension, against what it should give ---

# The weights of a softmax add up to 1 and the values are at most 1 in magnitude: rounding the weights
# and the result to fp16 (2**-11 each, relative) moves a result by 2**-10 at most; the rest is room for
# the exponentials, which kernels approximate.
EXTENSION_ATTENTION_BOUND = 2.0**-8
EXTENSION_ATTENTION_SOURCE = (
    "weights and results rounded to fp16, 2**-11 each, of values up to 1; four times that"
)
# bitsandbytes' 8-bit code has its widest steps between 0.1 and 1 of a block's largest value: 64 of them.
QUANTISED_BOUND = 0.9 / 64
QUANTISED_SOURCE = "the widest step of the dynamic 8-bit code, 0.9/64 of a block's largest value"
TRITON_KERNEL = """
import triton
import triton.language as tl


@triton.jit
def add(left, right, result, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    total = tl.load(left + index, mask=inside) + tl.load(right + index, mask=inside)
    tl.store(result + index, total, mask=inside)
"""


def bounded_error(check: Check, error: float, bound: float, source: str) -> None:
    """Fail unless *error* is within *bound*; NaN is not."""
    check.evidence["largest_error"] = error
    check.threshold, check.threshold_source = bound, source
    if not error <= bound:
        msg = f"the result is off by {error:.3g}, more than {bound:.3g}"
        raise CheckFailed(msg)


def half_attention_inputs(torch: Any) -> list[Any]:
    """Return query, key and value as (batch, sequence, heads, width), in [-1, 1)."""
    generator = torch.Generator()
    generator.manual_seed(3)
    shape = (1, 128, 4, 64)
    return [(torch.rand(*shape, generator=generator) * 2 - 1).half() for _ in range(3)]


def attention_in_float64(torch: Any, query: Any, key: Any, value: Any) -> Any:
    """Return the attention in float64, on the host."""
    q, k, v = (tensor.double().transpose(1, 2) for tensor in (query, key, value))
    weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), dim=-1)
    return (weights @ v).transpose(1, 2)


def check_extension_attention(
    check: Check, torch: Any, attention: Callable[..., Any], device: str
) -> None:
    """Compare an attention of this layout with the exact one."""
    inputs = half_attention_inputs(torch)
    result = attention(*(tensor.to(device) for tensor in inputs)).cpu().double()
    error = float((result - attention_in_float64(torch, *inputs)).abs().max().item())
    bounded_error(check, error, EXTENSION_ATTENTION_BOUND, EXTENSION_ATTENTION_SOURCE)


def call_flash_attn(check: Check, torch: Any, module: Any, device: str) -> str:
    """Call flash_attn_func."""
    check_extension_attention(check, torch, module.flash_attn_func, device)
    return "flash_attn_func"


def call_xformers(check: Check, torch: Any, _module: Any, device: str) -> str:
    """Call memory_efficient_attention."""
    operators = importlib.import_module("xformers.ops")
    check_extension_attention(check, torch, operators.memory_efficient_attention, device)
    return "ops.memory_efficient_attention"


def call_bitsandbytes(check: Check, torch: Any, module: Any, device: str) -> str:
    """Quantise to 8 bits and back."""
    functional = module.functional
    values = (torch.arange(4096, dtype=torch.float32) / 2048 - 1).to(device)
    quantised, state = functional.quantize_blockwise(values)
    error = float((functional.dequantize_blockwise(quantised, state) - values).abs().max().item())
    bounded_error(check, error, QUANTISED_BOUND, QUANTISED_SOURCE)
    return "functional.quantize_blockwise"


def call_triton(check: Check, torch: Any, _module: Any, device: str) -> str:
    """Compile and run a vector addition; Triton reads a kernel's source from its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "triton_add.py"
        path.write_text(TRITON_KERNEL)
        spec = importlib.util.spec_from_file_location("triton_add", path)
        assert spec is not None
        assert spec.loader is not None
        kernels = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(kernels)
        left = torch.arange(5000, dtype=torch.float32).to(device)
        right, result = left * 2, torch.zeros_like(left)
        kernels.add[(5,)](left, right, result, 5000, BLOCK=1024)
        wrong = int((result != left * 3).sum().item())
    check.evidence["wrong"] = wrong
    if wrong:
        msg = f"{wrong} of 5000 sums are wrong"
        raise CheckFailed(msg)
    return "a vector addition"


def call_torchvision(check: Check, torch: Any, module: Any, device: str) -> str:
    """Drop the one of three boxes that another covers."""
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]]).to(device)
    kept = module.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]).to(device), 0.5).cpu().tolist()
    check.evidence["kept"] = kept
    if kept != [0, 2]:
        msg = f"boxes {kept} were kept, not [0, 2]"
        raise CheckFailed(msg)
    return "ops.nms"


def call_vllm(check: Check, _torch: Any, _module: Any, _device: str) -> str:
    """Ask which platform vLLM would serve on; it looks for ROCm through amdsmi, not through torch."""
    return judged_platform(check, importlib.import_module("vllm.platforms").current_platform)


def judged_platform(check: Check, platform: Any) -> str:
    """Fail unless vLLM's platform is one with GPUs."""
    check.evidence["platform"] = type(platform).__name__
    if not platform.is_cuda_alike():
        msg = f"vLLM finds no GPU here: its platform is {type(platform).__name__}"
        raise CheckFailed(msg)
    return "platforms.current_platform"


# (check, torch, module, device) -> what was called. The others are imported and no more: aiter compiles for
# minutes when it is first called, and of the user's own nothing is known.
CALLS: dict[str, Callable[[Check, Any, Any, str], str]] = {
    "flash_attn": call_flash_attn,
    "xformers": call_xformers,
    "bitsandbytes": call_bitsandbytes,
    "triton": call_triton,
    "torchvision": call_torchvision,
    "vllm": call_vllm,
}
# Those that compute on a processor as well.
CALLED_ON_CPU = ("bitsandbytes", "torchvision")


# --- waves: How many children fit into memory at once ---

# A rough figure of the host memory that one process with a GPU runtime needs; it only sizes waves.
MEMORY_PER_CHILD = 2 << 30
MAX_WAVE = 16


def wave_size(count: int) -> int:
    """Return how many of *count* children may run at once here, at least one."""
    return fitting_wave(count, free_memory())


def fitting_wave(count: int, free: int) -> int:
    """Return how many children half of *free* bytes hold, at least one and at most as many as make sense."""
    return max(1, min(count, MAX_WAVE, free // 2 // MEMORY_PER_CHILD))


def free_memory() -> int:
    """Return the bytes that the machine and the container's limit leave, whichever is less."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    limit = memory_limit()
    if limit is not None:
        used = number(cgroup_value("memory", "memory.current", "memory.usage_in_bytes")) or 0
        available.append(limit - used)
    return min(available, default=MEMORY_PER_CHILD)


def likely_devices(accelerator: str, dev: Path = Path("/dev")) -> int:
    """Return how many devices there are by their nodes: a guess, for processes to start on early."""
    return len(list(dev.glob("nvidia[0-9]*" if accelerator == "cuda" else "dri/renderD*")))


# --- operators: Extensions with kernels of their own: do they import, for which runtime were they built, do they compute? ---

# Looked for in every image; a profile names further ones, and those that must be there.
KNOWN_OPERATORS = (
    "flash_attn",
    "aiter",
    "triton",
    "bitsandbytes",
    "vllm",
    "xformers",
    "torchvision",
    "torchaudio",
    "flashinfer",
    "sgl_kernel",
)
AT_ONCE = 4
KEPT_LIBRARIES = 8
# What helps on ROCm, and who says so.
ON_ROCM = {
    "flash_attn": (
        "build flash-attention with ROCm (composable_kernel or Triton backend), or use torch's "
        "scaled_dot_product_attention",
        "https://github.com/Dao-AILab/flash-attention#amd-rocm-support",
    ),
    "aiter": (
        "aiter asks hipconfig for ROCm's version as it is imported, and compiles into its own package: "
        "ROCm's development files must be there, and <aiter>/jit writable for the workload's user",
        "https://github.com/ROCm/aiter/issues/887",
    ),
    "triton": (
        "take the Triton that belongs to the ROCm build of torch (pytorch-triton-rocm)",
        "https://github.com/pytorch/pytorch/issues/112997",
    ),
    "bitsandbytes": (
        "it needs libbitsandbytes_rocmNN.so, NN from torch.version.hip and not from /opt/rocm",
        "https://github.com/ROCm/bitsandbytes/issues/81",
    ),
    "vllm": (
        "take vLLM's wheels or image for ROCm, which bring their own torch",
        "https://docs.vllm.ai/en/latest/getting_started/installation/gpu/",
    ),
    "xformers": (
        "take the wheel from the index of the ROCm build of torch (download.pytorch.org/whl/rocm…)",
        "https://github.com/facebookresearch/xformers/issues/1365",
    ),
    "torchvision": (
        "take it from the same index as the ROCm build of torch",
        "https://github.com/pytorch/pytorch/issues/139410",
    ),
    "torchaudio": (
        "take it from the same index as the ROCm build of torch",
        "https://github.com/pytorch/pytorch/issues/139410",
    ),
    "flashinfer": (
        "AMD's port of it is a package of its own",
        "https://github.com/AMD-Ecosystem/flashinfer",
    ),
}
CUDA_ON_ROCM = (
    "rebuild it for this torch: a ROCm torch has none of CUDA's libraries",
    "https://github.com/huggingface/autotrain-advanced/issues/735",
)


def stage_operators_installed(
    _job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]
) -> None:
    """Look for the known extensions without importing any."""
    with reporter.check("operators", "installed") as check:
        found = {name: place_of(name) for name in KNOWN_OPERATORS}
        check.evidence["found"] = {name: place for name, place in found.items() if place}


def place_of(name: str) -> str | None:
    """Return where a module's outermost package is; None when it is not here."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return places[0] if places else spec.origin


def stage_operator(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Import one extension, tell what it is linked to, and call it once where that is cheap."""
    with reporter.check("operators", job["module"]) as check:
        check.evidence["named"] = job["named"]
        check_operator(check, job, state)


def check_operator(check: Check, job: dict[str, Any], state: dict[str, Any]) -> None:
    """Judge the files before the import, which may end the process, and what was loaded after it."""
    name = job["module"]
    place = place_of(name)
    if place is None:
        msg = f"there is no module {name.partition('.')[0]} here"
        raise CheckFailed(msg)
    libraries = own_libraries(name, place)
    judge_linkage(check, linkage(libraries), job["accelerator"])
    torch = torch_or_none(state)  # most extensions find its libraries only once it is imported
    before = mapped_libraries()
    module = importlib.import_module(name)
    loaded = sorted((mapped_libraries() - before) & {os.path.realpath(path) for path in libraries})
    if loaded:
        judge_linkage(check, linkage(loaded), job["accelerator"])
    check.evidence.update(version=version_of(name, module), path=place, loaded=len(loaded))
    call, device = CALLS.get(name), job["device"]
    if call is None:
        check.evidence["not_called"] = "it has no call that is known to be cheap"
    elif device is None or torch is None:
        check.evidence["not_called"] = "there is no device that passed on its own, or no torch"
    elif device == "cpu" and name not in CALLED_ON_CPU:
        check.evidence["not_called"] = "it computes on GPUs only"
    else:
        check.evidence["called"] = call(check, torch, module, device)


def own_libraries(name: str, place: str) -> list[str]:
    """Return the shared libraries of a package: those below it, and those that it installed beside it."""
    import importlib.metadata  # takes as long as all other imports of this program together

    beside: list[str] = []
    try:
        files = importlib.metadata.files(name.partition(".")[0]) or []
        beside = [str(file.locate()) for file in files if ".so" in file.suffixes]
    except importlib.metadata.PackageNotFoundError:
        pass
    return list(dict.fromkeys(libraries_below([place, *beside])))


def judge_linkage(check: Check, by_runtime: dict[str, list[str]], accelerator: str) -> None:
    """Record what the libraries are linked to; those of the other runtime alone cannot work here."""
    runtime = runtime_of(by_runtime)
    check.evidence["linked"] = runtime
    check.evidence["libraries"] = {
        kind: found[:KEPT_LIBRARIES] for kind, found in by_runtime.items()
    }
    other = {"rocm": "cuda", "cuda": "rocm"}.get(accelerator)
    if runtime == other:
        msg = f"it is linked against {runtime.upper()}, this is {accelerator}: {by_runtime[runtime][0]}"
        raise CheckFailed(msg)


def torch_or_none(state: dict[str, Any]) -> Any:
    """Import torch; an image may hold extensions and no torch."""
    try:
        state["torch"] = importlib.import_module("torch")
    except Exception:
        return None
    return state["torch"]


def version_of(name: str, module: Any) -> str | None:
    """Return a module's version, by its own word or by its package's."""
    import importlib.metadata

    version = getattr(module, "__version__", None)
    if version is not None:
        return str(version)
    try:
        return importlib.metadata.version(name.partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return None


def judged_operator(check: dict[str, Any], accelerator: str, *, named: bool) -> dict[str, Any]:
    """Say what helps on ROCm; what nobody asked for is no failure of the plan, only of the image."""
    if check["status"] != "fail":
        return check
    reason, linked = check["reason"], check["evidence"].get("linked")
    if accelerator == "cpu" and linked in ("rocm", "cuda"):
        reason += f"; its libraries are linked against {linked.upper()}, which is not here"
    if accelerator == "rocm":
        outermost = check["name"].partition(".")[0]
        known = ON_ROCM.get(outermost)
        if known is None and linked == "cuda":
            known = CUDA_ON_ROCM
        if known is not None:
            reason += f"; {known[0]} ({known[1]})"
    return {**check, "status": "fail" if named else "degraded", "reason": reason}


def run_operators(
    settings: dict[str, Any],
    events: Events,
    spawn: Callable[[str, dict[str, str]], Child],
    close: Callable[[Child], None],
    devices: dict[Any, bool],
    timeout: Callable[[str], float],
) -> None:
    """Try every extension that the profile names or the image holds, each in a process of its own.

    *devices* says which are here and whether each passed on its own: the first that did is called on.
    """
    first = next((index for index, good in devices.items() if good), None)
    device = first if first in ("cpu", None) else "cuda"
    environment = dict(os.environ)
    if first is not None and device == "cuda":
        environment = device_environment(settings["accelerator"], first, 1)
    found = installed(events, spawn, close, timeout("environment"))
    modules = list(dict.fromkeys([*settings["operators"], *found]))

    def examine(module: str) -> None:
        named = module in settings["operators"]
        child = spawn(f"operator {module}", environment)
        child.on_doing = lambda group, name: events.doing(group, name, None)
        job = {"stage": "operator", "module": module, "named": named, "device": device}
        job["accelerator"] = settings["accelerator"]

        def report(check: dict[str, Any]) -> None:
            events.check(judged_operator(check, settings["accelerator"], named=named))

        outcome = child.run(job, timeout("operators"), report)
        if outcome.ended != "done" and not outcome.checks:
            made = made_check("operators", module, "fail", reason=outcome.reason)
            report({**made, "seconds": round(outcome.seconds, 4), "evidence": outcome.evidence})
        close(child)

    if modules:
        with ThreadPoolExecutor(min(AT_ONCE, wave_size(len(modules)))) as pool:
            list(pool.map(examine, modules))


def installed(
    events: Events,
    spawn: Callable[[str, dict[str, str]], Child],
    close: Callable[[Child], None],
    seconds: float,
) -> list[str]:
    """Return which of the known extensions the image holds."""
    child = spawn("operators", dict(os.environ))
    outcome = child.run({"stage": "operators_installed"}, seconds, events.check)
    if outcome.ended != "done" and not outcome.checks:
        events.fail("operators", "installed", outcome.reason, evidence=outcome.evidence)
    close(child)
    return [name for check in outcome.checks for name in check["evidence"].get("found", {})]


# --- own: Checks of the profile's own: a command or a Python file, judged by how it ends and what it prints ---

OWN_LINE_BYTES = 64 << 10  # a longer line is judged by what stands at its beginning
OWN_OUTPUT_BYTES = 64 << 20
OWN_LINGER_SECONDS = 0.5  # for output of a program that has ended, which a descendant may hold open
OWN_TEXT = 400
LARGEST_METRIC = 1e300  # what is kept as a number


class OwnOutput:
    """What a check prints, taken line by line: bounded, whatever comes."""

    def __init__(self, pattern: str, names: list[str]) -> None:
        try:
            self._pattern = re.compile(pattern) if pattern else None
        except re.error as error:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            msg = f"expect_output is no regular expression for Python {version}: {error}"
            raise CheckFailed(msg) from error
        self._names = names
        self._pending = {"stdout": b"", "stderr": b""}
        self.bytes = 0
        self.matched = self._pattern is None
        self.metrics: dict[str, Any] = {}
        self.tail: deque[str] = deque(maxlen=KEPT_LINES)

    def take(self, stream: str, data: bytes) -> None:
        """Take the next bytes of one stream."""
        self.bytes += len(data)
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._line(stream, self._joined(stream, line))
            self._pending[stream] = b""
        self._pending[stream] = self._joined(stream, rest)

    def end(self) -> None:
        """Take what had no line end."""
        for stream, line in self._pending.items():
            self._line(stream, line)

    def _joined(self, stream: str, data: bytes) -> bytes:
        return (self._pending[stream] + data)[:OWN_LINE_BYTES]

    def _line(self, stream: str, line: bytes) -> None:
        if not line.strip():
            return
        self.tail.append(shown_line(line))
        if not self.matched and self._pattern is not None:
            self.matched = self._pattern.search(line.decode(errors="replace")) is not None
        if stream != "stdout" or not self._names or not line.lstrip().startswith(b"{"):
            return
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            return
        self.metrics.update({name: values[name] for name in self._names if name in values})


def stage_own(job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]) -> None:
    """Run one check of the profile's own."""
    own = job["own"]
    with reporter.check("own", own["name"]) as check:
        output = OwnOutput(own["expect_output"], sorted(own["metrics"]))
        try:
            if own["source"]:
                with tempfile.TemporaryDirectory(prefix="rocmrun-own-") as folder:
                    path = Path(folder) / "own_check.py"
                    path.write_text(own["source"], encoding="utf-8")
                    python = [sys.executable, *(["-s"] if sys.flags.no_user_site else [])]
                    code = run_own(check, [*python, str(path)], job["seconds"], output)
            else:
                code = run_own(check, own["command"], job["seconds"], output)
        finally:
            output.end()
            check.evidence["last_lines"] = list(output.tail)
            if output.metrics:
                check.evidence["metrics"] = {
                    name: shown_metric(value) for name, value in output.metrics.items()
                }
        judge_own(check, own, output, code)


def run_own(check: Check, command: list[str], seconds: float, output: OwnOutput) -> int:
    """Run *command* and return its exit code; negative is the signal that ended it.

    It stays in this process's group, which the controller ends when the check is over: whatever it
    left behind goes with it.
    """
    check.evidence["command"] = [word[:OWN_TEXT] for word in command[:20]]
    before = oom_kills()
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        msg = f"cannot start {command[0][:OWN_TEXT]}: {error.strerror}"
        raise CheckFailed(msg) from error
    with process:
        try:
            in_time = heard_out(process, time.monotonic() + seconds, output)
        finally:
            process.kill()
    check.evidence["exit_code"] = code = process.returncode
    if output.bytes > OWN_OUTPUT_BYTES:
        msg = f"it printed more than {OWN_OUTPUT_BYTES >> 20} MiB"
        raise CheckFailed(msg)
    if not in_time:
        msg = f"not finished after {seconds:g} s"
        raise CheckFailed(msg)
    if code == -signal.SIGKILL and oom_kills() > before:
        msg = "it was killed: the container's memory limit was reached"
        raise CheckFailed(msg)
    return code


def heard_out(process: subprocess.Popen[bytes], deadline: float, output: OwnOutput) -> bool:
    """Listen until the program ends; return whether it did so before *deadline*."""
    assert process.stdout is not None
    assert process.stderr is not None
    ended = False
    with selectors.DefaultSelector() as selector:
        for name, stream in (("stdout", process.stdout), ("stderr", process.stderr)):
            selector.register(stream, selectors.EVENT_READ, name)
        while output.bytes <= OWN_OUTPUT_BYTES:
            left = deadline - time.monotonic()
            ready = selector.select(max(0.0, min(left, 0.1))) if selector.get_map() else []
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                output.take(key.data, data)
                if not data:
                    selector.unregister(key.fileobj)
            if not ended and process.poll() is not None:
                ended, deadline = True, time.monotonic() + OWN_LINGER_SECONDS
            if ended and (not ready or not selector.get_map()):
                return True
            if left <= 0:
                return ended
            if not selector.get_map() and not ended:
                time.sleep(min(0.02, max(0.0, left)))
    return ended


def judge_own(check: Check, own: dict[str, Any], output: OwnOutput, code: int) -> None:
    """Compare how it ended and what it printed with what the profile expects."""
    if code < 0:
        msg = f"it was killed by {signal_name(-code)}"
        raise CheckFailed(msg)
    if code != own["expect_exit"]:
        last = f": {output.tail[-1]}" if output.tail else ""
        msg = f"it ended with exit code {code}, not {own['expect_exit']}{last}"
        raise CheckFailed(msg)
    if not output.matched:
        msg = f"no line of its output matches {own['expect_output']}"
        raise CheckFailed(msg)
    for name, bounds in sorted(own["metrics"].items()):
        value = output.metrics.get(name)
        if name not in output.metrics:
            msg = f"it printed no metric {name}: a JSON object in a line of its standard output"
            raise CheckFailed(msg)
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not math.isfinite(value)
        ):
            msg = f"its metric {name} is no number: {shown_metric(value)}"
            raise CheckFailed(msg)
        for word, bound in sorted(bounds.items()):
            check.threshold = float(bound)
            check.threshold_source = f"the profile: metrics.{name}.{word} of check {own['name']}"
            if (value < bound) if word == "min" else (value > bound):
                relation = "less than" if word == "min" else "more than"
                msg = f"its metric {name} is {value:g}, {relation} {bound:g}"
                raise CheckFailed(msg)


def shown_metric(value: Any) -> Any:
    """Return a metric as it is kept for evidence."""
    if isinstance(value, (int, float)) and abs(value) < LARGEST_METRIC:
        return value
    return str(value)[:100] if isinstance(value, (str, int, float)) else type(value).__name__


# --- peer_copies: Copies from each GPU to each other one, by a process that sees them all ---

PEER_BYTES = 64 << 20
PEER_BYTES_OF_MANY = 4 << 20  # 64 partitions are 4032 pairs
MANY_GPUS = 16
WARNING_SECONDS = 5  # time to stop the probe, once it has said what may come


class HangingBoard(NamedTuple):
    """A board whose host was seen to hang when its GPUs copied to each other."""

    name: str
    device_id: str
    source: str


HANGING_BOARDS = (
    HangingBoard(
        "Radeon AI PRO R9700", "0x7551", "https://github.com/ROCm/rocm-systems/issues/11348"
    ),
)


def known_hang(identities: list[dict[str, Any]]) -> str:
    """Return what is known of peer copies between these devices; "" where it is nothing bad."""
    for board in HANGING_BOARDS:
        here = [
            seen
            for seen in identities
            if board.name in str(seen.get("name")) or pci_device(seen) == board.device_id
        ]
        if len(here) > 1:
            return (
                f"{len(here)} {board.name}: direct copies between such GPUs have hung the whole host "
                f"({board.source}); NCCL_P2P_DISABLE=1 avoids them"
            )
    return ""


def reason_not_to_copy(hang: str, environment: Mapping[str, str]) -> str:
    """Return why the pairs are left alone; "" once they need not be, which takes a while after a warning."""
    if hang and environment.get("NCCL_P2P_DISABLE") == "1":
        return f"NCCL_P2P_DISABLE=1 is set: {hang}"
    if hang:
        say(f"warning: copies between all pairs of these GPUs start in {WARNING_SECONDS} s")
        time.sleep(WARNING_SECONDS)
    return ""


def pci_device(identity: dict[str, Any]) -> str:
    """Return the PCI device id, as sysfs writes it; "" where it cannot be read."""
    address = str(identity.get("pci_address") or "")
    if address:
        with contextlib.suppress(OSError):
            whole = address if "." in address else f"{address}.0"
            return Path(f"/sys/bus/pci/devices/{whole}/device").read_text().strip()
    return ""


def stage_peer_copies(job: dict[str, Any], reporter: Reporter, state: dict[str, Any]) -> None:
    """Copy from each GPU to each other one and compare."""
    with reporter.check("collectives", "peer_copies") as check:
        check.evidence.update(job["note"])
        check_peer_copies(check, state["torch"], job["message_bytes"])


def check_peer_copies(check: Check, torch: Any, most_bytes: int | None) -> None:
    """Fill a matrix, a row for each source: GB/s, and whether the driver grants direct access."""
    count = torch.cuda.device_count()
    size = most_bytes or (PEER_BYTES if count <= MANY_GPUS else PEER_BYTES_OF_MANY)
    speeds: list[list[float | None]] = [[None] * count for _ in range(count)]
    access: list[list[int | None]] = [[None] * count for _ in range(count)]
    check.evidence.update(bytes=size, gb_per_s=speeds, direct_access=access)
    wrong: list[str] = []
    for source in range(count):
        # 251 is odd and prime: no offset that a copy can slip by looks the same.
        values = torch.arange(size // 4, dtype=torch.int32, device=f"cuda:{source}") % 251 + source
        for target in range(count):
            if target == source:
                continue
            access[source][target] = int(torch.cuda.can_device_access_peer(source, target))
            speeds[source][target], differing = copied(torch, values, source, target)
            if differing:
                wrong.append(f"{differing} of {size // 4} from {source} to {target}")
    if wrong:
        msg = f"values changed on the way between GPUs: {'; '.join(wrong[:8])}"
        raise CheckFailed(msg)


def copied(torch: Any, values: Any, source: int, target: int) -> tuple[float, int]:
    """Copy once to set up the way, once for the time; return GB/s and how many values changed."""
    place = f"cuda:{target}"
    values.to(place)
    torch.cuda.synchronize(target)
    torch.cuda.synchronize(source)
    begin = time.monotonic()
    there = values.to(place)
    torch.cuda.synchronize(target)
    torch.cuda.synchronize(source)
    seconds = time.monotonic() - begin
    count = len(values)
    expected = torch.arange(count, dtype=torch.int32, device=place) % 251 + source
    return rate(4 * count, seconds), int((there != expected).sum().item())


# --- tools_run: ROCm's own tools as child processes: a time limit, bounded output, and no word of theirs decides ---

TOOL_SECONDS = 60.0
END_SECONDS = 2.0  # for a tool that was killed, or that has closed its output
MOST_OUTPUT = 8 << 20  # bytes; 64 partitions make some megabytes of JSON
MOST_REASON = 400
READ_SIZE = 65536


class ToolRun:
    """What a tool printed, and how it ended: "" is by itself."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self.ended = ""
        self.code: int | None = None
        self.seconds = 0.0
        self._output: dict[str, list[bytes]] = {"out": [], "err": []}

    def add(self, name: str, data: bytes) -> None:
        """Keep a piece of output; too much of it ends the tool."""
        self._output[name].append(data)
        if sum(len(piece) for pieces in self._output.values() for piece in pieces) > MOST_OUTPUT:
            self.ended = f"it printed more than {MOST_OUTPUT >> 20} MiB"

    @property
    def out(self) -> str:
        """Standard output."""
        return b"".join(self._output["out"]).decode(errors="replace")

    @property
    def err(self) -> str:
        """Standard error."""
        return b"".join(self._output["err"]).decode(errors="replace")

    @property
    def reason(self) -> str:
        """Return why it failed, in its own last words where it has any."""
        said = self.err if len(self.out) > MOST_REASON else f"{self.out} {self.err}"
        words = " ".join(plain(said).split())[-MOST_REASON:]
        how = self.ended
        if not how and self.code:
            how = signal_name(-self.code) if self.code < 0 else f"exit code {self.code}"
        return ": ".join(part for part in (how, words) if part) or "it printed nothing"

    def evidence(self) -> dict[str, object]:
        """Return command, end and time."""
        seconds = round(self.seconds, 3)
        return {"command": " ".join(self.command), "exit_code": self.code, "seconds": seconds}


def find_tool(name: str) -> str | None:
    """Return the path of a ROCm tool: on PATH, or where ROCm installs it."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/opt/rocm/bin")


class ToolBudget:
    """The time that all tools have together, so that one that hangs leaves the others theirs."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def seconds(self) -> float:
        """What the next tool may take."""
        return max(1.0, min(TOOL_SECONDS, self._end - time.monotonic()))


def run_tool(command: Sequence[str], seconds: float = TOOL_SECONDS) -> ToolRun:
    """Run a tool to its end, its time limit or its output limit, whatever comes first."""
    run = ToolRun([os.path.basename(command[0]), *command[1:]])  # noqa: PTH119
    begin = time.monotonic()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "200"},
            start_new_session=True,
        )
    except OSError as error:
        run.ended = f"it cannot be started: {error.strerror}"
        return run
    read_output(run, process, seconds)
    # Never waited for without a limit: a tool can be stuck in the driver, where no signal ends it.
    for _ in range(2):
        if run.ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
            break
        run.ended = run.ended or "it closed its output and did not end"
    run.code = process.returncode
    run.seconds = time.monotonic() - begin
    return run


def read_output(run: ToolRun, process: subprocess.Popen[bytes], seconds: float) -> None:
    """Keep what a tool prints until it closes its output or passes a limit."""
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for name, stream in (("out", process.stdout), ("err", process.stderr)):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, name)
        while selector.get_map() and not run.ended:
            left = end - time.monotonic()
            if left <= 0:
                run.ended = f"it did not end within {seconds:.3g} s"
            for key, _ in selector.select(max(0.0, min(left, 0.5))):
                data = os.read(key.fd, READ_SIZE)
                if data:
                    run.add(key.data, data)
                else:
                    selector.unregister(key.fileobj)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def plain(text: str) -> str:
    """Return text without colour codes, and without other control characters but line ends."""
    kept, rest = [], text
    while rest:
        before, escape, rest = rest.partition("\x1b[")
        kept.append(before)
        if escape:
            rest = rest.lstrip("0123456789;")[1:]
    return "".join(c for c in "".join(kept) if c.isprintable() or c in "\n\t")


# --- tools_amdsmi: The python module amdsmi, by which vLLM and parts of SGLang find ROCm and its GPUs ---

# Runs in a process of its own: the module loads a library that can abort, or wait for a GPU.
AMDSMI_PROGRAM = r"""
import importlib.util, json, sys
sys.path[:] = [entry for entry in sys.path if entry]
seen = {"servers": [name for name in ("vllm", "sglang") if importlib.util.find_spec(name)]}
def tell(**more):
    print("\n" + json.dumps({**seen, **more}), flush=True)
    raise SystemExit
def attempt(call, *given):
    try:
        return call(*given)
    except Exception as error:
        seen.setdefault("errors", {})[call.__name__] = " ".join(str(error).split())[:300]
try:
    import amdsmi
except ModuleNotFoundError as error:
    tell(**({"absent": True} if error.name == "amdsmi" else {"error": f"import: {error}"}))
except BaseException as error:
    tell(error=f"import: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
seen.update(path=str(getattr(amdsmi, "__file__", None)), version=str(getattr(amdsmi, "__version__", None)))
try:
    amdsmi.amdsmi_init()
    handles = amdsmi.amdsmi_get_processor_handles()
except BaseException as error:
    tell(error=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
tell(devices=[{
    "pci_address": attempt(amdsmi.amdsmi_get_gpu_device_bdf, handle),
    "uuid": attempt(amdsmi.amdsmi_get_gpu_device_uuid, handle),
} for handle in handles])
"""
SOURCES = (
    "vllm-project/vllm vllm/platforms/__init__.py (rocm_platform_plugin) and platforms/rocm.py",
    "sgl-project/sglang multimodal_gen/runtime/platforms/__init__.py (rocm_platform_plugin)",
)
NOT_FOUND = (
    "vLLM takes a machine for ROCm only when amdsmi initialises and lists a GPU: it will find no "
    "device here",
    "SGLang's language models decide by torch.version.hip, not by this; its multimodal runtime asks "
    "amdsmi as vLLM does and will find no device",
)
FOUND = (
    "vLLM will choose ROCm: amdsmi initialises and lists a GPU",
    "SGLang's multimodal runtime will choose ROCm as vLLM does; its language models decide by "
    "torch.version.hip",
)
OTHER_ORDER = (
    "vLLM takes the n-th GPU of HIP for the n-th of amdsmi: names, uuids and the xGMI test for its "
    "custom all-reduce can be those of another GPU"
)


def check_amdsmi(check: Check, planned: list[dict[str, Any]], budget: ToolBudget) -> None:
    """Initialise amdsmi as the workload's user and compare its list with the plan's GPUs, HIP's order."""
    python = [sys.executable, *(["-s"] if sys.flags.no_user_site else [])]
    run = run_tool([*python, "-c", AMDSMI_PROGRAM], budget.seconds)
    seen = last_object(run.out)
    check.evidence.update(seconds=round(run.seconds, 3), sources=list(SOURCES))
    if seen is None:
        check.evidence.update(vllm=NOT_FOUND[0], sglang=NOT_FOUND[1])
        check.degrade(f"amdsmi ended its process: {run.reason}. {NOT_FOUND[0]}")
        return
    check.evidence.update(seen)
    judge_amdsmi(check, seen, planned)


def judge_amdsmi(check: Check, seen: dict[str, Any], planned: list[dict[str, Any]]) -> None:
    """Say what the servers will do with what amdsmi says here."""
    devices = seen.get("devices") or []
    words = FOUND if devices else NOT_FOUND
    check.evidence.update(vllm=words[0], sglang=words[1])
    if seen.get("absent"):
        if not seen.get("servers"):
            check.skip(f"this image's python has no module amdsmi. {words[0]}")
            return
        check.degrade(f"{' and '.join(seen['servers'])} is here and amdsmi is not. {words[0]}")
    elif seen.get("error"):
        check.degrade(f"amdsmi does not work: {seen['error']}. {words[0]}")
    elif not devices:
        check.degrade(f"amdsmi initialises and lists no GPU. {words[0]}")
    else:
        judge_order(check, [device["pci_address"] for device in devices], planned)


def judge_order(check: Check, addresses: list[Any], planned: list[dict[str, Any]]) -> None:
    """Compare amdsmi's list, by PCI address, with the GPUs that were passed, in HIP's order."""
    # The function tells partitions apart, and each tool counts them in its own way.
    listed = [str(address).lower().rpartition(".")[0] for address in addresses]
    named = [str(gpu.get("pci_address") or "").lower() for gpu in planned]
    wanted = [address.rpartition(".")[0] for address in named if address]
    check.evidence.update(listed=len(listed), planned=len(planned) or None)
    if not wanted:
        return
    missing = [address for address in wanted if address not in listed]
    if missing:
        check.degrade(f"amdsmi does not list {', '.join(missing)}. {OTHER_ORDER}")
    elif listed != wanted:
        places = {address: listed.index(address) for address in dict.fromkeys(wanted)}
        check.evidence["amdsmi_index_of_hip_index"] = [places[address] for address in wanted]
        more = len(listed) - len(wanted)
        what = (
            f"amdsmi lists {more} GPUs that were not passed"
            if more > 0
            else "amdsmi's order is not HIP's"
        )
        pairs = ", ".join(
            f"HIP {hip} is amdsmi {places[address]}" for hip, address in enumerate(wanted[:8])
        )
        check.degrade(f"{what} ({pairs}): {OTHER_ORDER}")


def last_object(text: str) -> dict[str, Any] | None:
    """Return the last line that is a JSON object: libraries print before it."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            return value if isinstance(value, dict) else None
    return None


# --- tools_links: xGMI: the links that the host has between the plan's GPUs, against those seen from inside ---

KEPT_LINKS = 128  # in the evidence: 64 partitions have 4000


def check_xgmi(
    check: Check,
    planned: list[dict[str, Any]],
    gpus: list[dict[str, Any]],
    root: str = KFD_NODES,
) -> None:
    """Find every planned link in KFD's topology, and compare what amd-smi says of width and speed."""
    wanted = {gpu["index"]: gpu.get("xgmi_peers") for gpu in planned}
    if not any(wanted.values()):
        unknown = all(peers is None for peers in wanted.values())
        check.skip(
            "the plan does not know of xGMI between its GPUs"
            if unknown
            else "the host has no xGMI between the plan's GPUs"
        )
        return
    nodes = [node for node in topology_nodes(root) if node.is_gpu]
    found = {gpu["index"]: node_of(gpu, nodes) for gpu in planned}
    names = {gpu["index"]: gpu.get("pci_address") or f"GPU {gpu['index']}" for gpu in planned}
    problems, links = compared_links(wanted, found, names)
    check.evidence.update(links=links[:KEPT_LINKS], link_count=len(links))
    problems += uneven_links(links) + smi_problems(check, planned, gpus)
    if problems:
        check.degrade("; ".join(problems))


def node_of(gpu: dict[str, Any], nodes: list[TopologyNode]) -> TopologyNode | None:
    """Return the topology's node of a planned GPU."""
    return next((node for node in nodes if node.is_planned(gpu)), None)


def compared_links(
    wanted: dict[int, Any], found: dict[int, TopologyNode | None], names: dict[int, str]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the links that are missing, in words, and those that are there, with their figures."""
    problems: list[str] = []
    links: list[dict[str, Any]] = []
    for index, peers in wanted.items():
        node = found[index]
        if node is None:
            problems.append(f"{names[index]} is not in KFD's topology here")
            continue
        seen = {link.get("node_to"): link for link in node.links if link.get("type") == XGMI_LINK}
        for peer in peers or []:
            other = found.get(peer)
            link = None if other is None else seen.get(other.number)
            if link is None:
                problems.append(f"{names[index]} has no xGMI link to {names.get(peer, peer)} here")
                continue
            links.append(
                {
                    "from": names[index],
                    "to": names[peer],
                    "weight": link.get("weight"),
                    # MB/s in the kernel's words: of one link, and of all links between the two.
                    "min_bandwidth": link.get("min_bandwidth"),
                    "max_bandwidth": link.get("max_bandwidth"),
                }
            )
    return problems, links


def uneven_links(links: list[dict[str, Any]]) -> list[str]:
    """Return the pairs whose two directions differ: one of the links between them is down."""
    widths = {(link["from"], link["to"]): link["max_bandwidth"] for link in links}
    return [
        f"xGMI from {a} to {b} has {width} MB/s, back {widths[b, a]} MB/s"
        for (a, b), width in widths.items()
        if a < b and width is not None and widths.get((b, a)) not in (None, width)
    ]


def smi_problems(
    check: Check, planned: list[dict[str, Any]], gpus: list[dict[str, Any]]
) -> list[str]:
    """Return what amd-smi says against the links: one that is not enabled, a GPU slower than the rest."""
    ours = {str(gpu.get("pci_address")).lower() for gpu in planned}
    known = [gpu for gpu in gpus if gpu["pci_address"] in ours]
    problems = [
        f"amd-smi says that the xGMI link of {gpu['pci_address']} to {link.get('bdf')} is {status}"
        for gpu in known
        for link in gpu["links"]
        if link.get("link_type") == "XGMI"
        and str(link.get("bdf")).lower() in ours
        and (status := str(link.get("link_status", "ENABLED"))) not in ("ENABLED", "N/A")
    ]
    for what, unit in (("xgmi_bit_rate", "Gb/s a lane"), ("xgmi_bandwidth", "Gb/s a link")):
        values = {gpu["pci_address"]: gpu[what] for gpu in known if gpu[what] is not None}
        check.evidence[what] = values
        best = max(values.values(), default=0)
        problems += [
            f"xGMI of {address} runs at {value:g} {unit}, of others at {best:g}"
            for address, value in values.items()
            if value < best
        ]
    return problems


# --- tools_ras: Errors that the GPUs' own memory and links have counted ---

PCI_DEVICES = "/sys/bus/pci/devices"
# "ue: 1" and "ce: 0", as the kernel's amdgpu_ras.c prints a block's counters.
COUNTER = re.compile(r"^\s*(ue|ce|de)\s*:\s*(\d+)\s*$", re.MULTILINE)
COUNTER_WORDS = {"ue": "uncorrectable", "ce": "correctable", "de": "deferred"}
# What counters of a card read that is asleep under runtime power management.
ASLEEP = 1048560


def check_ras(
    check: Check,
    planned: list[dict[str, Any]],
    gpus: list[dict[str, Any]],
    root: str = PCI_DEVICES,
) -> None:
    """Degrade for uncorrectable errors: the GPU may compute right now, and has lost data since the driver started."""
    counts: dict[str, dict[str, int]] = {}
    for address in addresses_of(planned, gpus):
        counts[address] = counters_in_sysfs(Path(root) / address / "ras")
    for gpu in gpus:
        counted = counts.get(gpu["pci_address"] or "")
        if counted is None:
            continue
        for word in COUNTER_WORDS.values():
            value = gpu.get(f"{word}_errors")
            if isinstance(value, int) and value != ASLEEP:
                counted[f"amd-smi {word}"] = value
    check.evidence["counts"] = counts
    if not any(counts.values()):
        check.skip("neither the driver nor amd-smi shows error counters here")
        return
    bad = [
        f"{address}: {', '.join(f'{value} in {name}' for name, value in sorted(wrong.items()))}"
        for address, counted in counts.items()
        if (wrong := {name: value for name, value in counted.items() if value and is_loss(name)})
    ]
    if bad:
        check.degrade(f"uncorrectable memory errors since the driver was loaded, {'; '.join(bad)}")


def addresses_of(planned: list[dict[str, Any]], gpus: list[dict[str, Any]]) -> list[str]:
    """Return the PCI addresses to look at: the plan's, or without a plan whatever amd-smi lists."""
    named = [gpu.get("pci_address") for gpu in planned or gpus]
    return list(dict.fromkeys(str(address).lower() for address in named if address))


def is_loss(name: str) -> bool:
    """Whether a counter counts data that was lost: corrected errors are what ECC is for."""
    return name.endswith(" uncorrectable")


def counters_in_sysfs(folder: Path) -> dict[str, int]:
    """Return the driver's counters by block, {"umc uncorrectable": 0}; none where there are none."""
    found = {}
    for path in sorted(folder.glob("*_err_count")):
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        block = path.name[: -len("_err_count")]
        for kind, value in COUNTER.findall(text):
            if int(value) != ASLEEP:
                found[f"{block} {COUNTER_WORDS[kind]}"] = int(value)
    return found


# --- tools_rocminfo: What rocminfo prints, as agents ---

# A field of an agent is indented by two blanks, one of a pool or an instruction set by more.
AGENT_FIELD = re.compile(r"^  (\S[^:]*):\s*(.*?)\s*$")
DEEPER_FIELD = re.compile(r"^\s{3,}(\S[^:]*):\s*(.*?)\s*$")
CARET_COLOUR = re.compile(r"\^\[\[[0-9;]*m")
UUID = re.compile(r"^GPU-([0-9a-fA-F]{16})$")


def parse_rocminfo(text: str) -> list[dict[str, Any]]:
    """Return the agents that rocminfo lists, processors included, in its order.

    The layout changes from version to version and is often cut when it is passed on: an agent
    begins with its name, whatever header stands before it.
    """
    agents: list[dict[str, Any]] = []
    for line in CARET_COLOUR.sub("", plain(text)).splitlines():
        field = AGENT_FIELD.match(line)
        if field and field[1] == "Name":
            agents.append({"name": field[2], "isas": [], "pools": []})
        elif field and agents:
            agents[-1].setdefault(field[1], field[2])
        elif agents and (deeper := DEEPER_FIELD.match(line)):
            if deeper[1] == "Name" and deeper[2].startswith("amdgcn-"):
                agents[-1]["isas"].append(deeper[2])
            elif deeper[1] in ("Segment", "Size"):
                agents[-1]["pools"].append((deeper[1], deeper[2]))
    return [agent_of(fields) for fields in agents if "Device Type" in fields]


def agent_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return one agent under the names that the rest of the probe uses; what was not printed is None."""
    agent = {
        "device_type": fields["Device Type"],
        "name": fields["name"],
        "node": leading_number(fields.get("Node")),
    }
    if agent["device_type"] != "GPU":
        return agent
    uuid = UUID.match(fields.get("Uuid", ""))
    chip = leading_number(fields.get("Chip ID"))
    place = leading_number(fields.get("BDFID"))
    return {
        **agent,
        "marketing_name": fields.get("Marketing Name") or None,
        "uuid": uuid[1].lower() if uuid else None,
        "chip_id": None if chip is None else f"0x{chip:04x}",
        "bdf_no_domain": None
        if place is None
        else f"{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7:x}",
        "compute_units": leading_number(fields.get("Compute Unit")),
        "first_global_pool_bytes": first_global_pool(fields["pools"]),
        "isas": fields["isas"],
    }


def first_global_pool(pools: list[tuple[str, str]]) -> int | None:
    """Return the size of the first global pool in bytes: device memory, on an APU a carve-out."""
    seen_global = False
    for key, value in pools:
        if key == "Segment":
            seen_global = value.startswith("GLOBAL")
        elif seen_global:
            size = leading_number(value)
            return None if size is None else size << 10
    return None


def leading_number(text: str | None) -> int | None:
    """Return the decimal number that a value begins with: 29631 of "29631(0x73bf)"."""
    match = re.match(r"\d+", text or "")
    return int(match[0]) if match else None


# --- tools_smi: The JSON of rocm-smi and amd-smi, across the shapes that it has had ---

# Words of absence. rocm-smi and amd-smi write all of them.
NOTHING = ("", "n/a", "none", "unknown", "n/a (secondary die)")
# What a value is called here: the names that versions of rocm-smi have given it, in lower case.
ROCM_SMI_NAMES = {
    "unique_id": ("unique id",),
    "serial": ("serial number",),
    "vbios": ("vbios version",),
    "device_id": ("device id", "gpu id"),
    "pci_address": ("pci bus",),
    "gfx": ("gfx version",),
    "vram_bytes": ("vram total memory (b)",),
    "power_cap_watts": ("max graphics package power (w)",),
    "compute_partition": ("compute partition",),
    "memory_partition": ("memory partition",),
    "pcie_replays": ("pcie replay count",),
}
FIRMWARE_SUFFIX = " firmware version"
DECIMAL_STEP = re.compile(r"^gfx90(1\d)$")  # older versions print gfx9010 for gfx90a
# Where versions of amd-smi keep a value, the newest first.
AMD_SMI_PATHS = {
    "pci_address": (("bdf",), ("bus", "bdf")),
    "uuid": (("uuid",),),
    "name": (("asic", "market_name"),),
    "device_id": (("asic", "device_id"),),
    "gfx": (("asic", "target_graphics_version"),),
    "compute_units": (("asic", "num_compute_units"),),
    "unique_id": (("asic", "asic_serial"),),
    "serial": (("board", "product_serial"),),
    "vbios": (("ifwi", "version"), ("vbios", "version"), ("ifwi", "name"), ("vbios", "name")),
    "driver": (("driver", "version"), ("driver", "driver_version")),
    "power_cap_watts": (
        ("limit", "ppt0", "socket_power_limit"),
        ("limit", "socket_power"),
        ("limit", "max_power"),
    ),
    "compute_partition": (
        ("partition", "accelerator_partition"),
        ("partition", "compute_partition"),
    ),
    "memory_partition": (("partition", "memory_partition"),),
    "partition": (("partition", "partition_id"), ("partition_id",)),
    "uncorrectable_errors": (("ecc", "total_uncorrectable_count"), ("ecc", "uncorrectable_count")),
    "correctable_errors": (("ecc", "total_correctable_count"), ("ecc", "correctable_count")),
    "deferred_errors": (("ecc", "total_deferred_count"),),
    "xgmi_bit_rate": (("link_metrics", "bit_rate"),),
    "xgmi_bandwidth": (("link_metrics", "max_bandwidth"),),
}
NUMBERS = ("vram_bytes", "power_cap_watts", "pcie_replays", "compute_units", "partition")


def json_documents(text: str) -> Iterator[Any]:
    """Yield every JSON document in *text*: tools print warnings before, legends after, several at once."""
    decoder = json.JSONDecoder()
    place = 0
    while (start := re.search(r"[\[{]", text[place:])) is not None:
        place += start.start()
        try:
            value, place = decoder.raw_decode(text, place)
        except ValueError:
            # Words in brackets stand before the data; a document that is cut off or misprinted has
            # whole ones inside, which would be taken for it.
            following = text.find("\n", place)
            if following < 0 or text[place + 1 :].lstrip()[:1] in ('"', "{", "["):
                return
            place = following + 1
            continue
        yield value


def present(value: Any) -> Any:
    """Return a value, or None for every word of absence; a number with a unit is the number."""
    if isinstance(value, dict) and "value" in value:
        return present(value["value"])
    if isinstance(value, str):
        text = value.strip()
        return None if text.lower() in NOTHING else text
    return value


def quantity(value: Any) -> float | int | None:
    """Return a value as a number: 500 of "500 MHz"; None where it is none."""
    value = present(value)
    if isinstance(value, str):
        match = re.match(r"[-+]?\d+(\.\d+)?", value)
        value = float(match[0]) if match else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value == int(value) else value


def hex_digits(value: Any) -> str | None:
    """Return a unique id as 16 hex digits: tools lose leading zeros; 0 is none."""
    text = str(present(value) or "").lower()
    text = text.removeprefix("0x")
    if not re.fullmatch(r"[0-9a-f]{1,16}", text) or not int(text, 16):
        return None
    return text.rjust(16, "0")


def parse_rocm_smi(text: str) -> dict[str, dict[str, Any]]:
    """Return rocm-smi's cards, "card0" and so on; none where it printed no JSON."""
    cards: dict[str, dict[str, Any]] = {}
    for document in json_documents(text):
        if not isinstance(document, dict):
            continue
        for name, fields in document.items():
            if re.fullmatch(r"card\d+", name) and isinstance(fields, dict):
                cards.setdefault(name, {}).update(fields)
    return {name: rocm_smi_card(fields) for name, fields in cards.items()}


def rocm_smi_card(fields: dict[str, Any]) -> dict[str, Any]:
    """Return one card under our names; what is not there is None."""
    lower = {key.strip().rstrip(":").lower(): value for key, value in fields.items()}
    card: dict[str, Any] = {}
    for name, known in ROCM_SMI_NAMES.items():
        found = [present(lower[key]) for key in known if key in lower]
        card[name] = next((value for value in found if value is not None), None)
        if name in NUMBERS:
            card[name] = quantity(card[name])
    card["unique_id"] = hex_digits(card["unique_id"])
    card["pci_address"] = card["pci_address"] and str(card["pci_address"]).lower()
    card["serial"] = None if card["serial"] == "0" else card["serial"]
    step = DECIMAL_STEP.match(str(card["gfx"]))
    if step:
        card["gfx"] = f"gfx90{int(step[1]):x}"
    card["firmware"] = {
        key[: -len(FIRMWARE_SUFFIX)]: value
        for key, value in lower.items()
        if key.endswith(FIRMWARE_SUFFIX) and present(value) is not None
    }
    return card


def amd_smi_rows(text: str) -> list[dict[str, Any]]:
    """Return the objects about a GPU, wherever a version of amd-smi puts them."""
    rows: list[dict[str, Any]] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict) and "gpu" in value:
            rows.append(value)
        elif isinstance(value, dict):
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    for document in json_documents(text):
        collect(document)
    return rows


def merged_rows(outputs: list[str]) -> dict[int, dict[str, Any]]:
    """Join what several commands of amd-smi said, by its own number of the GPU."""
    merged: dict[int, dict[str, Any]] = {}
    for text in outputs:
        for row in amd_smi_rows(text):
            if isinstance(row["gpu"], int):
                merged.setdefault(row["gpu"], {}).update(row)
    return merged


def amd_smi_gpu(row: dict[str, Any]) -> dict[str, Any]:
    """Return one GPU under our names; what is not there is None."""
    gpu: dict[str, Any] = {}
    for name, paths in AMD_SMI_PATHS.items():
        found = (present(at_path(row, path)) for path in paths)
        gpu[name] = next((value for value in found if value is not None), None)
        if name in NUMBERS or name.endswith("_errors") or name.startswith("xgmi_"):
            gpu[name] = quantity(gpu[name])
    gpu["unique_id"] = hex_digits(gpu["unique_id"])
    gpu["pci_address"] = gpu["pci_address"] and str(gpu["pci_address"]).lower()
    gpu["firmware"] = {
        str(entry.get("fw_id") or entry.get("fw_name")): present(entry.get("fw_version"))
        for entry in row.get("fw_list") or []
        if isinstance(entry, dict)
    }
    gpu["serial"] = None if gpu["serial"] == "0" else gpu["serial"]
    gpu["links"] = [link for link in row.get("links") or [] if isinstance(link, dict)]
    return gpu


def at_path(row: Any, path: tuple[str, ...]) -> Any:
    """Return the value under nested keys, None where one is missing."""
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row


# --- tools: ROCm's own tools: what they say is recorded, and whether a GPU computes is never theirs to decide ---

HARMLESS = "it is no proof that compute fails"
# The first is asked alone: where it fails, the others say the same again, a second each.
AMD_SMI_COMMANDS = (
    ("static", "--json"),
    ("list", "--json"),
    ("firmware", "--json"),
    ("metric", "--json"),
    ("topology", "--json"),
    ("xgmi", "--json"),
)
KEPT_TEXT = 2000
SPARE_SECONDS = 20.0  # of the stage, for what is no tool


def stage_tools(job: dict[str, Any], reporter: Reporter, _state: dict[str, Any]) -> None:
    """Ask rocminfo, rocm-smi, amd-smi and amdsmi, each in a process of its own."""
    planned = list(job["expect"].get("gpus") or [])
    budget = ToolBudget(job["timeout"] - SPARE_SECONDS)
    with reporter.check("tools", "rocminfo") as check:
        check_rocminfo(check, planned, budget)
    with reporter.check("tools", "rocm_smi") as check:
        check_rocm_smi(check, planned, budget)
    gpus: list[dict[str, Any]] = []
    with reporter.check("tools", "amd_smi") as check:
        gpus = check_amd_smi(check, planned, budget)
    with reporter.check("tools", "ras") as check:
        check_ras(check, planned, gpus)
    with reporter.check("tools", "amdsmi") as check:
        check_amdsmi(check, planned, budget)
    with reporter.check("tools", "xgmi") as check:
        check_xgmi(check, planned, gpus)


def check_rocminfo(check: Check, planned: list[dict[str, Any]], budget: ToolBudget) -> None:
    """Compare the agents with the plan's GPUs: rocminfo opens what HIP opens."""
    path = find_tool("rocminfo")
    if path is None:
        check.skip("this image has no rocminfo")
        return
    run = run_tool([path], budget.seconds)
    agents = parse_rocminfo(run.out)
    gpus = [agent for agent in agents if agent["device_type"] == "GPU"]
    check.evidence.update(run.evidence(), agents=len(agents), gpus=gpus)
    # "ROCk module is loaded" is no success: refused nodes and HSA's own failure follow it.
    if run.ended or not gpus:
        check.evidence["output"] = run.out[:KEPT_TEXT]
        check.degrade(f"rocminfo shows no GPU: {run.reason}; {HARMLESS}")
        return
    problems = []
    if planned and len(gpus) != len(planned):
        problems.append(f"rocminfo shows {len(gpus)} GPUs, the plan passes {len(planned)}")
    for gpu, wanted in zip(gpus, planned):
        if wanted.get("gfx") and gpu["name"] != wanted["gfx"]:
            problems.append(
                f"rocminfo says {gpu['name']} where the kernel says {wanted['gfx']} "
                "(HSA_OVERRIDE_GFX_VERSION makes it do so)"
            )
    if problems:
        check.degrade("; ".join(problems))


def check_rocm_smi(check: Check, planned: list[dict[str, Any]], budget: ToolBudget) -> None:
    """Record what rocm-smi tells of each card; it reads sysfs and may list GPUs that are not passed."""
    path = find_tool("rocm-smi")
    if path is None:
        check.skip("this image has no rocm-smi")
        return
    run = run_tool([path, "-a", "--json"], budget.seconds)
    cards = parse_rocm_smi(run.out)
    check.evidence.update(run.evidence(), cards=cards, planned=len(planned) or None)
    if run.ended or not cards:
        check.evidence["output"] = run.out[:KEPT_TEXT]
        check.degrade(f"rocm-smi shows no GPU: {run.reason}; {HARMLESS}")
    elif len(cards) < len(planned):
        check.degrade(
            f"rocm-smi shows {len(cards)} GPUs, the plan passes {len(planned)}; {HARMLESS}"
        )


def check_amd_smi(
    check: Check, planned: list[dict[str, Any]], budget: ToolBudget
) -> list[dict[str, Any]]:
    """Record what amd-smi tells of each GPU and return it, in its order."""
    path = find_tool("amd-smi")
    if path is None:
        check.skip("this image has no amd-smi")
        return []
    outputs: list[str] = []
    failed: dict[str, str] = {}
    for command in AMD_SMI_COMMANDS:
        run = run_tool([path, *command], budget.seconds)
        if run.ended or run.code or not merged_rows([run.out]):
            failed[command[0]] = run.reason
            check.evidence.setdefault("output", run.out[:KEPT_TEXT])
            if run.ended or not outputs:
                break
        outputs.append(run.out)
    rows = merged_rows(outputs)
    gpus = [amd_smi_gpu(rows[number]) for number in sorted(rows)]
    check.evidence.update(not_answered=failed, planned=len(planned) or None)
    # 64 partitions have 4000 links: their kinds are counted, and those of the plan judged by `xgmi`.
    check.evidence["gpus"] = [
        {**gpu, "links": dict(Counter(str(link.get("link_type")) for link in gpu["links"]))}
        for gpu in gpus
    ]
    if not gpus:
        # Its command line looks for the names of groups, not for access (ROCm/amdsmi issue 125).
        reason = next(iter(failed.values()), "it listed none")
        check.degrade(f"amd-smi shows no GPU: {reason}; {HARMLESS}")
    elif len(gpus) < len(planned):
        check.degrade(f"amd-smi shows {len(gpus)} GPUs, the plan passes {len(planned)}; {HARMLESS}")
    return gpus


# --- child: What a child does: the jobs that come down its pipe ---

def child_main(jobs: int, results: int) -> int:
    """Do the jobs that come down the pipe, one a line, until it is closed."""
    # Python puts the directory of its script first; for a memfd that is "/", where a directory
    # named like a module may lie.
    sys.path[:] = [entry for entry in sys.path if entry not in ("/", "/proc/self/fd")]
    faulthandler.enable()
    reporter = Reporter(results)
    state: dict[str, Any] = {}
    stages: dict[str, Callable[..., None]] = {
        "environment": stage_environment,
        "isolation": stage_isolation,
        "tools": stage_tools,
        "import": stage_import,
        "build": stage_build,
        "device": stage_device,
        "hip_runtime": stage_hip_runtime,
        "hip": stage_hip,
        "collectives": stage_collectives,
        "peer_copies": stage_peer_copies,
        "operators_installed": stage_operators_installed,
        "operator": stage_operator,
        "model": stage_model,
        "own": stage_own,
    }
    with os.fdopen(jobs, "rb") as lines:
        for line in lines:
            job = json.loads(line)
            # Says where it hangs, from a thread that needs no interpreter lock, and ends a child
            # whose controller is gone.
            faulthandler.dump_traceback_later(job["timeout"], exit=True)
            stages[job["stage"]](job, reporter, state)
            faulthandler.cancel_dump_traceback_later()
            reporter.send(done=job["stage"])
    return 0


# --- hip_layer: HIP without torch: one process that counts the GPUs, then one for each of them that sees it alone ---

HIP_PASSED, HIP_FAILED, HIP_ABSENT = "passed", "failed", "absent"
TORCH_IS_BROKEN = (
    "HIP works without torch on every GPU: what is broken is torch, or what torch brings along"
)
ONLY_UNDER_TORCH = (
    "HIP's own, smaller checks pass on every GPU: what is wrong shows only under torch"
)
HIP_IS_BROKEN = "HIP itself fails, without torch as well"
ONLY_HIP_FAILS = "torch works on every GPU: HIP fails only without it"


class HipLayer:
    """Runs HIP's stages with what the controller lends."""

    def __init__(
        self,
        planned: list[dict[str, Any]] | None,
        *,
        child: Callable[[str, dict[str, str]], Any],
        close: Callable[[Any], None],
        do: Callable[..., bool],
        skip: Callable[..., None],
        counts: dict[str, int],
    ) -> None:
        self._planned = planned
        self._child, self._close, self._do, self._skip = child, close, do, skip
        self._counts = counts  # how many devices each stage saw
        self.passed: dict[int, bool] = {}  # each GPU, and whether it passed on its own

    def run(self, *, sole: bool) -> str:
        """Return whether HIP passed, failed, or is absent; *sole* when nothing else computes."""
        child = self._child("hip", dict(os.environ))
        count = len(self._planned) if self._planned else None
        passed = self._do(child, "hip_runtime", gpus=count, sole=sole)
        self._close(child)
        found = self._counts.get("hip_runtime")
        if not found:
            for index in range(count or 0) if not passed else ():
                self._skip("hip", "identity", "HIP finds no device here", index)
                self.passed[index] = False
            return HIP_ABSENT if passed else HIP_FAILED
        self._devices(count or found, sole=sole)
        return HIP_PASSED if passed and all(self.passed.values()) else HIP_FAILED

    def _devices(self, count: int, *, sole: bool) -> None:
        """Exercise every GPU, as many at a time as fit into memory."""
        wave = wave_size(count)

        def exercise(index: int) -> None:
            child = self._child(f"hip {index}", device_environment("rocm", index, wave))
            fields = {"index": index, "planned": self._planned, "sole": sole}
            self.passed[index] = self._do(child, "hip", index, **fields)
            self._close(child)

        with ThreadPoolExecutor(wave) as pool:
            list(pool.map(exercise, range(count)))  # the list raises what a thread raised


def which_is_broken(*, works: bool, reached: bool, hip: str | None) -> str:
    """Return what torch and HIP together say; "" where all is well, or HIP could not be asked.

    Args:
        works: Whether torch passed on every GPU.
        reached: Whether it got as far as exercising one: a GPU that then computes wrong accuses
            itself as much as torch, since what HIP computes here is small.
        hip: How HIP fared; None when it was not asked.
    """
    if works:
        return ONLY_HIP_FAILS if hip == HIP_FAILED else ""
    passed = ONLY_UNDER_TORCH if reached else TORCH_IS_BROKEN
    return {HIP_PASSED: passed, HIP_FAILED: HIP_IS_BROKEN}.get(hip or "", "")


# --- own_stage: The checks of a profile's own, each in a process of its own after everything else has let go of the GPUs ---

NO_TIME = "no time was left for it: the whole probe has timeout_seconds"
REPORT_SECONDS = 5.0  # what a check's child may take to say how the check ended


def run_own_checks(
    settings: dict[str, Any],
    events: Events,
    spawn: Callable[[str, dict[str, str]], Child],
    close: Callable[[Child], None],
    devices: dict[Any, bool],
    end: float,
) -> None:
    """Run every check, one after the other, once or once a device.

    *devices* says which are here and whether each passed on its own: with one that failed, a check
    of all of them would only say the same again. *end* is when the probe must be over.
    """
    failed = [str(device) for device, passed in devices.items() if not passed]
    for own in settings["checks"]:
        targets = list(devices) if own["device"] == "each" else [None]
        if not devices:
            skip(events, own, None, "no device was found")
            continue
        for device in targets:
            bad = failed if device is None else [] if devices[device] else [str(device)]
            left = end - time.monotonic() - REPORT_SECONDS
            if bad:
                skip(events, own, device, f"device {', '.join(bad)} failed on its own")
            elif left <= 0:
                # Not skipped: work must not start because the check that it waits for came too late.
                events.fail("own", own["name"], NO_TIME, device=device)
            else:
                environment = dict(os.environ)
                if isinstance(device, int):
                    environment = device_environment(settings["accelerator"], device, 1)
                child = spawn(f"check {own['name']}", environment)
                run_own_check(child, events, own, device, min(own["timeout"], left))
                close(child)


def run_own_check(
    child: Child, events: Events, own: dict[str, Any], device: Any, seconds: float
) -> None:
    """Run one check in *child* and report it."""
    child.on_doing = lambda group, name: events.doing(group, name, device)
    job = {"stage": "own", "own": own, "seconds": seconds}
    outcome = child.run(
        job, seconds + REPORT_SECONDS, lambda check: events.check({**check, "device": device})
    )
    if outcome.ended != "done" and not outcome.checks:
        reason, evidence = outcome.reason, outcome.evidence
        events.fail("own", own["name"], reason, device=device, evidence=evidence)


def skip(events: Events, own: dict[str, Any], device: Any, reason: str) -> None:
    """Report a check that was not tried."""
    events.check(made_check("own", own["name"], "skipped", reason=reason, device=device))


# --- siblings: Devices of one model, compared with each other ---

SIBLING_SHARE = 0.8
SIBLING_SOURCE = (
    "share of the median of the other devices of its model: good ones of one machine differ by "
    "5 % and more, a fifth leaves room for a busy host"
)


SAME_SIZE = 0.1


class Siblings:
    """The speeds of all devices; they are compared when every device has finished."""

    def __init__(self) -> None:
        self._models: dict[Any, tuple[str, int]] = {}  # name, and memory: partitions have less
        self._speeds: dict[str, dict[Any, float]] = {}  # by what was measured, then by device
        self._long_enough: set[tuple[str, Any]] = set()  # runs that are no noise of the host

    def note(self, check: dict[str, Any], device: Any) -> None:
        """Keep what a device's check says of its model and its speed."""
        evidence = check["evidence"]
        if check["name"] == "identity" and evidence.get("name"):
            self._models[device] = (evidence["name"], evidence.get("total_memory_bytes") or 0)
        if "figure" in evidence:
            self._speeds.setdefault(check["name"], {})[device] = evidence[evidence["figure"]]
            if evidence["long_enough"]:
                self._long_enough.add((check["name"], device))

    def judged(self) -> list[dict[str, Any]]:
        """Return one check for each device that has siblings: degraded where it is much slower."""
        found = []
        for device in sorted(self._models):
            shares = {}
            for name, speeds in sorted(self._speeds.items()):
                others = [speed for other, speed in speeds.items() if self._alike(device, other)]
                if (name, device) in self._long_enough and others and median(others) > 0:
                    shares[name] = round(speeds[device] / median(others), 3)
            if shares:
                found.append(self._check(device, shares))
        return found

    def _alike(self, device: Any, other: Any) -> bool:
        """Whether two devices are of one model and size; how much memory is set aside differs a little."""
        if other == device or other not in self._models:
            return False
        (name, memory), (other_name, other_memory) = self._models[device], self._models[other]
        return name == other_name and abs(memory - other_memory) <= SAME_SIZE * memory

    def _check(self, device: Any, shares: dict[str, float]) -> dict[str, Any]:
        slow = [f"{name} {share:.3g}x" for name, share in shares.items() if share < SIBLING_SHARE]
        check = made_check(
            "device",
            "siblings",
            "degraded" if slow else "pass",
            reason=f"slower than its siblings: {', '.join(slow)}" if slow else "",
            device=device,
            evidence={"share_of_others_median": shares},
        )
        check.update(threshold=SIBLING_SHARE, threshold_source=SIBLING_SOURCE)
        return check


# --- together: All devices together, seen from the controller: start the ranks, free those that wait, find who is to blame ---

# Whose fault it is when ranks end differently: first who died, then who found something wrong, then
# who never came back. Those that were stopped only waited.
BLAME = {"died": 0, "done": 1, "timeout": 2, "stopped": 3}
LINES_OF_ALL_RANKS = 400  # what is kept of their last lines together: one report line holds them
MIB = 1 << 20
# Lowest bus bandwidth of a large all_reduce over eight GPUs, in GB/s. The source gives it for the mean
# over 1 KiB to 2 GiB, which lies far below what 256 MiB reach: a recorded run of rccl-tests on eight
# MI300X has 305 GB/s there, and 110 as its mean over all sizes. Other boards have no such figure.
EXPECTED_BUS_BANDWIDTH = {"MI300X": 200.0, "MI210": 50.0, "MI100": 35.0}
EXPECTED_FOR_GPUS = 8
EXPECTED_FOR_BYTES = 256 * MIB
EXPECTED_BUS_BANDWIDTH_SOURCE = (
    "ROCm/gpu-operator, example/gpu-validation-cluster/README.md: lowest mean of all_reduce_perf "
    "over 1K-2G on 8 GPUs, held against one size of at least 256 MiB"
)


def run_together(
    children: list[Child], job: dict[str, Any], timeout: float, backend: str, boards: list[str]
) -> list[dict[str, Any]]:
    """Let all ranks run the level's collectives; return a check for each of them.

    Args:
        children: One process a device, torch imported.
        job: What every job says: accelerator, level, expect; and the most bytes to send, or None.
        timeout: Seconds for all of it.
        backend: "nccl" or "gloo".
        boards: The devices' names, where they are known.
    """
    world = len(children)
    names = collective_names(job["level"])
    elements = message_elements(job["accelerator"], job["level"], world, job["message_bytes"])
    shared = {
        **job,
        "stage": "collectives",
        "names": names,
        "world": world,
        "port": free_port(),
        "backend": backend,
        "elements": elements,
    }
    logs = [TransportLog() for _ in children]
    outcomes = run_ranks(children, shared, timeout, logs)
    judge = Judge(outcomes, logs, backend)
    checks = [judge.collective(name) for name in names]
    judge_bus_bandwidth(checks[0], job, boards)
    if judge.broken == "" and any(outcome.ended != "done" for outcome in outcomes):
        checks.append(judge.teardown())
    if backend == "nccl":
        checks.append(transport_check(logs))
    return checks


def run_ranks(
    children: list[Child], job: dict[str, Any], timeout: float, logs: list[TransportLog]
) -> list[Outcome]:
    """Run the ranks; the first that falls out of step frees the others of their wait."""
    stop = threading.Event()

    def take_part(rank: int, child: Child) -> Outcome:
        child.on_line = logs[rank].take
        outcome = child.run({**job, "rank": rank}, timeout, lambda _check: None, stop)
        if outcome.ended != "done" or any(map(out_of_step, outcome.checks)):
            stop.set()
        return outcome

    with ThreadPoolExecutor(len(children)) as pool:
        return list(pool.map(take_part, range(len(children)), children))


class Judge:
    """Makes one check a collective out of what every rank told."""

    def __init__(self, outcomes: list[Outcome], logs: list[TransportLog], backend: str) -> None:
        self._outcomes = outcomes
        self._logs = logs
        self._backend = backend
        self._kept = max(4, LINES_OF_ALL_RANKS // max(1, len(outcomes)))
        self.broken = ""  # the collective in which a rank fell out of step

    def collective(self, name: str) -> dict[str, Any]:
        """Return the check of one collective for all ranks."""
        if self.broken:
            reason = f"the ranks did not come out of {self.broken}"
            return made_check("collectives", name, "skipped", reason=reason)
        told = [
            next((check for check in outcome.checks if check["name"] == name), None)
            for outcome in self._outcomes
        ]
        blame: list[tuple[int, int, str]] = []
        ranks = []
        for rank, (outcome, check) in enumerate(zip(self._outcomes, told)):
            ranks.append(self._rank(rank, outcome, check))
            if check is None or check["status"] == "fail":
                order = BLAME[outcome.ended] if check is None else BLAME["done"]
                blame.append((order, rank, ranks[-1]["reason"]))
        if any(check is None or out_of_step(check) for check in told):
            self.broken = name
        skipped = [check["reason"] for check in told if check and check["status"] == "skipped"]
        status = "fail" if blame else "skipped" if skipped else "pass"
        evidence = {"backend": self._backend, "world": len(told), "ranks": ranks}
        evidence.update(slowest(name, [check for check in told if check]))
        return made_check(
            "collectives",
            name,
            status,
            reason=self._reason(blame) if blame else skipped[0] if skipped else "",
            seconds=max((check["seconds"] for check in told if check), default=self._longest()),
            evidence=evidence,
        )

    def teardown(self) -> dict[str, Any]:
        """Return the check of ranks that ran everything and then did not end."""
        ranks = [self._rank(rank, outcome, None) for rank, outcome in enumerate(self._outcomes)]
        blame = [
            (BLAME[outcome.ended], rank, ranks[rank]["reason"])
            for rank, outcome in enumerate(self._outcomes)
            if outcome.ended != "done"
        ]
        return made_check(
            "collectives",
            "destroy_process_group",
            "fail",
            reason=self._reason(blame),
            seconds=self._longest(),
            evidence={"backend": self._backend, "world": len(ranks), "ranks": ranks},
        )

    def _rank(self, rank: int, outcome: Outcome, check: dict[str, Any] | None) -> dict[str, Any]:
        """Return one rank's part of the evidence: how it ended only where this check is how."""
        if check is not None:
            told = {key: check["evidence"][key] for key in ("wrong",) if key in check["evidence"]}
            if "traceback" in check["evidence"]:
                told["traceback"] = check["evidence"]["traceback"][-self._kept :]
                told["warnings"] = self._logs[rank].warnings
            return {"rank": rank, **told, "reason": check.get("reason", "")}
        where = f" (in {outcome.doing[1]})" if outcome.ended != "done" and outcome.doing else ""
        evidence = dict(outcome.evidence)
        if "last_lines" in evidence:
            evidence["last_lines"] = evidence["last_lines"][-self._kept :]
        reason = outcome.reason or "it stopped before"
        return {
            "rank": rank,
            **evidence,
            "warnings": self._logs[rank].warnings,
            "reason": reason + where,
        }

    def _reason(self, blame: list[tuple[int, int, str]]) -> str:
        """Name the rank at fault, or all of them where none is more so than the others."""
        worst = min(blame)
        equal = [rank for order, rank, reason in blame if (order, reason) == (worst[0], worst[2])]
        who = f"rank {worst[1]}"
        if worst[0] == BLAME["timeout"] and len(equal) > 1:
            who = f"ranks {', '.join(map(str, equal))}"
        lines = [line for log in self._logs for line in log.warnings]
        full = shared_memory_reason([reason for *_, reason in blame] + lines)
        return f"{who}: {full + ': ' if full else ''}{worst[2]}"

    def _longest(self) -> float:
        return max(outcome.seconds for outcome in self._outcomes)


def out_of_step(check: dict[str, Any]) -> bool:
    """Whether a rank broke off in this check: wrong values alone keep it in step with the others."""
    return not check["evidence"].get("in_step")


def slowest(name: str, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the time and bandwidth of each size, by the rank that took longest."""
    rows = [check["evidence"].get("sizes", []) for check in checks]
    if not rows or not all(len(row) == len(rows[0]) for row in rows) or not rows[0]:
        return {}
    sizes = []
    for same in zip(*rows):
        seconds = max(row["seconds"] for row in same)
        sizes.append(bandwidth(name, len(checks), same[0]["bytes"], seconds))
    first = max(row[0]["first_seconds"] for row in rows)
    return {"sizes": sizes, "first_seconds": first, "bandwidth_source": BANDWIDTH_SOURCE}


def judge_bus_bandwidth(check: dict[str, Any], job: dict[str, Any], boards: list[str]) -> None:
    """Call a slow all_reduce degraded where its bandwidth is known: eight whole GPUs of one model."""
    planned = job["expect"].get("gpus") or []
    whole = len(planned) == len(boards) == EXPECTED_FOR_GPUS and all(
        gpu.get("partition") is None for gpu in planned
    )
    sizes = check["evidence"].get("sizes") or [{"bytes": 0}]
    if not whole or check["status"] != "pass" or sizes[-1]["bytes"] < EXPECTED_FOR_BYTES:
        return
    for board, lowest in EXPECTED_BUS_BANDWIDTH.items():
        if all(board in name.split() for name in boards):
            check.update(threshold=lowest, threshold_source=EXPECTED_BUS_BANDWIDTH_SOURCE)
            found = sizes[-1]["busbw_gb_per_s"]
            if found < lowest:
                check["status"] = "degraded"
                check["reason"] = (
                    f"the bus bandwidth of {sizes[-1]['bytes'] // MIB} MiB is {found:g} GB/s, "
                    f"eight {board} have at least {lowest:g}"
                )


def transport_check(logs: list[TransportLog]) -> dict[str, Any]:
    """Return how the ranks reached each other; over sockets is a detour inside one machine."""
    version = next((log.version for log in logs if log.version), "")
    network = [rank for rank, log in enumerate(logs) if "NET/Socket" in log.kinds]
    status, reason = "pass", ""
    if not any(log.kinds for log in logs):
        status, reason = "skipped", "the library told no transport"
    elif network:
        status = "degraded"
        reason = (
            f"rank {', '.join(map(str, network))}: over sockets, since neither peer access nor "
            "shared memory works between these GPUs"
        )
    return made_check(
        "collectives",
        "transport",
        status,
        reason=reason,
        evidence={
            "version": version,
            "shm_bytes": shared_memory_bytes(),
            "ranks": [{"rank": rank, **log.evidence()} for rank, log in enumerate(logs)],
        },
    )


def free_port() -> int:
    """Return a TCP port on loopback that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


# --- controller: The order of the stages; it never imports torch itself ---

class Controller:
    """Runs the stages in order; every step of a device happens in that device's child."""

    def __init__(self, settings: dict[str, Any], program: Program, events: Events) -> None:
        self._settings = settings
        self._program = program
        self._events = events
        self._end = time.monotonic() + settings["timeout_seconds"]
        self._children: list[Child] = []
        self._accelerator = settings["accelerator"]
        self._planned = settings["expect"].get("gpus") or None
        self._found = 0  # devices that torch counts
        self._siblings = Siblings()
        self._proved: dict[Any, bool] = {}  # each device, and whether it passed on its own
        self._usable = False  # whether torch is here and built for these devices
        self._counts: dict[str, int] = {}  # how many devices a stage counted
        self._identities: list[dict[str, Any]] = []  # what each device says that it is
        self._claims: dict[str, list[list[int]]] = {}  # by stage: what a device can be

    def run(self) -> None:
        """Run every stage of the level."""
        try:
            self._environment()
            if self._accelerator == "cpu":
                self._cpu()
            elif self._settings["runtime"] == "hip":
                self._hip(sole=True)
            else:
                self._torch_and_hip()
            self._end_children()  # which hold memory on the GPUs
            if "operators" in stages_of(self._settings):
                run_operators(
                    self._settings,
                    self._events,
                    self._child,
                    self._close,
                    self._proved,
                    self._timeout,
                )
            run_own_checks(
                self._settings, self._events, self._child, self._close, self._proved, self._end
            )
        finally:
            self._end_children()

    def _end_children(self) -> None:
        if self._settings["level"] == "quick":
            self.kill()  # the deeper levels see whether a runtime winds up in order
        for child in self._children:
            child.dismiss()
        for child in self._children:
            child.close()
        self._children.clear()

    def kill(self) -> None:
        """End every child at once."""
        for child in self._children:
            child.kill()

    def _child(self, label: str, environment: dict[str, str]) -> Child:
        child = Child(label, self._program, environment)
        self._children.append(child)
        return child

    def _close(self, child: Child) -> None:
        self._children.remove(child)
        child.close()

    def _timeout(self, stage: str) -> float:
        """Return a stage's limit, less where the whole probe has less time left."""
        left = self._end - time.monotonic()
        return float(max(1.0, min(self._settings["timeouts"][stage], left)))

    def _job(self, stage: str, **fields: Any) -> dict[str, Any]:
        shared = {key: self._settings[key] for key in ("accelerator", "level", "size", "expect")}
        return {"stage": stage, **shared, **fields}

    def _do(self, child: Child, stage: str, device: Any = None, **fields: Any) -> bool:
        """Run one stage in a child and report it; return whether the next one makes sense."""
        child.begin(self._job(stage, **fields), self._timeout(stage))
        return self._collect(child, stage, device)

    def _collect(self, child: Child, stage: str, device: Any = None) -> bool:
        child.on_doing = lambda group, name: self._events.doing(group, name, device)
        outcome = child.wait(lambda check: self._events.check({**check, "device": device}))
        for check in outcome.checks if stage == "device" else ():
            self._siblings.note(check, device)
        for evidence in (check["evidence"] for check in outcome.checks):
            if "claims" in evidence:
                self._claims.setdefault(stage, []).append(evidence["claims"])
            if "device_count" in evidence:
                self._counts[stage] = evidence["device_count"]
        named = [c for c in outcome.checks if (c["group"], c["name"]) == ("device", "identity")]
        self._identities += [check["evidence"] for check in named]
        if outcome.ended != "done":
            groups = {
                "import": ("build", "torch"),
                "hip_runtime": ("hip", "runtime"),
                "peer_copies": ("collectives", "peer_copies"),
            }
            group, name = outcome.doing or groups.get(stage, (stage, stage))
            self._events.fail(
                group,
                name,
                f"{outcome.reason} (in {name})",
                device=device,
                seconds=outcome.seconds,
                evidence=outcome.evidence,
            )
        return outcome.passed

    def _environment(self) -> None:
        child = self._child("environment", dict(os.environ))
        self._do(child, "environment")
        self._do(child, "isolation")
        if "tools" in stages_of(self._settings):
            self._do(child, "tools")
        self._close(child)

    def _cpu(self) -> None:
        """One child for the build and the device, so that torch is imported once; a second one to work with it."""
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
        child = self._child("cpu", environment)
        passed = self._do(child, "import", told=True) and self._do(child, "build", gpus=None)
        other = None
        if passed and "collectives" in stages_of(self._settings):
            other = self._child("cpu rank 1", environment)  # imports while the first one computes
            other.begin(self._job("import", told=False), self._timeout("import"))
        passed = self._model(child, "cpu", passed=passed and self._do(child, "device", "cpu"))
        if "collectives" not in stages_of(self._settings):
            return
        if not passed or other is None:
            self._skip("collectives", "all_reduce", "the cpu failed on its own")
        elif self._collect(other, "import"):
            self._collectives([child, other], "gloo")

    def _torch_and_hip(self) -> None:
        """Ask HIP without torch as well: first where the level has time for it, else once torch has failed."""
        told = self._hip(sole=False) if "hip" in stages_of(self._settings) else None
        self._gpus()
        works = bool(self._proved) and all(self._proved.values())
        if not works and told is None and self._accelerator == "rocm":
            self._end_children()
            told = self._hip(sole=False)
        self._events.diagnosis = which_is_broken(works=works, reached=self._usable, hip=told)

    def _hip(self, *, sole: bool) -> str:
        layer = HipLayer(
            self._planned,
            child=self._child,
            close=self._close,
            do=self._do,
            skip=self._skip,
            counts=self._counts,
        )
        told = layer.run(sole=sole)
        self._distinct("hip")
        if sole:
            self._proved = dict(layer.passed)
        return told

    def _gpus(self) -> None:
        """Import torch in one child that sees all GPUs and, at the same time, in one for each of them."""
        build = self._child("build", dict(os.environ))
        build.begin(self._job("import", told=True), self._timeout("import"))
        count = len(self._planned) if self._planned else None
        started = likely_devices(self._accelerator) if count is None else count
        wave = wave_size(started)
        first = [self._start(index, wave) for index in range(min(started, wave))]
        self._usable = usable = self._collect(build, "import") and self._build(build, count)
        if count is None:
            count = self._found
        self._close(build)
        if not usable:
            self.kill()
            self._proved = dict.fromkeys(range(count), False)
            for index in range(count):
                self._skip(
                    "device", "device", "torch is not usable here: see the build checks", index
                )
            return
        if started != count:
            for child in first:
                child.kill()
                self._close(child)
            wave = wave_size(count)
            first = [self._start(index, wave) for index in range(min(count, wave))]
        self._exercise(first, count, wave)

    def _build(self, build: Child, planned: int | None) -> bool:
        """Report the build; a device count that is off still leaves devices to exercise."""
        build.begin(self._job("build", gpus=planned), self._timeout("build"))
        right_build = False

        def report(check: dict[str, Any]) -> None:
            nonlocal right_build
            self._events.check(check)
            self._found = check["evidence"].get("device_count") or self._found
            right_build = right_build or (check["name"], check["status"]) == ("accelerator", "pass")

        outcome = build.wait(report)
        if outcome.ended != "done":
            self._events.fail("build", "build", outcome.reason, evidence=outcome.evidence)
        return right_build

    def _start(self, index: int, wave: int) -> Child:
        environment = device_environment(self._accelerator, index, wave)
        child = self._child(f"device {index}", environment)
        child.begin(self._job("import", told=False), self._timeout("import"))
        return child

    def _exercise(self, first: list[Child], count: int, wave: int) -> None:
        """Exercise all devices, as many at a time as fit into memory, then let them work together."""
        passed: list[bool] = []
        children = first
        for begin in range(0, count, wave):
            if begin:
                for child in children:
                    self._close(child)
                children = [
                    self._start(index, wave) for index in range(begin, min(begin + wave, count))
                ]
            with ThreadPoolExecutor(len(children)) as pool:
                passed += pool.map(self._device, children, range(begin, begin + len(children)))
        self._distinct("device")
        for check in self._siblings.judged():
            self._events.check(check)
        self._together(children, passed, wave)

    def _device(self, child: Child, index: int) -> bool:
        if not self._collect(child, "import", index):
            self._proved[index] = False
            return False
        passed = self._do(child, "device", index, index=index, planned=self._planned)
        return self._model(child, index, passed=passed)

    def _model(self, child: Child, device: Any, *, passed: bool) -> bool:
        """Run a model on a device that passed on its own; return whether it still stands."""
        if passed and "model" in stages_of(self._settings):
            passed = self._do(child, "model", device)
        elif "model" in stages_of(self._settings):
            self._skip("model", "load", "the device failed on its own", device)
        self._proved[device] = passed
        return passed

    def _distinct(self, stage: str) -> None:
        every = self._claims.get(stage, [])
        for reason in same_device(every):
            self._events.fail(stage, "distinct", reason, evidence={"claims": every})

    def _together(self, children: list[Child], passed: list[bool], wave: int) -> None:
        count = len(passed)
        failed = [str(index) for index, good in enumerate(passed) if not good]
        if count <= 1:
            self._skip("collectives", "all_reduce", "there is only one device")
        elif failed:
            self._skip("collectives", "all_reduce", f"device {', '.join(failed)} failed on its own")
        elif count > wave:
            reason = f"{count} ranks at a time do not fit into memory, {wave} do"
            self._skip("collectives", "all_reduce", reason)
        else:
            hang = known_hang(self._identities)
            if hang:
                say(f"warning: {hang}")
            self._collectives(children, "nccl")
            if self._settings["level"] == "full":
                self._peer_copies(hang)

    def _skip(self, group: str, name: str, reason: str, device: Any = None) -> None:
        self._events.check(made_check(group, name, "skipped", reason=reason, device=device))

    def _collectives(self, children: list[Child], backend: str) -> None:
        """Let all children work together and report one check for each way of doing so."""
        boards = [str(seen.get("name")) for seen in self._identities]
        job = self._job("collectives", message_bytes=self._settings["message_bytes"])
        timeout = self._timeout("collectives")
        for check in run_together(children, job, timeout, backend, boards):
            self._events.check(check)

    def _peer_copies(self, hang: str) -> None:
        """Copy between all pairs of GPUs; where that has hung a host, after a warning and a pause."""
        reason = reason_not_to_copy(hang, os.environ)
        if reason:
            self._skip("collectives", "peer_copies", reason)
            return
        child = self._child("peer copies", dict(os.environ))
        if self._do(child, "import", told=False):
            fields = {"message_bytes": self._settings["message_bytes"]}
            self._do(child, "peer_copies", note={"known_hang": hang} if hang else {}, **fields)
        self._close(child)


# --- entry: what starts it ---

def probe(given: dict[str, Any], program: Program, *, by_hand: bool = False) -> int:
    """Run the probe and return its exit code: 0 pass or degraded, 1 fail, 2 settings, 3 its own fault.

    *by_hand* ends it with a table for people; in a container rocmrun makes one of the report.
    """
    events = Events()
    try:
        settings = complete_settings(given)
        events.runtime = settings["runtime"]
        controller = Controller(settings, program, events)
        end_on_signals(controller, events)
        events.emit(
            "start",
            probe_version=PROBE_VERSION,
            level=settings["level"],
            accelerator=settings["accelerator"],
            runtime=settings["runtime"],
            stages=stages_of(settings),
            python=platform.python_version(),
            pid=os.getpid(),
        )
        controller.run()
        if by_hand:
            print_summary(events.told)
        return 0 if events.end() in ("pass", "degraded") else 1
    except SettingsError as error:
        events.end(f"settings: {error}")
        return 2
    except BrokenPipeError:
        say("nobody reads the report")
    except Exception as error:
        say(traceback.format_exc())
        with contextlib.suppress(OSError):
            events.end(f"the probe itself failed: {described(error)}")
    return 3


def end_on_signals(controller: Controller, events: Events) -> None:
    """Make SIGTERM, SIGINT and SIGHUP end all children and close the report."""

    def end(number: int, _frame: Any) -> None:
        with contextlib.suppress(OSError):
            events.end(f"ended by {signal_name(number)}")
        controller.kill()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


def main(arguments: list[str], code: CodeType, source: bytes | None, settings: bytes | None) -> int:
    """Start as a child, from standard input, or by hand; *code* is what all of this was compiled to."""
    if arguments[:1] == ["--child"]:
        jobs, results, *text = map(int, arguments[1:])
        if text:
            show_text(text[0], code)
        return child_main(jobs, results)
    program = program_of(Path(__file__).read_bytes() if source is None else source, code)
    if settings is None:
        return probe(parse_arguments(arguments), program, by_hand=True)
    try:
        given = json.loads(settings)
    except ValueError:
        given = {"v": "unreadable"}
    return probe(given, program)


if __name__ == "__main__":
    # The bootstrap on the command line leaves these two beside us; by hand they are absent.
    given_source, given_settings = map(globals().get, ("PROBE_SOURCE", "PROBE_SETTINGS"))
    sys.exit(main(sys.argv[1:], sys._getframe().f_code, given_source, given_settings))  # noqa: SLF001
