"""The matrix read by people: by GPU, by release, by system."""

import pytest

from rocmrun.core.gpu_table import parse_gpu_table
from rocmrun.core.lock import LockedFacts, PinnedImage
from rocmrun.core.support.matrix import parse_matrix
from rocmrun.core.support.query import answers, asked_gpu, carriers
from rocmrun.errors import UsageError
from rocmrun.system.package_data import read_gpu_table, read_support_matrix
from tests.builders import DIGEST

MATRIX = parse_matrix(read_support_matrix())
TABLE = parse_gpu_table(read_gpu_table())


@pytest.mark.parametrize("word", ["MI300X", "mi300x", "AMD Instinct MI300X", "0x74A1", "gfx942"])
def test_a_gpu_has_several_names(word: str) -> None:
    assert asked_gpu(word, MATRIX, TABLE).targets == ("gfx942",)


def test_a_processor_is_known_by_the_matrix_alone() -> None:
    """No PCI id stands for one Ryzen."""
    asked = asked_gpu("Ryzen AI Max+ 395", MATRIX, TABLE)

    assert asked.targets == ("gfx1151",)
    assert {a.release.version for a in answers(MATRIX, asked)} == {"10.0.0", "7.14.1", "7.14.0"}


def test_what_nobody_knows_is_an_error_with_a_hint() -> None:
    with pytest.raises(UsageError, match='did you mean "mi300x"'):
        asked_gpu("mi300xx", MATRIX, TABLE)
    with pytest.raises(UsageError, match="has no ROCm"):
        answers(MATRIX, asked_gpu(None, MATRIX, TABLE), rocm="6.9")
    with pytest.raises(UsageError, match="lists 'ubuntu'"):
        answers(MATRIX, asked_gpu(None, MATRIX, TABLE), system="ubuntu")


def test_the_newest_release_comes_first() -> None:
    found = answers(MATRIX, asked_gpu(None, MATRIX, TABLE))

    assert [a.release.version for a in found][:3] == ["10.1.0", "10.0.0", "7.14.1"]
    assert len(found) == 40


def test_a_model_has_its_own_lines_and_those_of_its_target() -> None:
    """7.0 lists models, 7.2 targets: a line without a model is about every model."""
    rows = {
        a.release.version: [row.model for row in a.gpus]
        for a in answers(MATRIX, asked_gpu("MI325X", MATRIX, TABLE))
    }

    assert rows["7.0.0"] == ["AMD Instinct MI325X"]
    assert rows["7.2.4"] == [None]
    assert "6.2.0" not in rows


def test_systems_are_named_as_os_release_or_as_amd_does() -> None:
    asked = asked_gpu(None, MATRIX, TABLE)

    for word in ("ol 9", "Oracle Linux 9.4", "oracle linux 9"):
        (answer,) = answers(MATRIX, asked, rocm="7.0.2", system=word)
        assert [row.name for row in answer.os] == ["Oracle Linux 9"]


def test_images_that_carry_code_for_a_gpu_come_from_locks() -> None:
    """Targets are compared whole, generic ones by their members."""

    def pin(ref: str, *gfx: str) -> PinnedImage:
        facts = LockedFacts(gfx=gfx, sources={"gfx": "probe"}) if gfx else None
        return PinnedImage(ref=ref, digest=DIGEST, facts=facts)

    pins = [
        pin("docker.io/a/exact:1", "gfx90a", "gfx942:sramecc+:xnack-"),
        pin("docker.io/a/generic:1", "gfx9-4-generic"),
        pin("docker.io/a/other:1", "gfx1100"),
        pin("docker.io/a/silent:1"),
    ]

    found = carriers(pins, asked_gpu("MI300X", MATRIX, TABLE))

    assert found == (("docker.io/a/exact:1", "probe"), ("docker.io/a/generic:1", "probe"))
    assert carriers(pins, asked_gpu(None, MATRIX, TABLE)) == ()
