"""What an engine's record says, of containers of ours and of any other."""

from typing import Any

import pytest

from rocmrun.core.running.record import container_record
from tests.builders import gpu, host


def inspected(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "Id": "ab12" * 16,
        "Name": "/vllm",
        "RestartCount": 2,
        "State": {"Status": "running", "Pid": 700, "ExitCode": 0, "OOMKilled": False, "Error": ""},
        "HostConfig": {"Devices": None, "LogConfig": {"Type": "json-file"}, "Privileged": False},
        "Config": {"Labels": None, "Env": ["A=1", "B=x=y"]},
    }
    return values | changes


def devices(*paths: str, **changes: Any) -> dict[str, Any]:
    listed = [{"PathOnHost": path, "PathInContainer": path} for path in paths]
    return {"Devices": listed, "Privileged": False, **changes}


def test_a_container_of_ours_has_a_profile_and_gpus_by_label() -> None:
    """CDI gives no device that the record names: the label does."""
    labels = {
        "io.rocmrun.profile": "serve", "io.rocmrun.run": "r1", "io.rocmrun.plan": "p1",
        "io.rocmrun.render-minors": "128,130,x",
    }  # fmt: skip
    found = container_record(inspected(Config={"Labels": labels, "Env": None}), ours=True)

    assert (found.profile, found.run, found.plan) == ("serve", "r1", "p1")
    assert found.minors == {128, 130}
    assert (found.name, found.restarts, found.runs) == ("vllm", 2, True)


def test_labels_of_any_other_container_are_nobodys() -> None:
    """An image may carry ours."""
    labels = {"io.rocmrun.profile": "serve", "io.rocmrun.render-minors": "128"}
    found = container_record(inspected(Config={"Labels": labels}), ours=False)

    assert (found.profile, found.minors) == ("", frozenset())
    assert found.environment == {}


def test_gpus_that_docker_run_gave() -> None:
    """By node, by directory, or with everything."""
    nodes = container_record(inspected(HostConfig=devices("/dev/kfd", "/dev/dri/renderD129")), ours=False)  # fmt: skip
    whole = container_record(inspected(HostConfig=devices("/dev/dri")), ours=False)
    privileged = container_record(inspected(HostConfig=devices(Privileged=True)), ours=False)
    machine = host(2)

    assert [each.render_minor for each in nodes.gpus(machine)] == [129]
    assert (nodes.kfd, whole.kfd, privileged.kfd) == (True, False, True)
    assert len(whole.gpus(machine)) == len(privileged.gpus(machine)) == 2
    assert whole.gpus(host([gpu(0, render_minor=None)])) == ()


@pytest.mark.parametrize(
    ("state", "runs"),
    [({"Status": "running", "Pid": 7}, True), ({"Status": "paused", "Pid": 7}, True),
     ({"Status": "exited", "Pid": 0}, False), ({"Status": "restarting", "Pid": 0}, False), (None, False)],
)  # fmt: skip
def test_what_runs_has_processes(state: dict[str, Any] | None, *, runs: bool) -> None:
    assert container_record(inspected(State=state), ours=False).runs is runs


def test_health_has_the_last_words_of_its_check() -> None:
    """Where there is a check."""
    health = {"Status": "unhealthy", "Log": [{"Output": "old"}, {"Output": "refused\n"}]}
    state = {"Status": "running", "Pid": 7, "Health": health}
    found = container_record(inspected(State=state), ours=False)
    none = container_record(
        inspected(State={"Health": {"Status": "none", "Log": None}}), ours=False
    )

    assert (found.health, found.health_output) == ("unhealthy", "refused")
    assert (none.health, none.health_output) == ("", "")


def test_a_container_without_a_name_goes_by_its_id() -> None:
    assert container_record(inspected(Name=""), ours=False).name == "ab12ab12ab12"


def test_minors_that_are_no_numbers_are_none() -> None:
    """Whoever starts a container writes its labels."""
    labels = {"io.rocmrun.render-minors": f"128,{'9' * 5000},²"}
    found = container_record(inspected(Config={"Labels": labels}), ours=True)

    assert found.minors == {128}
