"""AMD's support matrix as values: what each ROCm release was published to work with. No judgement here.

Taken apart by hand and not with a model library: a launch reads it, and it has twelve thousand lines.
The schema is tested.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Support = Literal["supported", "deprecated", "unsupported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One line of a release's GPU list.

    Attributes:
        model: "AMD Instinct MI300X", or several with " / "; None where the release lists targets only.
        kind: "instinct", "radeon", "radeon-pro", "apu", or "mixed".
        support: None where nobody found it.
        os_only: Systems that the line is restricted to, "Ubuntu 24.04.3"; () is every one listed.
        os_except: Systems that it leaves out.
    """

    model: str | None
    gfx: str
    kind: str
    support: Support | None
    note: str = ""
    os_only: tuple[str, ...] = ()
    os_except: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OsRow:
    """One line of a release's list of systems.

    Attributes:
        kernel: The cell as AMD wrote it, "6.8 [GA], 6.14 [HWE]"; None where it was not found.
        gpus_only: Models that the line is restricted to, "MI300X".
    """

    distro: str
    version: str
    kernel: str | None = None
    note: str = ""
    gpus_only: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Distribution and version."""
        return f"{self.distro} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One ROCm release.

    Attributes:
        date: ISO date; None where it was not found.
        stream: "legacy-production", "therock-preview" or "production (TheRock)".
        gpus: () where the list was not found.
        by_model: Whether the list names models, so that an absent one is not supported.
        pytorch: Versions that the matrix names; () where the cell was not found.
        drivers: Drivers of the newest table that accept it; () where the table has no such release.
        drivers_at_release: What the page of the day listed; () where it was not found.
        unknown: What is missing, in words.
    """

    version: str
    date: str | None
    stream: str
    gpus: tuple[GpuRow, ...]
    by_model: bool
    os: tuple[OsRow, ...]
    pytorch: tuple[str, ...]
    drivers: tuple[str, ...]
    drivers_at_release: tuple[str, ...]
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def preview(self) -> bool:
        """Whether it was never meant for production."""
        return self.stream.endswith("preview")


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRow:
    """A driver series and the user-space series that it accepts; "30.20.x"."""

    driver: str
    user_space: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A model and a system of one release about which AMD's pages contradict each other."""

    release: str
    model: str
    system: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All of it.

    Attributes:
        newest_fact: ISO date of the newest thing that it knows.
        modules: (module version, driver series): what /sys/module/amdgpu/version means.
        preview_drivers: Series that the table leaves out on purpose.
        sources: Id → where that was read.
    """

    newest_fact: str
    releases: tuple[Release, ...]
    drivers: tuple[DriverRow, ...]
    driver_source: str
    modules: tuple[tuple[str, str], ...]
    preview_drivers: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    sources: Mapping[str, str]

    def release(self, version: str) -> Release | None:
        """Return the release of exactly that version; "7.2" is 7.2.0."""
        parts = version.split(".")
        full = ".".join((*parts, "0")) if len(parts) == 2 else version  # noqa: PLR2004
        return next((release for release in self.releases if release.version == full), None)


def parse_matrix(text: str) -> Matrix:
    """Return the matrix in *text*, which is the package's own data."""
    data = json.loads(text)
    table = data["driver_table"]
    return Matrix(
        newest_fact=data["newest_fact"],
        releases=tuple(_release(entry) for entry in data["rocm_releases"]),
        drivers=tuple(
            DriverRow(driver=row["driver"], user_space=tuple(row["user_space"]))
            for row in table["rows"]
        ),
        driver_source=table["source"],
        modules=tuple(
            (row["module"], row["driver"])
            for row in data["driver_module_versions"]["rows"]
            if row["module"]
        ),
        preview_drivers=tuple(entry.split()[0] for entry in table["not_in_table"]),
        conflicts=tuple(
            Conflict(
                release=entry["release"],
                model=entry["model"],
                system=entry["os"],
                note=entry["note"],
            )
            for entry in data["conflicts"]
        ),
        sources={entry["id"]: f"{entry['what']}, {entry['ref']}" for entry in data["sources"]},
    )


def _release(entry: Mapping[str, Any]) -> Release:
    return Release(
        version=entry["version"],
        date=entry["date"],
        stream=entry["stream"],
        gpus=tuple(_gpu(row) for row in entry["gpus"]),
        by_model=entry["gpus_granularity"].startswith("per-model"),
        os=tuple(
            OsRow(
                distro=row["distro"],
                version=row["version"],
                kernel=row["kernel"],
                note=row.get("note", ""),
                gpus_only=tuple(row.get("gpus_only", ())),
            )
            for row in entry["os"]
        ),
        pytorch=tuple(entry["pytorch"]),
        drivers=tuple(entry["kernel_driver_compat"]),
        drivers_at_release=tuple(entry.get("kernel_driver_listed_at_release") or ()),
        sources=tuple(entry["sources"]),
        notes=tuple(entry["notes"]),
        unknown=tuple(entry["unknown_cells"]),
    )


def _gpu(row: Mapping[str, Any]) -> GpuRow:
    return GpuRow(
        model=row["model"],
        gfx=row["gfx"],
        kind=row["class"],
        support=row["support"],
        note=row["note"],
        os_only=tuple(row.get("os_only", ())),
        os_except=tuple(row.get("os_except", ())),
    )
