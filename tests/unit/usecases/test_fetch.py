"""Fetch: one container a repository, with the token and without the server's surroundings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.errors import FetchFailed, UsageError
from rocmrun.usecases.fetch import FetchRequest, fetch, fetch_plan
from tests.fakes import FakeEngine, Script
from tests.unit.usecases.stage import CPU_JOB, Stage, an_engine


@pytest.fixture
def model(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile that serves a model from a directory that everybody may write to."""
    monkeypatch.delenv("HF_TOKEN", raising=False)
    path = tmp_path / "model"
    path.mkdir()
    path.chmod(0o777)
    stage.profile(
        CPU_JOB + '[container]\ncommand = ["serve"]\nenv_from = ["KEY"]\n'
        f'[[mounts]]\nsource = "{path}"\ntarget = "/model"\n'
    )
    return path


def run(stage: Stage, engine: FakeEngine, *repos: str, **changes: Any) -> None:
    """Fetch in the stage's folder, with a token."""
    request = FetchRequest(ask=stage.ask(), repos=repos, **changes)
    environment = {"HF_TOKEN": "t", "KEY": "k"}
    fetch(request, connect=lambda: engine, voice=stage.heard.voice, environment=environment)


def test_each_repository_has_a_container_of_its_own(stage: Stage, model: Path) -> None:
    """On the bridge, writing to the model's mount; nothing is left."""
    engine = an_engine()

    run(stage, engine, "a/one", "b/two", revision="v1")

    first, second = (each.request for each in engine.removed if each.role == "workload")
    assert first["Cmd"][-5:] == ["a/one", "--local-dir", "/model/one", "--revision", "v1"]
    assert second["Cmd"][-5:] == ["b/two", "--local-dir", "/model/two", "--revision", "v1"]
    assert first["HostConfig"]["NetworkMode"] == "bridge"
    mounts = {m["Target"]: m["ReadOnly"] for m in first["HostConfig"]["Mounts"]}
    assert mounts["/model"] is False
    assert first["Labels"]["io.rocmrun.profile"] == "job (fetch)"
    assert engine.kept == []
    assert f"fetching a/one into {model}" in stage.heard.words


def test_a_downloader_that_fails_ends_it(stage: Stage, model: Path) -> None:
    """Those after it are not begun."""
    engine = an_engine(scripts={"workload": Script(exit_code=3)})

    with pytest.raises(FetchFailed, match="a/one ended with code 3"):
        run(stage, engine, "a/one", "b/two")
    assert engine.calls.count("start workload") == 1
    assert engine.kept == []


def test_two_that_would_mix_are_refused_before_an_engine_is_asked(
    stage: Stage, model: Path
) -> None:
    """One directory for two models is neither."""
    with pytest.raises(UsageError, match="one directory"):
        run(stage, an_engine(), "a/same", "b/same")


def test_the_plan_of_a_download_is_shown_and_not_run(stage: Stage, model: Path) -> None:
    """With the rights that it would have: the token, and nothing that the server holds."""
    engine = an_engine()
    request = FetchRequest(ask=stage.ask(), repos=("a/one",))

    prepared = fetch_plan(request, engine, environment={"HF_TOKEN": "t"})

    grants = {grant.what for grant in prepared.plan.grants}
    assert {"mount:/model:rw", "network:bridge", "env-from:HF_TOKEN"} <= grants
    assert not {what for what in grants if what.startswith("secret:") or what == "env-from:KEY"}
    assert "create workload" not in engine.calls
    assert replace(prepared.plan, notes=()).devices == ()
