"""Which containers nobody looks after any more."""

from typing import Any

import pytest

from rocmrun.usecases.clean import _why_stray

RUNS, GONE = "100:5", "200:7"


def container(state: str, *, controller: str = GONE, **labels: str) -> dict[str, Any]:
    names = {f"io.rocmrun.{name}": value for name, value in labels.items()}
    return {
        "State": state,
        "Labels": {"io.rocmrun.role": "workload", "io.rocmrun.controller": controller, **names},
    }


@pytest.mark.parametrize("state", ["created", "running", "exited"])
@pytest.mark.parametrize("labels", [{}, {"detached": "1"}, {"keep": "1"}])
def test_whoever_started_it_still_runs(state: str, labels: dict[str, str]) -> None:
    """Also a detached workload at the moment between its creation and its start."""
    found = container(state, controller=RUNS, **labels)

    assert _why_stray(found, lambda label: label == RUNS) is None


@pytest.mark.parametrize(
    ("state", "labels", "why"),
    [
        ("created", {}, "workload of a rocmrun that is gone, left behind"),
        ("running", {}, "workload of a rocmrun that is gone, still running"),
        ("exited", {}, "workload of a rocmrun that is gone, left behind"),
        ("running", {"detached": "1"}, None),
        ("paused", {"detached": "1"}, None),
        ("restarting", {"detached": "1"}, None),
        ("exited", {"detached": "1"}, "a detached workload that has ended"),
        ("exited", {"detached": "1", "keep": "1"}, None),
        ("created", {"detached": "1"}, "workload of a rocmrun that is gone, left behind"),
        ("exited", {"keep": "1"}, None),
        ("running", {"keep": "1"}, "workload of a rocmrun that is gone, still running"),
    ],
)
def test_whoever_started_it_is_gone(state: str, labels: dict[str, str], why: str | None) -> None:
    """What was left on purpose stays, the rest is told with what it is."""
    assert _why_stray(container(state, **labels), lambda _: False) == why
