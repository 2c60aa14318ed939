"""Published ports: who has them, before anything is proved."""

import socket
from collections.abc import Sequence
from typing import Any

import pytest

from rocmrun.core.plan import Plan, PlannedPort
from rocmrun.errors import PortTaken
from rocmrun.usecases.port_guard import ANYBODY, check_ports
from tests.builders import plan
from tests.fakes import FakeEngine, Script
from tests.unit.usecases.stage import CPU_JOB, Stage, an_engine

HTTP = PlannedPort(address="127.0.0.1", host_port=8000, container_port=80)
BRIDGE = '[container]\nnetwork = "bridge"\nports = ["127.0.0.1:8000:80"]\n'


def publishing(*ports: PlannedPort) -> Plan:
    return plan().with_changes(ports=ports)


def container(address: str = "127.0.0.1", *, port: int = 8000, **changes: Any) -> dict[str, Any]:
    """Return the summary of a workload of ours that publishes a port."""
    published = {"IP": address, "PublicPort": port, "PrivatePort": 80, "Type": "tcp"}
    labels = {
        "io.rocmrun.role": "workload",
        "io.rocmrun.controller": "1:1",
        "io.rocmrun.profile": "p",
    }
    return {
        "Id": "c1",
        "Names": ["/server"],
        "Labels": labels,
        "State": "running",
        "Status": "Up 2 minutes",
        "Ports": [published],
        **changes,
    }


def refused(
    made: Plan, *others: dict[str, Any], listening: Sequence[int] = (), leaving: Sequence[str] = ()
) -> PortTaken:
    with pytest.raises(PortTaken) as caught:
        checked(made, *others, listening=listening, leaving=leaving)
    return caught.value


def checked(
    made: Plan, *others: dict[str, Any], listening: Sequence[int] = (), leaving: Sequence[str] = ()
) -> None:
    check_ports(
        made,
        FakeEngine(others=others),
        leaving=leaving,
        taken=lambda _address, port, _protocol: port in listening,
    )


def test_a_workload_that_has_the_port_is_named() -> None:
    error = refused(publishing(HTTP), container(), listening=[8000])

    assert error.details == ("127.0.0.1:8000/tcp: server (profile p, Up 2 minutes) publishes it",)
    assert error.hint == "rocmrun stop server, or publish another port"


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", ""])
def test_every_address_holds_each(address: str) -> None:
    """Also where no process listens, as engines without a proxy have it."""
    assert refused(publishing(HTTP), container(address)).details


@pytest.mark.parametrize(
    "other",
    [container("10.0.0.1"), container("::"), container(port=8001), container(State="exited")],
    ids=["address", "family", "port", "ended"],
)
def test_other_ports_are_free(other: dict[str, Any]) -> None:
    checked(publishing(HTTP), other)


def test_somebody_else_is_said_without_a_name() -> None:
    """A label alone is anybody's."""
    foreign = container(Labels={"io.rocmrun.role": "workload"})
    error = refused(publishing(HTTP), foreign, listening=[8000])

    assert error.details == ("127.0.0.1:8000/tcp: something on this host listens there",)
    assert error.hint == ANYBODY


def test_the_one_that_leaves_gives_its_port_up() -> None:
    """But no other of the plan's ports."""
    more = PlannedPort(address="::1", host_port=9000, container_port=90, protocol="udp")
    both = publishing(HTTP, more)

    checked(both, container(), listening=[8000], leaving=["c1"])
    error = refused(both, container(), listening=[8000, 9000], leaving=["c1"])

    assert [detail.split(": ")[0] for detail in error.details] == ["[::1]:9000/udp"]


def test_without_ports_nobody_is_asked() -> None:
    engine = FakeEngine()
    check_ports(plan(), engine, taken=lambda *_: True)
    assert engine.calls == []


@pytest.mark.enable_socket
def test_a_launch_looks_before_it_proves(stage: Stage) -> None:
    """No container is made, and the report has the class of the failure."""
    stage.profile(CPU_JOB + BRIDGE)
    engine = an_engine(others=[container()])

    with pytest.raises(PortTaken):
        stage.launch(engine)

    assert engine.calls == ["facts"]
    assert (stage.report["error"]["slug"], stage.report["error"]["code"]) == ("port-taken", 8)


@pytest.mark.enable_socket
def test_a_successor_may_have_the_port_of_the_old_one(stage: Stage) -> None:
    """Whoever takes nobody's place may not."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    stage.profile(CPU_JOB + BRIDGE.replace("8000", str(port)))
    engine = an_engine(scripts={"workload": Script(until_killed=True)})
    assert stage.launch(engine, detach=True, probe=False, name="old") == 0
    (old,) = engine.kept
    old.ports = container(port=port)["Ports"]

    with pytest.raises(PortTaken):
        stage.launch(engine, detach=True, probe=False, name="other")
    assert stage.launch(engine, detach=True, probe=False, replace=True, settle_seconds=0.05) == 0
