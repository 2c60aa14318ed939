"""Versions are compared as numbers, with the rows of AMD's matrix."""

from rocmrun.core.diagnosis.reading import read_text
from rocmrun.core.diagnosis.versions import (
    FIRST_LISTED,
    OLDEST_MODULE,
    Version,
    driver_before_rocm,
    library_of_another_rocm,
    rocm_versions,
    target_newer_than_rocm,
)
from rocmrun.core.support.matrix import Matrix, parse_matrix
from rocmrun.system.package_data import read_support_matrix
from tests.unit.core.diagnosis.catalogue import found_in, names

MATRIX = parse_matrix(read_support_matrix())


def numbers(text: str) -> Version:
    return tuple(int(part) for part in text.removesuffix(".x").split("."))


def test_the_first_release_of_a_target_is_the_matrixs() -> None:
    """What the oldest release lists may be older: the matrix cannot tell."""
    releases = sorted(MATRIX.releases, key=lambda release: numbers(release.version))
    first: dict[str, Version] = {}
    for release in releases:
        for row in release.gpus:
            if row.gfx and row.support in {"supported", "deprecated"}:
                first.setdefault(row.gfx, numbers(release.version))
    oldest = numbers(releases[0].version)

    assert {gfx: without_zeros(version) for gfx, version in FIRST_LISTED.items()} == {
        gfx: without_zeros(version) for gfx, version in first.items() if version != oldest
    }


def without_zeros(version: Version) -> Version:
    return version[:-1] if len(version) == 3 and version[-1] == 0 else version


def oldest_module(matrix: Matrix, rocm: Version) -> Version:
    """Return the oldest module, of those whose number is known, that serves *rocm* by the driver table."""
    series = f"{rocm[0]}.{rocm[1]}.{'x' if rocm < (10,) else '0'}"
    serving = {row.driver for row in matrix.drivers if series in row.user_space}
    known = [numbers(module) for module, driver in matrix.modules if driver in serving]
    unknown = min(numbers(driver) for driver in serving)
    assert numbers(next(d for m, d in matrix.modules if numbers(m) == min(known))) == unknown
    return min(known)


def test_the_oldest_driver_of_a_rocm_is_the_driver_tables() -> None:
    assert {rocm: oldest_module(MATRIX, rocm) for rocm in OLDEST_MODULE} == dict(OLDEST_MODULE)


def test_versions_of_rocm_are_found_where_they_stand() -> None:
    """In an image's tag, in torch's version, told."""
    seen = read_text(
        "image: rocm/pytorch:rocm7.2.4_ubuntu24.04\ntorch: 2.9.1+rocm6.4\nrocm: 7.0.2\nROCm 5.x"
    )

    assert rocm_versions(seen) == {(7, 2, 4), (6, 4), (7, 0, 2)}


def test_a_rocm_older_than_its_target_says_which_row() -> None:
    """7.10 is newer than 7.9; 6.4.1 is the first for gfx1201."""
    old = read_text("Segmentation fault\ngpu: gfx1201\nrocm: 6.3.4")
    new = read_text("Segmentation fault\ngpu: gfx1201\nrocm: 6.4.1")
    rows = target_newer_than_rocm(old)

    assert rows is not None
    assert rows[0].text == "AMD's support matrix lists gfx1201 from ROCm 6.4.1 on; told is 6.3.4"
    assert target_newer_than_rocm(new) is None
    assert "arch-not-in-image" in names(found_in("Segmentation fault\ngpu: gfx950\nrocm: 6.4"))


def test_a_driver_that_amds_table_does_not_pair_is_named() -> None:
    """rocminfo tells the module of AMD's own driver; the kernel's has no number."""
    said = "ROCk module version 6.8.5 is loaded\nRuntimeError: HIP error: invalid argument"
    paired = f"{said}\nimage: rocm/pytorch:rocm7.0.2_ubuntu24.04"
    unpaired = f"{said}\nimage: rocm/pytorch:rocm7.2.4_ubuntu24.04"

    assert driver_before_rocm(read_text(paired)) is None
    assert names(found_in(unpaired))[:1] == ["driver-too-old"]
    reasons = [line.text for reason in found_in(unpaired)[0].reasons for line in reason.lines]
    assert (
        "ROCm 7.2.4 wants amdgpu 6.12.12 or newer by AMD's driver table; told is 6.8.5" in reasons
    )


def test_a_library_says_which_rocm_it_is_of() -> None:
    """libamdhip64's number is the major number of its ROCm."""
    missing = (
        "ImportError: libamdhip64.so.6: cannot open shared object file: No such file or directory"
    )
    rows = library_of_another_rocm(read_text(f"{missing}\ntorch: 2.8.0+rocm7.0.0"))

    assert rows is not None
    assert rows[0].text == "libamdhip64.so.6 is of ROCm 6; told is ROCm 7"
    assert library_of_another_rocm(read_text(f"{missing}\nrocm: 6.4.1")) is None
    assert library_of_another_rocm(read_text(missing)) is None
