"""Proofs that are kept: what they measured in an image."""

from pathlib import Path

from rocmrun.core.lock import LockedFacts
from rocmrun.core.probing.proof_record import ProofRecord
from rocmrun.core.report.model import ProbeCheck, ProbeReport, ReportStatus
from rocmrun.usecases.proofs import measured_in
from tests.registries import digest

A, B = digest("a"), digest("b")


def keep(
    directory: Path,
    key: str,
    torch: str,
    *,
    image: str = A,
    at: float = 1.0,
    status: ReportStatus = "pass",
) -> None:
    check = ProbeCheck(group="build", name="torch", status="pass", evidence={"version": torch})
    report = ProbeReport(status=status, checks=(check,) if torch else ())
    record = ProofRecord(key=key, image=image, boot_id="b", at_seconds=at, report=report)
    (directory / f"{key}.json").write_text(record.model_dump_json())


def torch_in(directory: Path, image: str = A) -> str | None:
    found = measured_in(image, directory=directory)
    return None if found is None else found.torch


def test_the_last_probe_of_the_very_image_counts(tmp_path: Path) -> None:
    keep(tmp_path, "a", "2.1", at=3.0)
    keep(tmp_path, "b", "2.2", at=5.0)
    keep(tmp_path, "c", "2.3", at=4.0)
    keep(tmp_path, "d", "2.4", at=9.0, image=B)

    assert torch_in(tmp_path) == "2.2"
    assert torch_in(tmp_path, B) == "2.4"
    assert torch_in(tmp_path, digest("c")) is None


def test_a_probe_that_failed_or_measured_nothing_says_nothing(tmp_path: Path) -> None:
    keep(tmp_path, "a", "2.1", at=3.0)
    keep(tmp_path, "b", "2.2", at=5.0, status="fail")
    keep(tmp_path, "c", "", at=6.0)

    assert torch_in(tmp_path) == "2.1"


def test_records_without_an_image_are_of_no_image(tmp_path: Path) -> None:
    """Those that an older version kept."""
    keep(tmp_path, "a", "2.1", image="")

    assert torch_in(tmp_path) is None


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    keep(tmp_path, "a", "2.1")
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.json").mkdir()

    assert torch_in(tmp_path) == "2.1"
    assert measured_in(A, directory=tmp_path / "absent") is None


def test_a_measurement_says_that_it_is_one(tmp_path: Path) -> None:
    keep(tmp_path, "a", "2.1")

    assert measured_in(A, directory=tmp_path) == LockedFacts(
        torch="2.1", sources={"torch": "probe"}
    )
