"""A stand-in for torch, only for faults that no machine can be made to show on demand.

It computes small matrices right, in plain Python, so that a test can make one thing wrong: a GPU that
hangs, aborts, lies about itself or miscounts. What real arithmetic does is tested with the real torch.

The environment variable STUB_TORCH holds the scene as JSON:
    build: "rocm", "cuda" or "cpu"; devices: how many the driver has; count: what torch says instead
    fault: what goes wrong; device: on which device only; faults: what goes wrong by device
    addresses: PCI bus numbers by device
    archs: what torch was compiled for; gfx: what the devices are
"""

import json
import math
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

SCENE: dict[str, Any] = json.loads(os.environ.get("STUB_TORCH", "{}"))
BUILD = SCENE.get("build", "rocm")
HIDDEN_BY = "HIP_VISIBLE_DEVICES" if BUILD == "rocm" else "CUDA_VISIBLE_DEVICES"


def visible() -> list[int]:
    """The devices that the environment leaves, as the driver does it: a bad index ends the list."""
    every = list(range(SCENE.get("devices", 1)))
    if BUILD == "cpu":
        return []
    if HIDDEN_BY not in os.environ:
        return every
    tokens = os.environ[HIDDEN_BY].split(",")
    return [int(token) for token in tokens if token.isdigit() and int(token) in every]


def happens(fault: str) -> bool:
    """Whether *fault* is in the scene and this process has the device that it is about."""
    own = visible()
    if "faults" in SCENE:
        return len(own) == 1 and SCENE["faults"].get(str(own[0])) == fault
    here = "device" not in SCENE or (len(own) == 1 and own[0] == SCENE["device"])
    return SCENE.get("fault") == fault and here


def break_down() -> None:
    """End this process, or never return, as the scene wants it."""
    if happens("hang"):
        time.sleep(1000)
    if happens("exit0"):
        os._exit(0)
    for name in ("SIGABRT", "SIGSEGV", "SIGKILL"):
        if happens(name):
            os.write(2, b"Memory access fault by GPU node-1\n")
            os.kill(os.getpid(), signal.Signals[name])


if happens("import_error"):
    message = "libamdhip64.so.6: cannot open shared object file: No such file or directory"
    raise ImportError(message)
if happens("import_hang"):
    time.sleep(1000)
if happens("import_garbage"):
    sys.stdout.write("{not json\x1b[31m red\n")
    sys.stdout.flush()
    os.write(1, b'{"v":1,"event":"end","status":"pass"}\n\x00\xff\n')

__version__ = "0.0.0+stub"
version = SimpleNamespace(
    hip="7.2.4" if BUILD == "rocm" else None,
    cuda="13.0" if BUILD == "cuda" else None,
    git_version=None,
)
float32, float16, bfloat16, float64 = "float32", "float16", "bfloat16", "float64"
uint8, int16, int32, int64 = "uint8", "int16", "int32", "int64"


def rounded(value: float, dtype: str) -> float:
    """Round *value* to what *dtype* can hold."""
    if dtype == float16:
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    if dtype in {float32, bfloat16}:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        if dtype == bfloat16:
            bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
        return float(struct.unpack("<f", struct.pack("<I", bits))[0])
    return value if dtype == float64 else int(value)


