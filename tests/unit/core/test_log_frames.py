"""A log comes in frames, and the frames in chunks that end anywhere."""

import pytest

from rocmrun.core.log_frames import frames_of

LOG = b"\x01\0\0\0\0\0\0\x04out\n" + b"\x02\0\0\0\0\0\0\0" + b"\x02\0\0\0\0\0\x01\x00" + b"e" * 256
FRAMES = [(1, b"out\n"), (2, b""), (2, b"e" * 256)]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100, len(LOG)])
def test_frames_are_whole_however_chunks_are_cut(size: int) -> None:
    chunks = [LOG[start : start + size] for start in range(0, len(LOG), size)]

    assert list(frames_of(chunks)) == FRAMES


def test_half_a_frame_in_the_end_is_none() -> None:
    """The engine hung up."""
    assert list(frames_of([LOG[:-1]])) == FRAMES[:-1]
    assert list(frames_of([b"", LOG[:3]])) == []
