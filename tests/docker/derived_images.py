"""Images that bring settings of their own, made of a test image without a build."""

import contextlib
import json
import secrets
from collections.abc import Iterator, Sequence

import docker

from tests.workspace import Workspace


@contextlib.contextmanager
def derived(
    engine: docker.DockerClient, base: str, changes: Sequence[str], *, run: str = "true"
) -> Iterator[tuple[str, str]]:
    """Make an image of *base* with Dockerfile instructions; yield its reference and id, and remove it.

    *run* is a shell's command that changes its files.
    """
    repository = f"localhost/rocmrun-test/{secrets.token_hex(6)}"
    container = engine.api.create_container(base, ["sh", "-c", run])["Id"]
    try:
        engine.api.start(container)
        assert engine.api.wait(container)["StatusCode"] == 0
        made = engine.api.commit(container, repository, tag="1", changes=list(changes))
    finally:
        engine.api.remove_container(container, v=True)
    try:
        yield f"{repository}:1", made["Id"]
    finally:
        engine.api.remove_image(f"{repository}:1", force=True)


def profile_of(
    workspace: Workspace,
    image: tuple[str, str],
    tables: str = "",
    *,
    accelerator: str = "cpu",
    select: str = "none",
) -> str:
    """Write a profile for a derived image, and the lock that pins it by its id: no registry has it."""
    reference, image_id = image
    name = workspace.write(
        f'extends = "base"\naccelerator = "{accelerator}"\n'
        f'[image]\nref = "{reference}"\n[gpus]\nselect = ["{select}"]\n{tables}\n',
        name="derived",
    )
    entry = {"ref": reference, "image-id": image_id, "source": "local"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    workspace.lockfile.write_text("version = 1\n\n[[image]]\n" + "\n".join(lines) + "\n")
    return name
