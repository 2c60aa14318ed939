"""What image, profile and caller bring along, and what a container sees of it: variables, volumes, entrypoint, HOME."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import docker
import pytest

from rocmrun.core import baseline
from tests.docker.derived_images import derived, profile_of
from tests.docker.gpu_hosts import gpu_host, render_minors
from tests.docker.inside import look
from tests.docker.jobs import Jobs
from tests.hosts import FakeNode
from tests.workspace import Workspace

INDEXED = (
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "CUDA_VISIBLE_DEVICES",
)
RUNTIMES = {"AMD_VISIBLE_DEVICES": "none", "NVIDIA_VISIBLE_DEVICES": "void"}
ALL = (*INDEXED, *RUNTIMES)


def seen_with_two_gpus(
    engine: docker.DockerClient, workspace: Workspace, base: str, baked: str
) -> dict[str, Any]:
    """What a container with two GPUs sees when its image sets every variable to *baked*."""
    node = FakeNode(gid=4711)
    root = gpu_host(workspace.path / "host", render_minors(2), kfd=node, render=node)
    changes = [f"ENV {name}={baked}" for name in ALL]
    with derived(engine, base, changes) as image:
        profile = profile_of(workspace, image, accelerator="rocm", select="all")
        return look(workspace, profile, "--host-root", str(root))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")
@pytest.mark.parametrize("baked", ["", "7", "all"], ids=["empty", "wrong", "all"])
def test_baked_visibility_becomes_what_was_passed(
    engine: docker.DockerClient, workspace: Workspace, python_image: str, baked: str
) -> None:
    """A variable cannot be unset from outside, and an empty one hides every GPU from HIP."""
    environment = seen_with_two_gpus(engine, workspace, python_image, baked)["env"]

    assert {name: environment[name] for name in ALL} == dict.fromkeys(INDEXED, "0,1") | RUNTIMES


def test_baked_visibility_without_a_gpu_hides_all(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """-1 is no device, in words that every library reads."""
    changes = [f"ENV {name}=0" for name in INDEXED]
    with derived(engine, python_image, changes) as image:
        environment = look(workspace, profile_of(workspace, image))["env"]

    assert {name: environment[name] for name in INDEXED} == dict.fromkeys(INDEXED, "-1")


def test_what_is_not_baked_stays_absent(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """A variable more is one more that a scheduler or a library may trip over."""
    with derived(engine, python_image, ["ENV HIP_VISIBLE_DEVICES=3"]) as image:
        environment = look(workspace, profile_of(workspace, image))["env"]

    assert sorted(name for name in ALL if name in environment) == ["HIP_VISIBLE_DEVICES"]


def test_the_profiles_own_variables_win(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """Over the image's, and over our corrections of them."""
    tables = '[container.env]\nHIP_VISIBLE_DEVICES = "1"\nPLAIN = "profile"\n'
    with derived(engine, python_image, ["ENV HIP_VISIBLE_DEVICES=3 PLAIN=image"]) as image:
        environment = look(workspace, profile_of(workspace, image, tables))["env"]

    assert (environment["HIP_VISIBLE_DEVICES"], environment["PLAIN"]) == ("1", "profile")


