"""How long a search may take is said before it begins, and again once a run has shown how long one takes."""

from dataclasses import replace

import pytest

from rocmrun.core.search_estimate import expected_runs, forecast, least_runs, time_left
from rocmrun.core.search_space import Settings

SETTINGS = Settings(repeats=5, retries=2)


def test_more_privileges_are_expected_to_take_more_runs() -> None:
    """The estimate grows slowly."""
    runs = [expected_runs(varying, SETTINGS) for varying in (0, 1, 5, 20, 40)]

    assert sorted(runs) == runs
    assert runs[-1] < 40


@pytest.mark.parametrize("varying", [0, 1, 2])
def test_few_privileges_are_counted_as_they_are(varying: int) -> None:
    """Three are taken to be needed where as many vary; of none it takes the least."""
    counted = ("no privileges vary", "1 privilege varies", "2 privileges vary")[varying]
    when = ("", "when 1 is", "when 2 are")[varying]
    said = forecast(varying, SETTINGS, seconds=5, recorded=False)

    assert said.startswith(f"{counted}; {least_runs(SETTINGS)} runs when none is needed")
    assert when in said
    assert "about 0" not in said


def test_a_run_more_is_counted_where_it_is_traced() -> None:
    least = least_runs(SETTINGS)

    assert f"; {least + 1} runs" in forecast(5, SETTINGS, seconds=5, recorded=True)
    assert f"; {least} runs" in forecast(5, SETTINGS, seconds=5, recorded=False)


def test_runs_beside_each_other_take_less_time() -> None:
    """What is left is a minute at least; more runs than were expected make no negative time."""
    alone = time_left(20, SETTINGS, done=4, seconds=60)
    four = time_left(20, replace(SETTINGS, jobs=4), done=4, seconds=60)
    left = expected_runs(20, SETTINGS) - 4

    assert alone == f"a run takes up to 60.0 s: about {left} min more"
    assert four == f"a run takes up to 60.0 s: about {-(-left // 4)} min more"
    assert (
        time_left(1, SETTINGS, done=1000, seconds=1) == "a run takes up to 1.0 s: about 1 min more"
    )
