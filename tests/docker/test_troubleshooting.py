"""Mistakes that only an engine shows: each gives what docs/troubleshooting.md says."""

import os
from pathlib import Path

import pytest

from tests.docker.inside import workspace_at
from tests.mistakes import Mistake, mistakes

IMAGE = "docker.io/rocm/pytorch:rocm7.2.4_ubuntu24.04_py3.12_pytorch_release_2.9.1"
OWNED = "A model that belongs to somebody else"
MODELS_GROUP = 47110


@pytest.mark.parametrize("mistake", mistakes(needs_engine=True), ids=lambda each: each.title)
def test_a_mistake_reads_as_shown(mistake: Mistake, tmp_path: Path, python_image: str) -> None:
    """Word for word, with a small image in the place of the page's and no GPU."""
    if mistake.title == OWNED and os.geteuid() != 0:
        pytest.skip("only root can give a directory away")

    def adapt(text: str) -> str:
        text = text.replace(IMAGE, python_image)
        return (
            text.replace("extends", 'accelerator = "cpu"\nextends', 1)
            + '\n[gpus]\nselect = ["none"]\n'
        )

    work = mistake.stand(tmp_path, adapt)
    rocmrun = workspace_at(work).rocmrun
    env = {"HOME": str(work.parent), "XDG_CACHE_HOME": None, "XDG_STATE_HOME": None}
    if "unlocked" not in mistake.profiles:
        rocmrun("lock", "serve", env=env, check=True)
    if mistake.title == OWNED:
        (work / "models/qwen3").chmod(0o750)
        os.chown(work / "models/qwen3", 0, MODELS_GROUP)

    done = rocmrun(*mistake.words, env=env)

    printed = (done.stdout + done.stderr).replace(python_image, IMAGE)
    assert mistake.read(printed, tmp_path) == mistake.shown
    assert done.returncode != 0
