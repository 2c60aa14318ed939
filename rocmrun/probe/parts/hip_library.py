"""libamdhip64 and libhiprtc by ctypes, without torch: found, loaded, and every call's code given its name."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from pathlib import Path
from typing import Any

from rocmrun.probe.parts.checks import CheckFailed

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
