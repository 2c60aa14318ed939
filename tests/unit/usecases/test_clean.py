"""Clean removes what nobody looks after any more, and nothing else."""

from typing import Any

import pytest

from rocmrun.core.image import ImageFacts
from rocmrun.core.labels import CONTROLLER as CONTROLLER_LABEL
from rocmrun.core.labels import DETACHED as DETACHED_LABEL
from rocmrun.core.labels import KEEP as KEEP_LABEL
from rocmrun.core.labels import ROLE as ROLE_LABEL
from rocmrun.core.labels import RUN as RUN_LABEL
from rocmrun.system.caller import process_label
from rocmrun.usecases.clean import clean
from tests.fakes import FakeEngine

ALIVE, DEAD = "1:alive", "2:dead"


def container(
    name: str, *, state: str = "exited", controller: str = DEAD, role: str = "workload", labels: str = ""
) -> dict[str, Any]:  # fmt: skip
    return {
        "Id": name * 16,
        "Names": [f"/{name}"],
        "State": state,
        "Labels": {ROLE_LABEL: role, CONTROLLER_LABEL: controller, **dict.fromkeys(labels.split(), "1")},
    }  # fmt: skip


def cleaned(*others: dict[str, Any], dry_run: bool = False) -> tuple[list[tuple[str, str]], int]:
    """Return what was said to be removed, and how many containers are left."""
    engine = FakeEngine(others=others)
    found = clean(engine, dry_run=dry_run, runs=lambda label: label == ALIVE)
    return found, len(engine.others)


GONE = "workload of a rocmrun that is gone"


@pytest.mark.parametrize(
    ("state", "controller", "labels", "why"),
    [
        ("running", ALIVE, "", None),
        ("exited", ALIVE, "", None),
        ("created", ALIVE, DETACHED_LABEL, None),
        ("running", DEAD, "", f"{GONE}, still running"),
        ("paused", DEAD, "", f"{GONE}, still running"),
        ("exited", DEAD, "", f"{GONE}, left behind"),
        ("created", DEAD, "", f"{GONE}, left behind"),
        ("created", DEAD, KEEP_LABEL, f"{GONE}, left behind"),
        ("exited", DEAD, KEEP_LABEL, None),
        ("running", DEAD, KEEP_LABEL, f"{GONE}, still running"),
        ("running", DEAD, DETACHED_LABEL, None),
        ("restarting", DEAD, DETACHED_LABEL, None),
        ("exited", DEAD, DETACHED_LABEL, "a detached workload that has ended"),
        ("exited", DEAD, f"{DETACHED_LABEL} {KEEP_LABEL}", None),
        ("created", DEAD, DETACHED_LABEL, f"{GONE}, left behind"),
    ],
)
def test_a_stray_is_told_by_its_controller_and_what_was_wanted(
    state: str, controller: str, labels: str, why: str | None
) -> None:
    found, left = cleaned(container("x", state=state, controller=controller, labels=labels))

    assert found == ([("x", why)] if why else [])
    assert left == (0 if why else 1)


def test_a_dry_run_removes_nothing() -> None:
    found, left = cleaned(container("x"), dry_run=True)

    assert [name for name, _ in found] == ["x"]
    assert left == 1


def test_what_is_removed_is_listed_by_name() -> None:
    found, _ = cleaned(container("b", role="probe"), container("a"))

    assert found == [
        ("a", "workload of a rocmrun that is gone, left behind"),
        ("b", "probe of a rocmrun that is gone, left behind"),
    ]


def test_containers_of_others_are_left_alone() -> None:
    foreign = {"Id": "y", "Names": ["/y"], "State": "exited", "Labels": {"io.rocmrun.other": "x"}}

    assert cleaned(foreign) == ([], 1)


def test_a_container_without_a_name_is_known_by_its_id() -> None:
    stray = container("x") | {"Names": None, "Id": "0123456789abcdef"}

    assert cleaned(stray)[0][0][0] == "0123456789ab"


def test_the_process_that_runs_this_is_alive() -> None:
    """By the process table of this machine."""
    engine = FakeEngine(others=[container("x", controller=process_label(), state="running")])

    assert clean(engine, dry_run=False) == []


def test_a_container_that_only_its_image_labels_is_somebody_elses() -> None:
    """`docker commit` of one of ours, or an image made to confuse, bakes the labels."""
    labels = {ROLE_LABEL: "workload", CONTROLLER_LABEL: DEAD, RUN_LABEL: "baked"}
    image = ImageFacts(image_id="sha256:1", labels=tuple(sorted(labels.items())))
    stranger = container("a") | {"Labels": labels, "ImageID": image.image_id}
    ours = container("b") | {"Labels": {**labels, RUN_LABEL: "own"}, "ImageID": image.image_id}
    engine = FakeEngine(images={image.image_id: image}, others=(stranger, ours))

    found = clean(engine, dry_run=False, runs=lambda label: label == ALIVE)

    assert [name for name, _ in found] == ["b"]


def test_one_label_alone_makes_no_container_ours() -> None:
    """Anybody can set it; every one of ours says who looks after it."""
    forged = container("forged", state="running") | {"Labels": {ROLE_LABEL: "workload"}}

    assert cleaned(forged) == ([], 1)