class Tensor:
    """A flat list of numbers with a shape, a type and a device."""

    def __init__(
        self, values: Sequence[float], shape: tuple[int, ...], dtype: str, device: str = "cpu"
    ) -> None:
        self.values = [rounded(value, dtype) for value in values]
        self.shape, self.dtype, self.device = shape, dtype, device

    def _map(self, function: Callable[[float], float], dtype: str | None = None) -> "Tensor":
        values = [function(value) for value in self.values]
        return Tensor(values, self.shape, dtype or self.dtype, self.device)

    def _with(
        self, other: Any, function: Callable[[float, float], float], dtype: str | None = None
    ) -> "Tensor":
        others = other.values if isinstance(other, Tensor) else [other] * len(self.values)
        values = [function(a, b) for a, b in zip(self.values, others, strict=True)]
        return Tensor(values, self.shape, dtype or self.dtype, self.device)

    def __add__(self, other: Any) -> "Tensor":
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> "Tensor":
        return self._with(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> "Tensor":
        return self._with(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> "Tensor":
        return self._with(other, lambda a, b: a / b)

    def __floordiv__(self, other: Any) -> "Tensor":
        return self._with(other, lambda a, b: a // b)

    def __mod__(self, other: Any) -> "Tensor":
        return self._with(other, lambda a, b: a % b)

    def __gt__(self, other: Any) -> "Tensor":
        return self._with(other, lambda a, b: a > b, int32)

    def __le__(self, other: Any) -> "Tensor":
        return self._with(other, lambda a, b: a <= b, int32)

    def __ne__(self, other: object) -> "Tensor":  # type: ignore[override]  # elementwise, as torch does
        return self._with(other, lambda a, b: a != b, int32)

    __hash__ = None  # type: ignore[assignment]  # elementwise equality has no hash

    def __matmul__(self, other: "Tensor") -> "Tensor":
        return matmul(self, other)

    def __getitem__(self, rows: "Tensor") -> "Tensor":
        width = self.shape[1]
        starts = [int(row) * width for row in rows.values]
        values = [value for start in starts for value in self.values[start : start + width]]
        return Tensor(values, (len(starts), width), self.dtype, self.device)

    def __len__(self) -> int:
        return self.shape[0]

    def sign(self) -> "Tensor":
        return self._map(lambda value: (value > 0) - (value < 0))

    def abs(self) -> "Tensor":
        return self._map(abs)

    def double(self) -> "Tensor":
        return self.to(float64)

    def to(self, what: str) -> "Tensor":
        if what == "cpu" or what.startswith("cuda"):
            there = Tensor(self.values, self.shape, self.dtype, what)
            if SCENE.get("fault") == "peer" and self.device != what != "cpu" != self.device:
                there.values[0] += 1
            return there
        return self._map(lambda value: value, what)

    def cpu(self) -> "Tensor":
        copy = self.to("cpu")
        if happens("copy") and self.device != "cpu" and self.dtype == int32:
            copy.values[0] += 1
        return copy

    def view(self, _dtype: str) -> "Tensor":  # comparing values is comparing bits here
        return Tensor(self.values, self.shape, float64, self.device)

    def sum(self) -> "Tensor":
        return Tensor([math.fsum(self.values)], (1,), float64)

    def max(self) -> "Tensor":
        return Tensor([max(self.values)], (1,), float64)

    def item(self) -> float:
        return self.values[0]


class OutOfMemoryError(RuntimeError):
    """What torch raises where memory is used up."""


products = 0


def matmul(left: Tensor, right: Tensor) -> Tensor:
    """Multiply right, except on the device and in the way of the scene."""
    global products  # noqa: PLW0603 - the repeat must differ from the first product
    rows, inner, columns = left.shape[0], left.shape[1], right.shape[1]
    sums = [
        math.fsum(left.values[i * inner + k] * right.values[k * columns + j] for k in range(inner))
        for i in range(rows)
        for j in range(columns)
    ]
    product = Tensor(sums, (rows, columns), left.dtype, left.device)
    if left.device == "cpu" and BUILD != "cpu":
        return product  # the reference is never what is broken
    break_down()
    if happens("slow"):
        time.sleep(0.03)
    if happens("fallback"):
        product.device = "cpu"
    products += 1
    if happens("nan"):
        product.values[3] = math.nan
    if happens("wrong") and left.dtype == float16:
        product.values[5] += 1.0
    if happens("ulp") and left.dtype == float32 and products > 1:
        product.values[7] = math.nextafter(product.values[7], math.inf)
    if happens("error"):
        message = "HIP error: invalid device function"
        raise RuntimeError(message)
    return product


class Generator:
    """A linear congruential generator."""

    state = 0

    def manual_seed(self, seed: int) -> None:
        self.state = seed

    def draw(self) -> float:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) / 2**31


def rand(rows: int, columns: int, *, generator: Generator) -> Tensor:
    """Draw uniform numbers in [0, 1)."""
    return Tensor([generator.draw() for _ in range(rows * columns)], (rows, columns), float32)


def full(shape: tuple[int], value: float, *, dtype: str, device: str) -> Tensor:
    """Fill a vector; the scene can lose one value."""
    if happens("oom"):
        raise OutOfMemoryError("HIP out of memory. Tried to allocate 20.00 GiB.")  # noqa: EM101
    values = [value] * shape[0]
    if happens("memory"):
        values[0] = 0
    return Tensor(values, shape, dtype, device)


def arange(count: int, *, dtype: str, device: str = "cpu") -> Tensor:
    """Count up from 0."""
    return Tensor(range(count), (count,), dtype, device)


def tensor(values: list[int]) -> Tensor:
    """Make a vector of whole numbers."""
    return Tensor(values, (len(values),), int32)


def isfinite(values: Tensor) -> Tensor:
    """Tell finite numbers from the others."""
    finite = [math.isfinite(value) for value in values.values]
    return Tensor(finite, values.shape, int32, values.device)


def get_num_threads() -> int:
    """Return one."""
    return 1


def set_float32_matmul_precision(_precision: str) -> None:
    """Accept and do nothing."""


def set_deterministic_debug_mode(_mode: str) -> None:
    """Accept and do nothing."""


def _properties(_index: int) -> SimpleNamespace:
    own = visible()[0]
    bus = SCENE.get("addresses", {}).get(str(own), 0x63 + own)
    identity = b"f330dc00000000%02x" % bus
    text = identity.hex()
    uuid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    gfx = SCENE.get("gfx", "gfx942:sramecc+:xnack-")
    known: dict[str, Any] = {"gcnArchName": gfx} if BUILD == "rocm" else {}
    if not SCENE.get("old"):
        known |= {"uuid": uuid, "pci_domain_id": 0, "pci_bus_id": bus, "pci_device_id": 0}
    return SimpleNamespace(name="Stub Instinct", total_memory=1 << 30, **known)


cuda = SimpleNamespace(
    device_count=lambda: SCENE.get("count", len(visible())),
    get_arch_list=lambda: SCENE.get("archs", ["gfx90a", "gfx942"] if BUILD == "rocm" else []),
    get_device_properties=_properties,
    synchronize=lambda *_: None,
    can_device_access_peer=lambda _source, target: target != SCENE.get("unreachable"),
    max_memory_allocated=lambda: 0 if happens("nowhere") else 4096,
    mem_get_info=lambda: (1 << 29, 1 << 30),
)
if BUILD == "rocm":
    cuda.nccl = SimpleNamespace(version=lambda: (2, 22, 3))
backends = SimpleNamespace(
    cuda=SimpleNamespace(matmul=SimpleNamespace()),
    cudnn=SimpleNamespace(version=lambda: 3_005_001),
)
_C = SimpleNamespace(_cuda_getDeviceCount=lambda: len(visible()))
