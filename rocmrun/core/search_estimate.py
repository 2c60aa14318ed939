"""How many runs a search of privileges takes, and how long that may be."""

import math

from rocmrun.core.search_space import Settings
from rocmrun.core.tmpfs_offer import MOST_ROUNDS

SEVERAL_NEEDED = 3


def least_runs(settings: Settings) -> int:
    """Return how many runs it takes when none is needed: the canary, the permissive side twice, and the minimal side."""
    return 3 + (settings.repeats if settings.verify_least else 1) + 2 * settings.deep


def expected_runs(varying: int, settings: Settings) -> int:
    """Return about how many runs a search takes when three privileges are needed, canary and proof among them."""
    needed = min(SEVERAL_NEEDED, varying)
    if not needed:
        return least_runs(settings)
    searching = needed * (math.ceil(math.log2(max(2, varying / needed))) + 1)
    return 5 + searching + needed * (1 + settings.retries) + settings.repeats


def forecast(
    varying: int, settings: Settings, *, seconds: float, recorded: bool, rootfs: bool = False
) -> str:
    """Return what to expect before the first run.

    Args:
        varying: How many privileges vary.
        settings: Of the search.
        seconds: What a run is taken to last.
        recorded: Whether one run more is traced.
        rootfs: Whether a tmpfs is looked for in the place of a writable root.
    """
    runs = expected_runs(varying, settings) + recorded + rootfs
    vary = "1 privilege varies" if varying == 1 else f"{varying or 'no'} privileges vary"
    needed = min(SEVERAL_NEEDED, varying)
    several = f", about {runs} when {needed} {'is' if needed == 1 else 'are'}" if needed else ""
    minutes = max(1, _minutes(runs, settings, seconds))
    most = MOST_ROUNDS * (1 + settings.retries)
    looking = (
        f"; where the job writes in its image, a tmpfs is tried in 1 to {most} runs of these"
        if rootfs
        else ""
    )
    return (
        f"{vary}; {least_runs(settings) + recorded} runs when none is needed{several}: "
        f"about {minutes} min if a run takes {seconds:g} s{looking}"
    )


def time_left(varying: int, settings: Settings, *, done: int, seconds: float) -> str:
    """Return how long it may take still, after *done* runs of which the longest took *seconds*."""
    left = max(1, expected_runs(varying, settings) - done)
    return f"a run takes up to {seconds:.1f} s: about {_minutes(left, settings, seconds)} min more"


def _minutes(runs: int, settings: Settings, seconds: float) -> int:
    return math.ceil(runs * seconds / settings.jobs / 60)
