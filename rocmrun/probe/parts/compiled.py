"""A kernel that torch compiles here, where there is something to compile with."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sysconfig
import time
from pathlib import Path
from typing import Any

from rocmrun.probe.parts.arithmetic import SUM_SOURCE, compare, growth_of, synchronize
from rocmrun.probe.parts.checks import Check
from rocmrun.probe.parts.kernels import EPSILON, UNIT, stays, uniform
from rocmrun.probe.parts.offers import lacks

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
