"""The plan of a probe that runs in an image of its own."""

from dataclasses import replace

import pytest

from rocmrun.core.plan import Plan, PlannedImage
from rocmrun.core.probing.image import check_volumes, named, probe_plan
from rocmrun.core.probing.proof_record import proof_key
from rocmrun.errors import PlanRefused
from tests.builders import DIGEST, IMAGE, host, plan

OTHER = PlannedImage(ref="example.com/probe:1", digest=DIGEST, image_id="sha256:" + "5" * 64)


def probed_in(image: PlannedImage | None, **profile: object) -> Plan:
    return plan(dict(profile), probe_image=image)


def test_without_an_image_of_its_own_the_probe_has_the_plan_itself() -> None:
    job = plan()

    assert probe_plan(job) is job


def test_every_right_stays_and_the_image_is_another() -> None:
    """Labels say what really runs; PATH was the workload's image's."""
    job = probed_in(OTHER, container={"env": {"PATH": "/opt/app/bin", "OPEN": "yes"}})

    inside = probe_plan(job)

    labels = dict(inside.labels)
    assert (labels["io.rocmrun.ref"], labels["io.rocmrun.digest"]) == (OTHER.ref, OTHER.digest)
    assert dict(job.env).keys() - dict(inside.env).keys() == {"PATH"}
    assert replace(inside, labels=job.labels, env=job.env, image=job.image) == job


def test_the_plan_says_whose_user_space_it_is_and_its_hash_covers_the_digest() -> None:
    job = probed_in(OTHER)
    rebuilt = probed_in(replace(OTHER, digest="sha256:" + "6" * 64))

    assert (
        f"the probe runs in {OTHER.ref} @ {DIGEST} with this plan's rights: "
        "its user space is the probe's, not the workload's"
    ) in job.notes
    assert len({probed_in(None).hash, job.hash, rebuilt.hash}) == 3


def test_a_proof_counts_for_one_build_of_the_probe_image_only() -> None:
    local = PlannedImage(ref=OTHER.ref, image_id=OTHER.image_id, source="local")
    rebuilt = replace(local, image_id="sha256:" + "6" * 64)
    keys = {
        proof_key(probed_in(image), host(), None, "quick")
        for image in (None, OTHER, local, rebuilt)
    }

    assert len(keys) == 4


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (OTHER, f"{OTHER.ref} @ {DIGEST}"),
        (
            replace(OTHER, digest=None, source="local"),
            f"{OTHER.ref} @ local image {OTHER.image_id}",
        ),
        (replace(OTHER, digest=None), f"{OTHER.ref} @ not locked"),
    ],
)
def test_an_image_is_named_by_what_pins_it(image: PlannedImage, words: str) -> None:
    assert named(image) == words


def test_a_volume_that_the_workload_does_not_have_is_refused() -> None:
    """The engine would make it, writable and on disk."""
    job = probed_in(OTHER, container={"tmpfs": {"/scratch": "1GiB"}})

    check_volumes(job, replace(IMAGE, volumes=("/scratch/",)))
    with pytest.raises(PlanRefused, match="declares a VOLUME at /data, which the workload"):
        check_volumes(job, replace(IMAGE, volumes=("/data", "/scratch")))
