"""Workloads in the engine's list, and which one a name means."""

from typing import Any

import pytest

from rocmrun.core.workloads import Workload, check_container_name, meant, workload_of
from rocmrun.errors import UsageError, WorkloadAmbiguous, WorkloadNotFound

LABELS = {
    "io.rocmrun.profile": "serve",
    "io.rocmrun.profile-file": "/srv/profiles/serve.toml",
    "io.rocmrun.run": "1a2b3c4d",
    "io.rocmrun.role": "workload",
    "io.rocmrun.ref": "docker.io/team/x:1",
    "io.rocmrun.digest": "sha256:7f",
    "io.rocmrun.detached": "1",
    "io.rocmrun.keep": "",
    "io.rocmrun.render-minors": "129,128",
}


def summary(**changes: Any) -> dict[str, Any]:
    return {
        "Id": "ab12" * 16, "Names": ["/server"], "Labels": LABELS, "State": "running",
        "Status": "Up 3 minutes", "Created": 1_700_000_000, **changes,
    }  # fmt: skip


def workload(name: str, profile: str = "serve", *, state: str = "running") -> Workload:
    return Workload(container_id=name * 8, name=name, profile=profile, state=state, status=state)


def test_an_entry_of_the_engines_list() -> None:
    ports = [
        {"IP": "127.0.0.1", "PrivatePort": 8000, "PublicPort": 8001, "Type": "tcp"},
        {"IP": "::1", "PrivatePort": 53, "PublicPort": 53, "Type": "udp"},
        {"PrivatePort": 9000, "Type": "tcp"},
    ]

    found = workload_of(summary(Ports=ports))

    assert found == Workload(
        container_id="ab12" * 16,
        name="server",
        profile="serve",
        profile_file="/srv/profiles/serve.toml",
        run="1a2b3c4d",
        ref="docker.io/team/x:1",
        digest="sha256:7f",
        state="running",
        status="Up 3 minutes",
        detached=True,
        created_at=1_700_000_000,
        render_minors=(128, 129),
        ports=("127.0.0.1:8001->8000/tcp", "[::1]:53->53/udp"),
    )
    assert found.alive


@pytest.mark.parametrize(
    ("state", "status", "expected"),
    [
        ("running", "Up 3 minutes", (None, "", True)),
        ("running", "Up 1 second (health: starting)", (None, "starting", True)),
        ("running", "Up 2 days (healthy)", (None, "healthy", True)),
        ("running", "Up 2 days (unhealthy)", (None, "unhealthy", True)),
        ("running", "Up 2 days (unhealthy) (Paused)", (None, "unhealthy", True)),
        ("exited", "Exited (137) 2 hours ago", (137, "", False)),
        ("restarting", "Restarting (1) 2 seconds ago", (None, "", True)),
        ("created", "Created", (None, "", False)),
        ("exited", "", (None, "", False)),
    ],
)
def test_state_health_and_code(
    state: str, status: str, expected: tuple[int | None, str, bool]
) -> None:
    found = workload_of(summary(State=state, Status=status))

    assert (found.exit_code, found.health, found.alive) == expected


def test_a_container_without_a_name_and_labels() -> None:
    found = workload_of(summary(Names=None, Labels={}))

    assert (found.name, found.profile, found.render_minors) == ("ab12ab12ab12", "", ())


def test_a_name_is_a_containers_before_it_is_a_profiles() -> None:
    named = workload("serve", "other")

    assert meant([workload("a"), named], "serve") is named


def test_a_profile_means_the_one_that_runs() -> None:
    running, ended = workload("a"), workload("b", state="exited")

    assert meant([ended, running], "serve") is running
    assert meant([ended, workload("c", "other")], "serve") is ended


def test_several_of_a_profile_are_listed() -> None:
    with pytest.raises(WorkloadAmbiguous, match="profile serve has 2 workloads") as caught:
        meant([workload("a"), workload("b"), workload("c", "other")], "serve")

    assert caught.value.details == ("a (profile serve, running)", "b (profile serve, running)")


def test_none_of_that_name_lists_what_there_is() -> None:
    with pytest.raises(WorkloadNotFound, match='there is no workload "x"') as caught:
        meant([workload("a")], "x")

    assert caught.value.details == ("there is a (profile serve, running)",)
    assert caught.value.hint == "see them all: rocmrun ps --all"


def test_a_container_name_is_what_engines_take() -> None:
    check_container_name("serve_2.b-c")
    for name in ("", "a", "-a", "a b", "a/b", "ä1"):
        with pytest.raises(UsageError, match="is no name for a container"):
            check_container_name(name)


def test_labels_are_whatever_somebody_wrote() -> None:
    """Digits without end and digits of other scripts are no numbers: every command reads the labels of all containers."""
    found = workload_of(
        summary(Labels={"io.rocmrun.render-minors": f"128,{'9' * 5000},²,,-1,1e3", "io.rocmrun.uid": "9" * 5000})
    )  # fmt: skip

    assert (found.render_minors, found.uid) == ((128,), None)