def test_directories_of_root_leave_the_path(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """A user that is not root cannot enter them, wherever they are; some programs fail on what they cannot list."""
    baked = "/root/.local/bin:/var/cache/ldconfig:/opt/venv/bin:/usr/local/bin:/usr/bin:/bin"
    with derived(engine, python_image, [f"ENV PATH={baked}"]) as image:
        environment = look(workspace, profile_of(workspace, image))["env"]

    assert environment["PATH"] == "/opt/venv/bin:/usr/local/bin:/usr/bin:/bin"


def volumes(engine: docker.DockerClient) -> set[str]:
    """Names of the engine's anonymous volumes: 64 hexadecimal digits."""
    found: Sequence[dict[str, Any]] = engine.api.volumes()["Volumes"] or ()
    return {volume["Name"] for volume in found if len(volume["Name"]) == 64}


def test_a_volume_of_the_image_is_covered(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """It would be writable, executable and on disk, in spite of the read-only image, and stay behind."""
    before = volumes(engine)
    with derived(engine, python_image, ["VOLUME /data /var/lib/model"]) as image:
        profile = profile_of(workspace, image)
        seen = look(workspace, profile, write=["/data"], run=["/data"])
        plan = json.loads(workspace.rocmrun("plan", profile, "--json", check=True).stdout)["plan"]

    assert seen["write"] == {"/data": "ok"}
    assert seen["run"] == {"/data": "EACCES"}
    for path in ("/data", "/var/lib/model"):
        assert {"noexec", "nosuid", "nodev"} <= set(seen["mounts"][path])
        assert any(f"the image declares {path} as a VOLUME" in note for note in plan["notes"])
    assert volumes(engine) <= before


def test_a_mount_takes_the_place_of_the_images_volume(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """What the user mounts there is there."""
    folder = workspace.path / "data"
    folder.mkdir()
    (folder / "file").write_text("mine")
    with derived(engine, python_image, ["VOLUME /data"]) as image:
        profile = profile_of(workspace, image)
        done = workspace.rocmrun(
            "launch", profile, "--no-probe", "-v", f"{folder}:/data:ro", "--", "cat", "/data/file"
        )

    assert (done.returncode, done.stdout) == (0, "mine")


def test_the_images_entrypoint_stays_in_front(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """As with `docker run`: words after the profile replace CMD alone."""
    changes = ['ENTRYPOINT ["echo", "entry"]', 'CMD ["baked"]', "WORKDIR /bin"]
    with derived(engine, tiny_image, changes) as image:
        profile = profile_of(workspace, image)
        baked = workspace.rocmrun("launch", profile, "--no-probe")
        given = workspace.rocmrun("launch", profile, "--no-probe", "--", "given")
        shell = workspace.rocmrun(
            "launch", profile, "--no-probe", "--entrypoint", "sh", "--", "-c", "pwd"
        )

    assert [done.stdout for done in (baked, given, shell)] == [
        "entry baked\n",
        "entry given\n",
        "/bin\n",
    ]


@pytest.mark.parametrize(
    ("user", "ids"), [("games", [5, 60]), ("1234:2345", [1234, 2345]), ("games:daemon", [5, 1])]
)
def test_the_images_user_is_looked_up_in_the_image(
    engine: docker.DockerClient, workspace: Workspace, python_image: str, user: str, ids: list[int]
) -> None:
    """By name in its own files, before the plan: what starts is a number."""
    with derived(engine, python_image, [f"USER {user}"]) as image:
        profile = profile_of(workspace, image, '[container]\nuser = "image"\n')
        seen = look(workspace, profile)

    assert [seen["uids"][0], seen["gids"][0]] == ids


def test_an_image_whose_user_is_root_is_refused(
    engine: docker.DockerClient, workspace: Workspace, python_image: str
) -> None:
    """`user = "image"` is no way to become root; the grant is."""
    with derived(engine, python_image, ["USER root"]) as image:
        profile = profile_of(workspace, image, '[container]\nuser = "image"\n')
        refused = workspace.rocmrun("launch", profile, "--no-probe", "--", "true")

    assert refused.returncode == 125
    assert "error[policy]: the image's USER is root" in refused.stderr


def test_variables_given_and_taken_from_the_caller(jobs: Jobs, tmp_path: Path) -> None:
    """NAME takes the caller's value, which is in no plan, report or message; an unset one is said."""
    report = tmp_path / "report.json"
    secret = "hunter2-of-this-test"
    options = ("-e", "GIVEN=a b=c", "-e", "TOKEN", "--report", str(report))
    seen = look(jobs.workspace, jobs.python, *options, env={"TOKEN": secret})
    planned = jobs.rocmrun("plan", jobs.python, *options[:4], "--json", env={"TOKEN": secret})
    unset = jobs.launch(jobs.python, "-e", "NOT_SET", "--", "true")
    failed = jobs.launch(jobs.python, "-e", "TOKEN", "--", "no-such-command", env={"TOKEN": secret})

    assert (seen["env"]["GIVEN"], seen["env"]["TOKEN"]) == ("a b=c", secret)
    assert "error[secret-missing]: NOT_SET" in unset.stderr
    assert secret not in planned.stdout + planned.stderr + report.read_text() + failed.stderr
    assert "env-from:TOKEN" in planned.stdout


def test_an_empty_entrypoint_clears_the_images(
    engine: docker.DockerClient, workspace: Workspace, tiny_image: str
) -> None:
    """`--entrypoint ""` as docker has it; a profile's list of several words stays whole."""
    profile = workspace.profile(
        tiny_image, '[container]\nentrypoint = ["echo", "first"]\ncommand = ["second"]\n'
    )
    run = workspace.rocmrun
    own = run("launch", profile, "--no-probe", check=True)
    cleared = run(
        "launch", profile, "--no-probe", "--entrypoint", "", "--", "echo", "x", check=True
    )
    other = run(
        "launch", profile, "--no-probe", "--entrypoint", "basename", "--", "/a/b", check=True
    )

    assert (own.stdout, cleared.stdout, other.stdout) == ("first second\n", "x\n", "b\n")


def test_the_cache_is_found_again(jobs: Jobs) -> None:
    """HOME outlives the container: what one launch writes, the next one reads."""
    jobs.launch(jobs.tiny, "--", "sh", "-c", "echo compiled > $HOME/kernel", check=True)

    assert jobs.launch(jobs.tiny, "--", "sh", "-c", "cat $HOME/kernel").stdout == "compiled\n"


def test_a_cache_in_memory_is_not(workspace: Workspace, python_image: str) -> None:
    """`[cache] mode = "tmpfs"`: HOME is private to the user and gone with the container."""
    profile = workspace.profile(python_image, '[cache]\nmode = "tmpfs"\n')
    first = look(workspace, profile, write=[baseline.HOME], run=[baseline.HOME])
    listing = workspace.rocmrun("launch", profile, "--no-probe", "--", "ls", "-A", baseline.HOME)

    assert (first["write"], first["run"]) == ({baseline.HOME: "ok"}, {baseline.HOME: "ok"})
    assert {"nosuid", "nodev"} <= set(first["mounts"][baseline.HOME])
    assert (listing.returncode, listing.stdout) == (0, "")
