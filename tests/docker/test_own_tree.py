"""A program that writes into its own tree, brought up by following what rocmrun says about it."""

import contextlib
import os
import secrets
from collections.abc import Iterator

import docker
import pytest

from tests.docker.derived_images import derived, profile_of
from tests.workspace import Workspace

# It keeps state beside itself, as programs do that were made for a container of their own.
PROGRAM = "#!/bin/sh\necho started >>/app/state/db && wc -l </app/state/db"
INSTALL = f"mkdir -p /app/state && chmod 1777 /app/state && printf '%s\\n' '{PROGRAM}' >/app/serve && chmod 755 /app/serve"
USER = 65532
# What the page of the finding and docs/troubleshooting.md name, the narrowest first.
LADDER = ("mount", "tmpfs", "volume", "rootfs:rw")


@pytest.fixture
def profile(engine: docker.DockerClient, workspace: Workspace, tiny_image: str) -> Iterator[str]:
    """A locked profile for the program, with nothing said about its state."""
    with derived(engine, tiny_image, ['CMD ["/app/serve"]'], run=INSTALL) as image:
        yield profile_of(workspace, image)


@contextlib.contextmanager
def volume(engine: docker.DockerClient) -> Iterator[str]:
    """A name for a volume, which goes in the end."""
    name = f"rocmrun-test-{secrets.token_hex(6)}"
    try:
        yield name
    finally:
        engine.api.remove_volume(name)


def test_the_hint_leads_to_a_ladder_whose_rungs_all_hold(
    engine: docker.DockerClient, workspace: Workspace, profile: str
) -> None:
    """The launch names the cause, its page the rungs in order, and the program comes up on each of them."""
    run = workspace.rocmrun

    refused = run("launch", profile, "--no-probe")
    *words, hint = refused.stderr.splitlines()
    command = hint.rpartition(": rocmrun ")[2].split()
    page = run(*command, check=True).stdout

    assert (refused.returncode, refused.stdout) == (1, "")
    assert words[-1].endswith("/app/state/db: Read-only file system")
    assert hint.startswith("hint: likely cause: ")
    assert command == ["explain", "readonly-rootfs"]
    places = [page.index(f"{rung}") for rung in LADDER]
    assert places == sorted(places)

    with volume(engine) as name:
        state = workspace.path / "state"
        state.mkdir()
        if os.geteuid() == 0:
            # Root's containers run as another user, whose directory it must be.
            os.chown(state, USER, USER)
        rungs = {
            "mount": f'[[mounts]]\nsource = "{state}"\ntarget = "/app/state"\nmode = "rw"\n',
            "tmpfs": '[container.tmpfs]\n"/app/state" = "1MiB"\n',
            "volume": '[[mounts]]\ntype = "volume"\n'
            f'source = "{name}"\ntarget = "/app/state"\nmode = "rw"\n',
            "rootfs:rw": '[[privileges]]\ngrant = "rootfs:rw"\nreason = "keeps state in /app"\n',
        }
        for rung in LADDER:
            climbed = workspace.write(
                f'extends = "{profile}"\n{rungs[rung]}', name=rung.partition(":")[0]
            )
            up = run("launch", climbed, "--no-probe")
            assert (rung, up.returncode, up.stdout.strip()) == (rung, 0, "1")
            assert "hint:" not in up.stderr
    assert (state / "db").read_text() == "started\n"
