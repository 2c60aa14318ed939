"""Kernels that are compiled on the spot by hipRTC, and what they must compute."""

from __future__ import annotations

import ctypes
from array import array
from operator import mul
from typing import Any

from rocmrun.probe.parts.checks import Check, CheckFailed, Reporter
from rocmrun.probe.parts.hip_library import (
    Api,
    Hip,
    HipError,
    LibraryMissing,
    load_library,
    mapped_library,
)

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
