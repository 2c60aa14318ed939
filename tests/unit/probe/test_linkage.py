"""Which GPU runtime a library is linked against, by its ELF file."""

import _ctypes
import json
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from rocmrun.probe.parts.linkage import (
    MAX_LIBRARIES,
    libraries_below,
    linkage,
    linked_to,
    mapped_libraries,
    needed_libraries,
    runtime_of,
)
from tests.elf_files import shared_library

WHEELS: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "recorded" / "wheels-needed-libraries.json").read_text()
)
RUNTIMES = {
    "bitsandbytes": "both",
    "pytorch-triton-rocm": "rocm",
    "torchaudio": "cuda",
    "torchvision": "cuda",
    "triton": "none",
    "vllm": "cuda",
    "xformers": "cuda",
}


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def test_a_made_library_gives_its_needed_names(tmp_path: Path) -> None:
    path = written(tmp_path / "a.so", shared_library("libamdhip64.so.6", "libc.so.6"))

    assert needed_libraries(path) == ["libamdhip64.so.6", "libc.so.6"]


def test_a_real_library_gives_its_needed_names() -> None:
    """A module of this very Python."""
    needed = needed_libraries(str(Path(_ctypes.__file__).resolve()))

    assert needed is not None
    assert "libc.so.6" in needed


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to link a library with")
def test_a_linked_library_gives_its_needed_names(tmp_path: Path) -> None:
    """One that the system's linker made, against a stand-in of the same name as HIP's."""
    for name, needs in (("libamdhip64.so", ()), ("kernels.so", ("-L.", "-lamdhip64"))):
        source = (
            "int two(void) { return 2; }"
            if needs == ()
            else "int two(void); int four(void) { return 2 * two(); }"
        )
        (tmp_path / "source.c").write_text(source)
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-o", name, "source.c", *needs], cwd=tmp_path, check=True
        )

    needed = needed_libraries(str(tmp_path / "kernels.so"))
    assert needed is not None
    assert linked_to(needed) == "rocm"
    assert set(linkage(libraries_below([str(tmp_path)]))) == {"rocm", "none"}


@pytest.mark.parametrize(
    ("needed", "runtime"),
    [
        (["libamdhip64.so.7", "libc10_hip.so"], "rocm"),
        (["libhipblaslt.so.0"], "rocm"),
        (["librccl.so.1"], "rocm"),
        (["libMIOpen.so.1"], "rocm"),
        (["libcudart.so.12", "libc10_cuda.so"], "cuda"),
        (["libcuda.so.1"], "cuda"),
        (["libcublasLt.so.12"], "cuda"),
        (["libnvrtc.so.12"], "cuda"),
        (["libcudart.faf08d9a.so.13"], "cuda"),
        (["libcudart-c3a75b33.so.11.0"], "cuda"),
        (["libamdhip64-0f2c8d1e.so.6"], "rocm"),
        (["libamdhip64.so.6", "libcudart.so.12"], "both"),
        (["libtorch.so", "libstdc++.so.6", "librocksdb.so.8", "libnvme.so.1", "libcurl.so.4"], "none"),
        ([], "none"),
    ],
)  # fmt: skip
def test_the_runtime_is_told_by_the_names(needed: list[str], runtime: str) -> None:
    """Other libraries that begin alike belong to neither."""
    assert linked_to(needed) == runtime


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        b"\x7fELF\x01\x01" + bytes(100),
        b"INPUT(libother.so)\n",
        shared_library("libc.so.6")[:150],
        shared_library("libc.so.6")[:200],
        shared_library("libc.so.6").replace(struct.pack("<HHH", 64, 56, 2), struct.pack("<HHH", 64, 56, 60000)),
        shared_library("libc.so.6").replace(struct.pack("<Q", 64), struct.pack("<Q", 1 << 62), 1),
        shared_library("libc.so.6").replace(struct.pack("<q", 5), struct.pack("<q", 99)),
    ],
    ids=["empty", "magic", "32 bit", "linker script", "cut", "cut later", "headers", "offset", "no strings"],
)  # fmt: skip
def test_what_is_no_library_is_none(data: bytes, tmp_path: Path) -> None:
    """Broken and hostile files end in an answer, and in little time."""
    assert needed_libraries(written(tmp_path / "a.so", data)) is None


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert needed_libraries(str(tmp_path / "absent.so")) is None


def test_libraries_are_found_below_and_beside(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "deep").mkdir(parents=True)
    for path in (
        "a.so",
        "deep/b.cpython-312-x86_64-linux-gnu.so",
        "libc.so.1.2",
        "notes.solid",
        "x.py",
    ):
        (package / path).touch()
    beside = tmp_path / "package_cuda.so"
    beside.touch()

    found = libraries_below([str(package), str(beside)])
    assert [Path(path).name for path in found] == [
        "package_cuda.so",
        "a.so",
        "libc.so.1.2",
        "b.cpython-312-x86_64-linux-gnu.so",
    ]


def test_a_package_of_very_many_libraries_is_bounded(tmp_path: Path) -> None:
    for number in range(MAX_LIBRARIES + 50):
        (tmp_path / f"{number}.so").touch()

    assert len(libraries_below([str(tmp_path)])) == MAX_LIBRARIES


def test_what_is_mapped_is_seen() -> None:
    assert str(Path(_ctypes.__file__).resolve()) in mapped_libraries()


@pytest.mark.parametrize("wheel", sorted(WHEELS))
def test_real_wheels_are_told_by_what_they_need(wheel: str) -> None:
    """torchvision and torchaudio of the default index are builds for CUDA; triton itself is for neither."""
    found: dict[str, list[str]] = {}
    for library, needed in WHEELS[wheel].items():
        found.setdefault(linked_to(needed), []).append(library)

    assert runtime_of(found) == RUNTIMES[wheel.partition(" ")[0]]


def test_bitsandbytes_has_a_library_for_each_runtime() -> None:
    """Whose names say the same as what they need."""
    libraries = WHEELS["bitsandbytes 0.50.2"]

    for library, needed in libraries.items():
        kind = re.search(r"_(rocm|cuda)\d+\.so", library)
        assert linked_to(needed) == (kind[1] if kind else "none")
    assert len({linked_to(needed) for needed in libraries.values()}) == 3


def test_a_package_that_brings_both_is_neither() -> None:
    """bitsandbytes ships a library for each and loads one of them."""
    assert runtime_of({"rocm": ["a"], "cuda": ["b"], "none": ["c"]}) == "both"
    assert runtime_of({"rocm": ["a"], "none": ["c"]}) == "rocm"
    assert runtime_of({"none": ["c"]}) == "none"
