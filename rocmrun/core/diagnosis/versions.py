"""Versions that a text tells, as values: ROCm against the GPU's target, the driver, and libraries of another ROCm."""

from collections.abc import Iterator, Mapping

from rocmrun.core.diagnosis.body import Quotes
from rocmrun.core.diagnosis.evidence import Evidence
from rocmrun.core.diagnosis.log_text import Line, line_of

Version = tuple[int, ...]

# From AMD's support matrix, whose rows a test compares these with. The matrix begins with ROCm 5.7.
FIRST_LISTED: Mapping[str, Version] = {
    "gfx942": (6, 0), "gfx950": (7, 0), "gfx1101": (6, 4, 1), "gfx1102": (7, 14), "gfx1103": (7, 14),
    "gfx1150": (7, 14), "gfx1151": (7, 14), "gfx1152": (7, 14), "gfx1153": (7, 14), "gfx1200": (6, 4, 1),
    "gfx1201": (6, 4, 1),
}  # fmt: skip
# ROCm series → the oldest module of AMD's driver that serves it, where the module's number is known.
OLDEST_MODULE: Mapping[Version, Version] = {
    (7, 0): (6, 8, 5), (7, 1): (6, 12, 12), (7, 2): (6, 12, 12), (7, 14): (6, 14, 14), (10, 0): (6, 14, 14),
}  # fmt: skip

_NUMBER = r"(\d{1,2})\.(\d{1,2})(?:\.(\d{1,2}))?"
_ROCM = (
    rf"^(?:\w+_)?(?:image_)?rocm(?:_version)?: (?:rocm )?{_NUMBER}",
    rf"\brocm[ -]?{_NUMBER}(?!\.?x)",
)
_HOST_ROCM = rf"^host\w*[._ ]?rocm\w*: (?:rocm )?{_NUMBER}"
_IMAGE_ROCM = rf"^(?:image|container)[\w.]*: [^\n]{{0,120}}\brocm\w{{0,12}}?[-_]?{_NUMBER}"
# What only AMD's own module tells of itself; the kernel's has no such number, and AMD's table no row for it.
# "Initialized amdgpu 3.62.0" is the version of its interface.
_MODULE = rf"rock module version {_NUMBER}|(?<!initialized )\bamdgpu[/, -]{{1,2}}{_NUMBER}|amdgpu-dkms\W{{1,4}}(?:\d:)?{_NUMBER}"
_MISSING_HIP = r"libamdhip64\.so\.(\d{1,2})\b[^\n]{0,80}(?:cannot open|no such file|not found)"


def rocm_versions(seen: Evidence) -> set[Version]:
    """Return every ROCm version that is told: of the image, of torch, of the host."""
    return {
        _version(match.groups())
        for body in (seen.log, seen.told)
        for pattern in _ROCM
        for match, _ in body.matches(pattern)
    }


def target_newer_than_rocm(seen: Evidence) -> Quotes | None:
    """Return, for a named target that AMD lists only from a later ROCm on, the row of the matrix."""
    versions = rocm_versions(seen)
    if not versions:
        return None
    newest = max(versions)
    lines = [
        _row(f"AMD's support matrix lists {gfx} from ROCm {_text(FIRST_LISTED[gfx])} on; told is {_text(newest)}")
        for gfx in seen.gfx
        if gfx in FIRST_LISTED and newest < FIRST_LISTED[gfx]
    ]  # fmt: skip
    return tuple(lines[:3]) or None


def driver_before_rocm(seen: Evidence) -> Quotes | None:
    """Return the row of AMD's driver table that leaves out the pair of driver and ROCm that is told."""
    modules, versions = set(_modules(seen)), rocm_versions(seen)
    if not modules or not versions:
        return None
    driver, rocm = max(modules), max(versions)
    oldest = OLDEST_MODULE.get(rocm[:2])
    if oldest is None or driver >= oldest:
        return None
    told = f"ROCm {_text(rocm)} wants amdgpu {_text(oldest)} or newer by AMD's driver table; told is {_text(driver)}"
    return (_row(told),)


def host_before_image(seen: Evidence) -> Quotes | None:
    """Return the pair of a host's ROCm and an image's that is told, where the host's is the older one."""
    hosts = [_version(match.groups()) for match, _ in seen.told.matches(_HOST_ROCM)]
    images = [_version(match.groups()) for match, _ in seen.told.matches(_IMAGE_ROCM)]
    if not hosts or not images or max(hosts)[:2] >= max(images)[:2]:
        return None
    return (_row(f"the host has ROCm {_text(max(hosts))}, the image {_text(max(images))}"),)


def library_of_another_rocm(seen: Evidence) -> Quotes | None:
    """Return what is known of a missing libamdhip64.so.N, whose N is the major number of its ROCm."""
    majors = {version[0] for version in rocm_versions(seen)}
    wanted = {int(match[1]) for match, _ in seen.log.matches(_MISSING_HIP)}
    if not majors or not wanted - majors:
        return None
    library = min(wanted - majors)
    return (
        _row(
            f"libamdhip64.so.{library} is of ROCm {library}; told is ROCm {', '.join(map(str, sorted(majors)))}"
        ),
    )


def _modules(seen: Evidence) -> Iterator[Version]:
    for body in (seen.log, seen.told):
        for match, _ in body.matches(_MODULE):
            yield _version(tuple(part for part in match.groups() if part is not None))


def _version(parts: tuple[str | None, ...]) -> Version:
    return tuple(int(part) for part in parts if part is not None)


def _text(version: Version) -> str:
    return ".".join(map(str, version))


def _row(text: str) -> Line:
    """Return a line that stands in no text: what a table says."""
    return line_of(0, text)
