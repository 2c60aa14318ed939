"""Volumes: whether the container's user may use them is asked once they are there."""

from pathlib import Path

import pytest

from rocmrun.core.run import PathOwner
from rocmrun.errors import MountUnreadable
from tests.unit.usecases.stage import CPU_JOB, Stage, an_engine

VOLUME = CPU_JOB + '[[mounts]]\ntype = "volume"\nsource = "data"\ntarget = "/data"\n'
ROOTS = PathOwner(mode=0o755, uid=0, gid=0)


def test_a_volume_of_root_is_refused_where_it_is_to_be_written(
    stage: Stage, tmp_path: Path
) -> None:
    """Before the start, with the owner; nothing is left."""
    stage.profile(VOLUME + 'mode = "rw"\n')
    engine = an_engine(owners={"/data": ROOTS})

    with pytest.raises(MountUnreadable) as caught:
        stage.launch(engine)

    assert "volume data → /data: mode 0755, owner 0:0" in caught.value.details[0]
    assert "start workload" not in engine.calls
    assert engine.kept == []


@pytest.mark.parametrize(
    ("mode", "owner"),
    [("ro", ROOTS), ("rw", PathOwner(mode=0o777, uid=0, gid=0)), ("rw", None)],
)
def test_a_volume_that_may_be_used_is(stage: Stage, mode: str, owner: PathOwner | None) -> None:
    """Read by others, written by others, or unknown to the engine."""
    stage.profile(VOLUME + f'mode = "{mode}"\n')

    assert stage.launch(an_engine(owners={"/data": owner})) == 0
