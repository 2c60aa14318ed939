"""Layers are downloaded, then unpacked; each phase is the sum over all layers."""

from rocmrun.core.pull_progress import PullProgress
from rocmrun.core.run import PullEvent
from rocmrun.core.text import MIB


def told(*events: tuple[str, str] | tuple[str, str, int, int | None]) -> str:
    progress = PullProgress()
    for layer, status, *sizes in events:
        current, total = sizes or (None, None)
        progress.add(PullEvent(layer=layer, status=status, current=current, total=total))
    return str(progress)


def test_layers_count_from_the_first_word() -> None:
    """What the engine says of no layer ("Pulling from team/x" carries the tag) is no layer."""
    assert told() == "downloaded 0 of 0 layers"
    assert told(("1", "Pulling from team/x")) == "downloaded 0 of 0 layers"
    assert told(("a", "Pulling fs layer"), ("b", "Waiting")) == "downloaded 0 of 2 layers"


def test_sums_are_over_all_layers() -> None:
    """Also over those that are through: their last event need not have come with the last byte."""
    events = (
        ("a", "Downloading", 1 * MIB, 4 * MIB),
        ("b", "Downloading", 3 * MIB, 8 * MIB),
        ("b", "Download complete"),
        ("c", "Waiting"),
    )

    assert told(*events) == "downloaded 9 MiB of 12 MiB, 1 of 3 layers"


def test_unpacking_is_the_second_phase() -> None:
    events = (
        ("a", "Downloading", 4 * MIB, 4 * MIB),
        ("b", "Downloading", 2 * MIB, 8 * MIB),
        ("a", "Extracting", 1 * MIB, 4 * MIB),
    )

    assert told(*events) == (
        "downloaded 6 MiB of 12 MiB, 1 of 2 layers; unpacked 1 MiB of 4 MiB, 0 of 2 layers"
    )
    assert told(*events, ("a", "Pull complete")) == (
        "downloaded 6 MiB of 12 MiB, 1 of 2 layers; unpacked 4 MiB of 4 MiB, 1 of 2 layers"
    )


def test_a_layer_that_is_here_is_through() -> None:
    assert told(("a", "Already exists")) == "downloaded 1 of 1 layer; unpacked 1 of 1 layer"


def test_an_engine_that_names_no_total() -> None:
    """containerd's store leaves it out at times: what came is what there is."""
    events = (("a", "Downloading", 2 * MIB, None), ("b", "Downloading", 1 * MIB, 4 * MIB))

    assert told(*events) == "downloaded 3 MiB of 6 MiB, 0 of 2 layers"


def test_more_than_all_is_all() -> None:
    assert told(("a", "Downloading", 5, 4)) == "downloaded 4 B of 4 B, 0 of 1 layer"
