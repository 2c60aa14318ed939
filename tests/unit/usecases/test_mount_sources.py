"""What is mounted is what was judged, though a probe lies between."""

from pathlib import Path

import pytest

from rocmrun.core.command_line import Options
from rocmrun.core.path_facts import VolumeFacts
from rocmrun.errors import MountSourceInvalid
from tests.builders import probe_output
from tests.fakes import STDOUT, FakeEngine, Script
from tests.unit.usecases.stage import Stage, an_engine


def launched(stage: Stage, engine: FakeEngine, volume: str) -> int:
    return stage.launch(engine, ask=stage.ask(options=Options(volumes=(volume,))))


def test_the_engine_is_told_where_a_link_leads(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to("models")
    engine = an_engine()

    assert launched(stage, engine, f"{tmp_path}/link:/m:ro") == 0

    sources = {m["Target"]: m["Source"] for m in engine.made("workload").request["HostConfig"]["Mounts"]}  # fmt: skip
    assert sources["/m"] == f"{tmp_path}/models"


@pytest.mark.parametrize("swap", ["directory", "link", "gone"])
def test_a_source_that_is_swapped_during_the_probe_is_refused(
    stage: Stage, tmp_path: Path, swap: str
) -> None:
    models = tmp_path / "models"
    models.mkdir()

    def swapped() -> None:
        models.rename(tmp_path / "old")
        if swap == "directory":
            models.mkdir()
        elif swap == "link":
            models.symlink_to("/etc")

    engine = an_engine(
        scripts={"probe": Script(frames=[(STDOUT, probe_output())], on_start=swapped)}
    )

    with pytest.raises(MountSourceInvalid) as caught:
        launched(stage, engine, f"{models}:/m:ro")

    assert "changed while launching" in caught.value.message
    assert caught.value.details == (f"{models}: is not what it was when it was judged",)
    assert "start workload" not in engine.calls
    assert engine.kept == []


def test_a_volume_that_is_made_anew_during_the_probe_is_refused(stage: Stage) -> None:
    def swapped() -> None:
        options = {"o": "bind", "device": "/srv"}
        engine.volumes["v"] = VolumeFacts(name="v", driver="local", options=options)

    engine = an_engine(
        volumes=[VolumeFacts(name="v", driver="local")],
        scripts={"probe": Script(frames=[(STDOUT, probe_output())], on_start=swapped)},
    )

    with pytest.raises(MountSourceInvalid):
        launched(stage, engine, "v:/m:ro")
