"""A launch whose probe runs in another image than the workload."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rocmrun.core.lock import PinnedImage
from rocmrun.errors import ContainerMismatch, ImageGone, LockMissing, PlanRefused
from tests.builders import DIGEST, IMAGE, IMAGE_ID
from tests.fakes import FakeEngine
from tests.unit.usecases.stage import CPU_JOB, PIN, PULLED, REF, Stage, an_engine

PROBE_REF, PROBE_DIGEST, PROBE_ID = (
    "example.com/probe:1",
    "sha256:" + "5" * 64,
    "sha256:" + "6" * 64,
)
PROBE_PULLED = f"example.com/probe@{PROBE_DIGEST}"
PROBE_IMAGE = replace(IMAGE, image_id=PROBE_ID, repo_digests=(PROBE_PULLED,))
PROBE_PIN = PinnedImage(ref=PROBE_REF, digest=PROBE_DIGEST)
LOCAL_PIN = PinnedImage(ref=PROBE_REF, image_id=PROBE_ID, source="local")
JOB = f'{CPU_JOB}[probe]\nimage = "{PROBE_REF}"\n'


@pytest.fixture
def probed(stage: Stage) -> Stage:
    """A job that names a probe image, both locked."""
    stage.profile(JOB)
    stage.lock(PIN, PROBE_PIN)
    return stage


def both(**options: Any) -> FakeEngine:
    """Return an engine that has both images."""
    usual = {PULLED: IMAGE, IMAGE_ID: IMAGE, REF: IMAGE}
    return an_engine(images={**usual, PROBE_PULLED: PROBE_IMAGE, PROBE_ID: PROBE_IMAGE}, **options)


def test_the_probe_runs_in_its_image_and_the_workload_in_its_own(probed: Stage) -> None:
    """The rights are compared, and the image is none; messages and report say whose user space it was."""
    engine = both()

    code = probed.launch(engine)

    assert code == 0
    assert engine.made("probe").request["Image"] == PROBE_ID
    assert engine.made("workload").request["Image"] == IMAGE_ID
    said = "\n".join(probed.heard.said)
    assert f"in a container with the same rights, in {PROBE_REF} @ {PROBE_DIGEST}: its user space is the probe's, not the workload's" in said  # fmt: skip
    report = probed.report
    assert (report["image_digest"], report["probe_image_digest"]) == (DIGEST, PROBE_DIGEST)
    assert (report["probe_image_ref"], report["probe_image_id"]) == (PROBE_REF, PROBE_ID)
    assert report["torch_version"] is None  # the workload's is not known
    assert "2.13.0" in json.dumps(report["probe"])


def test_another_right_is_refused_all_the_same(probed: Stage) -> None:
    def privileged(record: dict[str, Any]) -> None:
        record["HostConfig"]["CpusetMems"] = "1"

    with pytest.raises(ContainerMismatch, match="other rights than the probe had"):
        probed.launch(both(change={"workload": privileged}))


def test_a_local_image_is_known_by_its_id(probed: Stage) -> None:
    probed.lock(PIN, LOCAL_PIN)
    engine = both()

    assert probed.launch(engine) == 0
    assert engine.made("probe").request["Image"] == PROBE_ID
    assert probed.report["probe_image_digest"] is None


def test_an_absent_one_is_pulled_by_digest_and_kept(probed: Stage) -> None:
    engine = an_engine(registry={PROBE_PULLED: PROBE_IMAGE})

    assert probed.launch(engine) == 0
    assert (PROBE_ID, "rocmrun/locked", "5" * 12) in engine.tags


def test_one_that_is_not_locked_is_said_before_anything_is_fetched(probed: Stage) -> None:
    probed.lock(PIN)
    engine = an_engine(images={}, registry={PULLED: IMAGE})

    with pytest.raises(LockMissing, match="probe:1, the image to probe in of profile job, is not") as caught:  # fmt: skip
        probed.launch(engine)

    assert caught.value.hint == "rocmrun lock job; or start without a proof: --no-probe"
    assert not [call for call in engine.calls if call.startswith("pull")]


@pytest.mark.parametrize("pin", [LOCAL_PIN, PROBE_PIN], ids=["local", "pull never"])
def test_one_that_is_not_here_says_that_it_is_the_probes(probed: Stage, pin: PinnedImage) -> None:
    probed.lock(PIN, pin)

    with pytest.raises(ImageGone, match=r"the image to probe in: example\.com/probe:1") as caught:
        probed.launch(an_engine(), ask=probed.ask(pull=False))

    assert "--no-probe" in (caught.value.hint or "")


def test_without_a_proof_it_is_not_needed(probed: Stage) -> None:
    probed.lock(PIN)
    engine = an_engine()

    assert probed.launch(engine, probe=False) == 0
    assert [call for call in engine.calls if "probe" in call] == []


def test_unlocked_takes_what_the_tag_names(probed: Stage) -> None:
    probed.lock()
    engine = an_engine(
        images={REF: IMAGE, IMAGE_ID: IMAGE, PROBE_REF: PROBE_IMAGE, PROBE_ID: PROBE_IMAGE}
    )

    assert probed.launch(engine, ask=probed.ask(unlocked=True)) == 0
    assert engine.made("probe").request["Image"] == PROBE_ID


def test_a_volume_of_its_own_is_refused(probed: Stage) -> None:
    volumes = replace(PROBE_IMAGE, volumes=("/data",))
    engine = both()
    engine.images |= {PROBE_PULLED: volumes, PROBE_ID: volumes}

    with pytest.raises(PlanRefused, match="declares a VOLUME at /data"):
        probed.launch(engine)
