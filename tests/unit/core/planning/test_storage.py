"""Mounts, tmpfs and the cache: nothing is made up, nothing is mounted twice, nothing lands on disk by accident."""

from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.path_facts import PathFacts
from rocmrun.core.plan import PlannedMount, PlannedTmpfs
from rocmrun.errors import MountSourceInvalid, UsageError
from tests.builders import (
    DIGEST,
    ENGINE,
    GIB,
    IMAGE,
    PLANNED_IMAGE,
    gpu,
    granted,
    host,
    plan,
    privileges,
)

MODELS = {"source": "/srv/models", "target": "/models"}
IN_MEMORY = {"cache": {"mode": "tmpfs"}}


def path(kind: Any, source: str = "/srv/models") -> dict[str, PathFacts]:
    return {source: PathFacts(path=source, kind=kind)}


def tmpfs(**tables: Any) -> dict[str, PlannedTmpfs]:
    return {item.target: item for item in plan(tables).tmpfs}


def test_a_mount_is_read_only_unless_it_says_otherwise() -> None:
    made = plan(
        {
            "mounts": [
                {"source": "/srv/work", "target": "/work", "mode": "rw", "selinux": "shared"},
                MODELS,
                {"type": "volume", "source": "data", "target": "/data"},
            ],
            **IN_MEMORY,
        }
    )

    assert made.mounts == (
        PlannedMount(target="/data", source="data", kind="volume"),
        PlannedMount(target="/models", source="/srv/models"),
        PlannedMount(target="/work", source="/srv/work", read_only=False, selinux="shared"),
    )
    assert {"mount:/data:ro", "mount:/models:ro", "mount:/work:rw"} <= set(granted(made))
    reasons = {grant.what: grant.reason for grant in made.grants}
    assert (reasons["mount:/data:ro"], reasons["mount:/models:ro"]) == (
        "volume data",
        "bind of /srv/models",
    )


@pytest.mark.parametrize(
    ("kind", "source", "said"),
    [
        ("missing", "/srv/models", "does not exist"),
        ("loop", "/srv/models", "is a loop of symbolic links"),
        ("denied", "/srv/models", "a directory on the way may not be entered by this user"),
        ("file", "/srv/models/", "is a file, not a directory"),
    ],
)
def test_a_source_that_cannot_be_mounted_is_refused(kind: str, source: str, said: str) -> None:
    with pytest.raises(MountSourceInvalid) as caught:
        plan({"mounts": [{**MODELS, "source": source}]}, paths=path(kind, source))

    assert caught.value.details == (f"{source} → /models: {said}",)
    assert caught.value.message == "a mount's source cannot be used"


@pytest.mark.parametrize("kind", ["directory", "file", "socket"])
def test_a_source_that_exists_is_mounted(kind: str) -> None:
    assert "mount:/models:ro" in granted(plan({"mounts": [MODELS]}, paths=path(kind)))


def test_every_bad_source_is_named_at_once() -> None:
    others = [MODELS, {"source": "/srv/x", "target": "/x"}, {"type": "volume", "source": "v", "target": "/v"}]  # fmt: skip

    with pytest.raises(MountSourceInvalid) as caught:
        plan({"mounts": others}, paths=path("missing") | path("loop", "/srv/x"))

    assert caught.value.message == "2 mount sources cannot be used"
    assert len(caught.value.details) == 2


def test_the_cache_is_private_to_profile_digest_architecture_and_user() -> None:
    sources = {
        plan(**changes).mounts[0].source
        for changes in (
            {},
            {"name": "other"},
            {"profile_path": "/srv/a/profiles/job.toml"},
            {"profile_path": "/srv/b/profiles/job.toml"},
            {"image": replace(PLANNED_IMAGE, digest=DIGEST.replace("7f", "80"))},
            {"host": host([gpu(gfx="gfx90a")])},
            {"image": replace(PLANNED_IMAGE, digest=None)},
            {"image": replace(PLANNED_IMAGE, digest=None, image_id=None)},
        )
    } | {plan({"container": {"user": "7:7"}}).mounts[0].source}

    assert len(sources) == 9
    assert "/home/me/.cache/rocmrun/job/unlocked/gfx942/1000" in sources


@pytest.mark.parametrize(
    ("tables", "gpus", "expected"),
    [
        ({}, [gpu(0), gpu(1, gfx="gfx90a"), gpu(2)], "gfx90a+gfx942"),
        ({}, [gpu(gfx=None)], "unknown"),
        ({"accelerator": "cpu"}, [], "cpu"),
    ],
)
def test_the_cache_is_named_for_what_kernels_are_compiled_for(
    tables: dict[str, Any], gpus: list[Any], expected: str
) -> None:
    (cache,) = plan(tables, host=host(gpus)).mounts

    assert cache.source.split("/")[-2] == expected
    assert (cache.target, cache.read_only, cache.cache) == ("/home/rocmrun", False, True)


