"""A program that writes into its own tree: brought up by following what rocmrun says, and searched for what it needs."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import docker
import pytest

from tests.docker.derived_images import derived, profile_of
from tests.docker.privilege_jobs import table
from tests.workspace import Workspace

# It keeps state beside itself, as programs do that were made for a container of their own.
PROGRAM = "#!/bin/sh\necho started >>/app/state/db && wc -l </app/state/db"
INSTALL = (
    f"mkdir -p /app/state && chmod 1777 /app/state && printf '%s\\n' '{PROGRAM}' >/app/serve && chmod 755 /app/serve"
    # Root's own: a directory with nothing in it, and a setting that the image brings.
    " && mkdir -p /app/out /app/conf && echo first >/app/conf/live"
)
USER = 65532
# What the page of the finding and docs/troubleshooting.md name, the narrowest first.
LADDER = ("mount", "tmpfs", "volume", "rootfs:rw")


@pytest.fixture(scope="module")
def image(engine: docker.DockerClient, tiny_image: str) -> Iterator[tuple[str, str]]:
    """An image with the program."""
    with derived(engine, tiny_image, ['CMD ["/app/serve"]'], run=INSTALL) as made:
        yield made


@pytest.fixture
def profile(workspace: Workspace, image: tuple[str, str]) -> str:
    """A locked profile for the program, with nothing said about its state."""
    return profile_of(workspace, image)


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


@dataclass(frozen=True, kw_only=True)
class Searched:
    """A job, and what is found for it from a writable root and root on.

    Attributes:
        as_root: Whether the minimal side is root.
        note: What the certificate says beside the privilege that is named first.
    """

    script: str
    needs: tuple[str, ...]
    note: str
    as_root: bool = False


REWRITES = "grep -q first /app/conf/live && echo second >/app/conf/live"
# Measured with Docker 20.10 on cgroup v1, overlay2.
SEARCHED = {
    # The directories are root's: a tmpfs is the user's own, so that not even root is needed.
    "files of its own": Searched(
        script="echo 1 >/app/out/db && mkdir -p /srv/new/deep && echo 2 >/srv/new/deep/x",
        needs=("tmpfs:/app/out", "tmpfs:/srv"),
        note="16 MiB of memory at most, noexec; it hides what the image has there; what the job writes there is lost",
    ),
    "a file of the image": Searched(
        script=REWRITES,
        needs=("rootfs:rw", "user:root"),
        note="a tmpfs at /app/conf was tried in its place and does not do: grep: /app/conf/live: No such file",
    ),
    "a file of the image, as root": Searched(
        script=REWRITES, needs=("rootfs:rw",), note="a tmpfs at /app/conf was tried", as_root=True
    ),
    "a file at the root, as root": Searched(
        script="echo 1 >/here",
        needs=("rootfs:rw",),
        note="no tmpfs was tried in its place (/: a directory of the system is never covered)",
        as_root=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHED)
def test_a_search_ends_with_a_tmpfs_where_one_does(
    workspace: Workspace, image: tuple[str, str], name: str
) -> None:
    """What the engine lists of the permissive run says where; whether the job passes says whether."""
    case = SEARCHED[name]
    wide = profile_of(workspace, image, table("rootfs:rw", "user:root"))
    root = workspace.write(f'extends = "{wide}"\n{table("user:root")}', name="root")

    done = workspace.rocmrun(
        "diff-privileges", wide, *([root] if case.as_root else []), "--retries", "0", "--repeats", "2",
        "--json", "--", "sh", "-c", case.script,
    )  # fmt: skip

    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert case.needs == tuple(found["minimal"])
    assert found["one_minimal"]
    verdicts = {verdict["privilege"]: verdict for verdict in found["verdicts"]}
    kept = verdicts[case.needs[0]]
    assert (kept["verdict"], kept["cause"]) == ("required", "read-only root")
    assert kept["warning"].startswith(case.note)
    if name == "files of its own":
        assert verdicts["user:root"]["verdict"] == verdicts["rootfs:rw"]["verdict"] == "removable"
        assert "the engine lists a path changed there" in kept["warning"]
        assert [place["new"] for place in found["tmpfs"]["places"]] == [False, True]
        assert found["tmpfs"]["left_out"] == []
