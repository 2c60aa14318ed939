"""What a launch does about the support matrix: the profile's policy decides."""

from datetime import date
from pathlib import Path

import pytest

from rocmrun.core.lock import Lock, LockedFacts, PinnedImage
from rocmrun.errors import Unsupported
from rocmrun.usecases.matrix import read_matrix
from rocmrun.usecases.prepare import prepare
from tests.builders import DIGEST
from tests.hosts import MI210_X8
from tests.unit.usecases.stage import GPU_JOB, REF, Stage, an_engine
from tests.unit.usecases.test_planning import no_pull

# The trees that the tests build are Ubuntu's; 31.40 is the first driver that leaves ROCm 6.4 out.
NEW_DRIVER = "6.19.14"


def stage_with(stage: Stage, policy: str, rocm: str, driver: str = NEW_DRIVER) -> Stage:
    stage.profile(GPU_JOB + f"[support]\n{policy}\n")
    facts = LockedFacts(rocm=rocm, sources={"rocm": "tag"})
    stage.lock(PinnedImage(ref=REF, digest=DIGEST, facts=facts))
    stage.host(*MI210_X8[:1], driver_version=driver)
    return stage


@pytest.mark.parametrize("policy", ['policy = "warn"', 'policy = "require"'])
def test_a_driver_that_does_not_serve_the_image_stops_the_launch(stage: Stage, policy: str) -> None:
    """Before anything is fetched or made."""
    engine = an_engine(images={})

    with pytest.raises(Unsupported) as caught:
        stage_with(stage, policy, "6.4.3").launch(engine)

    assert any("driver 31.40.x) does not serve ROCm 6.4.3" in line for line in caught.value.details)
    assert [call for call in engine.calls if call != "facts"] == []


def test_a_profile_can_ignore_the_matrix(stage: Stage) -> None:
    engine = an_engine()

    stage_with(stage, 'policy = "ignore"', "6.4.3").launch(engine, probe=False)

    assert "start workload" in engine.calls
    assert not any(warning.startswith("support") for warning in stage.heard.warnings)


def test_what_is_not_listed_is_said_and_started(stage: Stage) -> None:
    """A preview driver is in no contradiction to the table."""
    stage_with(stage, 'policy = "warn"', "7.14.0", driver="6.19.2").launch(an_engine(), probe=False)

    said = [warning for warning in stage.heard.warnings if warning.startswith("support")]
    assert any("is a preview driver" in warning for warning in said)


def test_unknown_stops_nothing_unless_the_profile_says_so(stage: Stage) -> None:
    """A release that the matrix does not have, on a driver that no source names."""
    stage_with(stage, 'policy = "require"', "99.0", driver="6.16.6").launch(
        an_engine(), probe=False
    )
    stage.profile(GPU_JOB + '[support]\npolicy = "require"\nunknown = "block"\n')

    with pytest.raises(Unsupported) as caught:
        stage.launch(an_engine(), probe=False)

    assert any("the matrix has no ROCm 99.0" in line for line in caught.value.details)


@pytest.mark.parametrize(
    ("policy", "notes"),
    [
        (
            'policy = "require"\nunknown = "block"',
            ['a launch is refused, by [support] policy = "require", unknown = "block": kernel unknown, driver unknown, code unknown'],
        ),
        ('policy = "require"', []),
        ('policy = "ignore"\nunknown = "block"', []),
    ],
)  # fmt: skip
def test_a_plan_says_that_its_launch_would_be_refused(
    stage: Stage, policy: str, notes: list[str]
) -> None:
    ask = stage_with(stage, policy, "7.2.4", driver="6.16.6").ask()

    plan = prepare(ask, None, fetch=False, on_pull=no_pull).plan

    assert [note for note in plan.notes if "a launch is refused" in note] == notes


def test_data_grow_old(tmp_path: Path) -> None:
    """From the newest fact, by the reader's own day."""
    lockfile = tmp_path / "rocmrun.lock"
    pin = PinnedImage(ref=REF, digest=DIGEST, facts=LockedFacts(gfx=("gfx942",)))
    lockfile.write_text(Lock.of([pin]).text())

    fresh = read_matrix(today=date(2026, 8, 27))
    old = read_matrix(gpu="MI300X", today=date(2027, 8, 26), lockfile=lockfile)

    assert (fresh.age_days, fresh.old, fresh.images) == (1, False, None)
    assert (old.age_days, old.old) == (365, True)
    assert old.images == ((REF, "unknown"),)