def test_the_cache_says_who_wanted_it() -> None:
    made = plan({"cache": {"mode": "persistent"}}, provenance={"cache.mode": "profile base"})

    (grant,) = [grant for grant in made.grants if grant.what == "mount:/home/rocmrun:rw"]
    assert grant.asked_by == "profile base: cache.mode"


@pytest.mark.parametrize(
    "tables",
    [
        {"mounts": [{"source": "/srv/home", "target": "/home/rocmrun"}]},
        {"container": {"tmpfs": {"/home/rocmrun": "2GiB"}}},
    ],
)
def test_a_home_of_the_profile_takes_the_place_of_the_cache(tables: dict[str, Any]) -> None:
    made = plan(tables)

    assert [mount for mount in made.mounts if mount.cache] == []
    targets = [mount.target for mount in made.mounts] + [item.target for item in made.tmpfs]
    assert sorted(targets) == ["/home/rocmrun", "/tmp"]


def test_without_a_cache_home_is_in_memory_and_private() -> None:
    made = plan(IN_MEMORY)

    assert made.mounts == ()
    home = PlannedTmpfs(target="/home/rocmrun", size_bytes=made.tmpfs[1].size_bytes, executable=True, mode=0o700)  # fmt: skip
    assert home in made.tmpfs
    assert "tmpfs-exec:/home/rocmrun" in granted(made)


@pytest.mark.parametrize(
    ("memory", "expected"), [("64GiB", 8 * GIB), ("1TiB", 16 * GIB), ("1GiB", GIB // 4)]
)
def test_tmp_takes_an_eighth_of_the_memory_within_bounds(memory: str, expected: int) -> None:
    assert tmpfs(container={"memory": memory})["/tmp"].size_bytes == expected


def test_tmp_may_be_resized_and_stays_executable() -> None:
    """Extensions are compiled and loaded there; two grants for it would be one too many."""
    made = plan({"container": {"tmpfs": {"/tmp": "32GiB"}}})

    assert made.tmpfs == (PlannedTmpfs(target="/tmp", size_bytes=32 * GIB, executable=True),)
    (grant,) = [grant for grant in made.grants if "tmpfs" in grant.what]
    assert grant.what == "tmpfs-exec:/tmp"
    assert grant.asked_by == 'profile job: container.tmpfs."/tmp"'


def test_tmp_may_be_a_mount() -> None:
    made = plan({"mounts": [{"source": "/srv/tmp", "target": "/tmp", "mode": "rw"}]})

    assert made.tmpfs == ()


def test_another_tmpfs_is_not_executable_unless_that_is_granted() -> None:
    tables = {"container": {"tmpfs": {"/scratch": "1GiB", "/x": "1GiB"}}}

    made = plan({**tables, **privileges("tmpfs-exec:/x")})

    assert {"tmpfs:/scratch", "tmpfs-exec:/x"} <= set(granted(made))
    (grant,) = [grant for grant in made.grants if grant.what == "tmpfs-exec:/x"]
    assert grant.reason == "the test asks, 1 GiB"


def test_a_grant_for_a_tmpfs_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"tmpfs-exec names /y, which is not under \[container\] tmpfs"):  # fmt: skip
        plan(privileges("tmpfs-exec:/y"))


def test_each_volume_of_the_image_is_covered() -> None:
    """It would be an anonymous volume: writable, executable, on disk."""
    image = replace(IMAGE, volumes=("/data/", "/models", "/tmp", "/home/rocmrun"))

    made = plan({"mounts": [MODELS]}, image_facts=image)

    assert [item.target for item in made.tmpfs] == ["/data", "/tmp"]
    assert "tmpfs:/data" in granted(made)
    assert made.notes == (
        "the image declares /data as a VOLUME: it is empty here; mount something at /data to keep data",
    )


@pytest.mark.parametrize(
    ("state", "modules", "label", "said"),
    [
        ("enforcing", ("name=seccomp,profile=default", "name=selinux"), "none", True),
        ("enforcing", ("name=seccomp,profile=default", "name=selinux"), "shared", False),
        ("enforcing", ("name=seccomp,profile=default",), "none", False),
        ("permissive", ("name=seccomp,profile=default", "name=selinux"), "none", False),
        (None, ("name=seccomp,profile=default",), "none", False),
    ],
)
def test_a_bind_without_a_label_is_named_where_selinux_decides(
    state: Any, modules: tuple[str, ...], label: str, *, said: bool
) -> None:
    """Its label is not read, so nobody can say more."""
    made = plan(
        {"mounts": [{"source": "/srv/m", "target": "/m", "selinux": label}]},
        host=host(1, selinux=state),
        engine=replace(ENGINE, security_options=modules),
    )

    assert any("SELinux may refuse /m" in note for note in made.notes) == said
