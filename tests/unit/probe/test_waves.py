"""How many processes start at once, and how many devices there seem to be."""

from pathlib import Path

import pytest

from rocmrun.probe.parts.waves import MAX_WAVE, fitting_wave, likely_devices, wave_size


def test_no_more_processes_than_devices_and_one_at_least() -> None:
    assert (wave_size(0), wave_size(1)) == (1, 1)
    assert wave_size(1000) <= MAX_WAVE


@pytest.mark.parametrize(("accelerator", "count"), [("rocm", 2), ("cuda", 1)])
def test_devices_are_guessed_by_their_nodes(tmp_path: Path, accelerator: str, count: int) -> None:
    """Cards, control nodes and directories are none."""
    for name in ("dri/renderD128", "dri/renderD129", "dri/card0", "nvidia0", "nvidiactl", "kfd"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert likely_devices(accelerator, tmp_path) == count


def test_no_nodes_are_no_devices(tmp_path: Path) -> None:
    assert likely_devices("rocm", tmp_path) == 0


@pytest.mark.parametrize(
    ("count", "free", "at_once"),
    [(64, 16 << 30, 4), (64, 1 << 30, 1), (64, -5, 1), (64, 1 << 40, 16), (2, 1 << 40, 2)],
)
def test_a_wave_is_what_fits_into_half_of_the_memory(count: int, free: int, at_once: int) -> None:
    assert fitting_wave(count, free) == at_once
