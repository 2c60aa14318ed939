"""One GPU, one run: by locks while a launch starts, by labels while it runs, by what KFD lists."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core import labels
from rocmrun.core.host import HostFacts
from rocmrun.core.image import ImageFacts
from rocmrun.errors import GpuBusy
from rocmrun.system import gpu_locks
from rocmrun.usecases.gpu_guard import gpus_reserved, users
from tests.builders import IMAGE_ID, gpu, host, plan
from tests.fakes import FakeEngine

JOB = plan(host=host(2))
NONE = plan({"gpus": {"select": ["none"]}, "accelerator": "cpu"})


OTHER = "ab12" * 16
# Above the highest process id of Linux: no process of this machine.
NO_PROCESS = 1 << 22


def nowhere(_pid: int) -> None:
    """Find no process in a container."""


def container(name: str, minors: str, **changes: Any) -> dict[str, Any]:
    return {
        "Id": OTHER, "Names": [f"/{name}"], "State": "running",
        "Labels": {labels.MINORS: minors}, **changes,
    }  # fmt: skip


def reserved(
    directory: Path,
    *,
    engine: FakeEngine | None = None,
    job: Any = JOB,
    exclusive: bool = True,
    wait_seconds: float = 0,
    hosts: Iterator[HostFacts] | None = None,
    leaving: tuple[str, ...] = (),
) -> AbstractContextManager[Any]:
    return gpus_reserved(
        job,
        engine or FakeEngine(),
        exclusive=exclusive,
        wait_seconds=wait_seconds,
        read_host=lambda: next(hosts) if hosts else host(2),
        lock_directory=directory / "locks",
        leaving=leaving,
    )


def test_gpus_that_nobody_uses_are_reserved_until_they_are_released(tmp_path: Path) -> None:
    with reserved(tmp_path) as release:
        with pytest.raises(GpuBusy, match="another launch is starting on /dev/dri/renderD128"):
            reserved(tmp_path).__enter__()
        release()
        with reserved(tmp_path):
            pass


def test_two_launches_on_different_gpus_do_not_meet(tmp_path: Path) -> None:
    first = plan({"gpus": {"select": ["index:0"]}}, host=host(2))
    second = plan({"gpus": {"select": ["index:1"]}}, host=host(2))

    with reserved(tmp_path, job=first), reserved(tmp_path, job=second):
        assert len(list((tmp_path / "locks").iterdir())) == 2


@pytest.mark.parametrize("options", [{"exclusive": False}, {"job": NONE}])
def test_who_shares_or_has_no_gpu_reserves_none(tmp_path: Path, options: dict[str, Any]) -> None:
    engine = FakeEngine(others=[container("other", "128")])

    with reserved(tmp_path, engine=engine, **options) as release:
        release()

    assert not (tmp_path / "locks").exists()


def test_a_running_container_holds_its_gpus(tmp_path: Path) -> None:
    engine = FakeEngine(others=[container("other", "129,130")])

    with pytest.raises(GpuBusy, match="a selected GPU is in use") as caught:
        reserved(tmp_path, engine=engine).__enter__()

    assert caught.value.details == ("renderD129: container other (rocmrun stop other)",)
    assert "--wait" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "other",
    [container("other", "130"), container("ended", "128", State="exited"), container("odd", ",x")],
)
def test_a_container_with_other_gpus_or_one_that_ended_holds_none(other: dict[str, Any]) -> None:
    assert users(JOB, FakeEngine(others=[other]), host(2)) == []


def test_a_container_without_a_name_is_known_by_its_id() -> None:
    engine = FakeEngine(others=[container("", "128", Names=None)])

    assert users(JOB, engine, host(2)) == ["renderD128: container ab12ab12ab12 (rocmrun stop ab12ab12ab12)"]  # fmt: skip


def test_a_container_whose_image_has_the_labels_holds_none() -> None:
    """`docker commit` of one of ours bakes them; whoever runs that image got no GPU from us."""
    baked = {"io.rocmrun.role": "workload", "io.rocmrun.run": "1", labels.MINORS: "128"}
    image = ImageFacts(image_id="sha256:5", labels=tuple(baked.items()))
    other = container("other", "128", Labels=baked, ImageID="sha256:5")

    assert users(JOB, FakeEngine(images={"sha256:5": image}, others=[other]), host(2)) == []


def test_a_process_that_kfd_lists_holds_its_gpu() -> None:
    held = host([gpu(0), gpu(1, holders=(17, 4711)), gpu(2, holders=(5,))])

    assert users(JOB, FakeEngine(), held, find_container=nowhere) == [
        f"{gpu(1).label}: process 17, process 4711"
    ]


def test_a_process_in_a_container_is_named_with_it() -> None:
    """Also one of another engine, which this one does not know."""
    engine = FakeEngine()
    made = engine.create({"Image": IMAGE_ID, "HostConfig": {"PidsLimit": 1, "ShmSize": 1, "Ulimits": []}}, "foreign", "linux/amd64")  # fmt: skip
    held = host([gpu(0, holders=(17, 18, 19)), gpu(1)])
    where = {17: made.container_id, 18: "ab" * 32, 19: None}

    assert users(JOB, engine, held, find_container=where.get) == [
        f"{gpu(0).label}: process 17 in container foreign, process 18 in container abababababab, process 19"
    ]


@pytest.mark.parametrize("where", [None, OTHER])
def test_a_container_of_ours_is_not_named_a_second_time_as_a_process(where: str | None) -> None:
    """Whether or not anybody can tell which container the process is in."""
    engine = FakeEngine(others=[container("other", "128")])
    held = host([gpu(0, holders=(5,)), gpu(1)])

    assert users(JOB, engine, held, find_container=lambda _: where) == [
        "renderD128: container other (rocmrun stop other)"
    ]


def test_a_foreign_process_beside_a_container_of_ours_is_named_too() -> None:
    engine = FakeEngine(others=[container("other", "128")])
    held = host([gpu(0, holders=(5, 6)), gpu(1, holders=(7,))])
    where = {5: OTHER, 6: "ab" * 32}

    found = users(JOB, engine, held, find_container=where.get)

    assert found == [
        "renderD128: container other (rocmrun stop other)",
        f"{gpu(0).label}: process 6 in container abababababab",
        f"{gpu(1).label}: process 7",
    ]


def test_who_is_replaced_holds_nothing_against_its_successor(tmp_path: Path) -> None:
    """Neither by its label nor by its processes; anybody else still does."""
    engine = FakeEngine(others=[container("other", "128")])
    held = host([gpu(0, holders=(5,)), gpu(1)])

    assert users(JOB, engine, held, leaving=(OTHER,), find_container={5: OTHER}.get) == []
    found = users(JOB, engine, held, leaving=(OTHER,), find_container=nowhere)
    assert found == [f"{gpu(0).label}: process 5"]
    with reserved(tmp_path, engine=engine, leaving=(OTHER,)):
        pass


def test_waiting_ends_when_the_gpu_is_free(tmp_path: Path) -> None:
    busy = host([gpu(0, holders=(NO_PROCESS,)), gpu(1)])
    hosts = iter([busy, busy, host(2)])

    with reserved(tmp_path, wait_seconds=30, hosts=hosts):
        pass

    assert next(hosts, None) is None


def test_waiting_ends_when_the_time_is_over(tmp_path: Path) -> None:
    engine = FakeEngine(others=[container("other", "128")])
    before = gpu_locks.now()

    with pytest.raises(GpuBusy):
        reserved(tmp_path, engine=engine, wait_seconds=0.3).__enter__()

    assert gpu_locks.now() - before >= 0.3
    with reserved(tmp_path):
        pass
