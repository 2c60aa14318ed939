"""Workloads as people and scripts see them."""

from dataclasses import replace

import pytest

from rocmrun.console.workloads import (
    cut_off_warning,
    print_workloads,
    stopped_to_json,
    workload_to_json,
)
from rocmrun.core.workloads import Workload
from rocmrun.usecases.workloads import Stopped

SERVER = Workload(
    container_id="ab12" * 16,
    name="server",
    profile="serve",
    profile_file="/srv/profiles/serve.toml",
    ref="docker.io/team/x:1",
    digest="sha256:" + "7f" * 32,
    state="running",
    status="Up 3 minutes (healthy)",
    health="healthy",
    detached=True,
    controller="1:2:3",
    created_at=1_700_000_000,
    render_minors=(128, 129),
    ports=("127.0.0.1:8000->8000/tcp",),
)


def test_a_table_has_a_line_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    many = replace(SERVER, name="many", render_minors=tuple(range(128, 136)), ports=(), digest="")

    print_workloads([SERVER, many], ended=False)

    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "profile", "status", "GPUs", "ports", "image"]
    assert lines[0].startswith("server ")
    assert "renderD128, renderD129" in lines[0]
    assert "docker.io/team/x:1 @ 7f7f7f7f7f7f" in lines[0]
    assert "8 (renderD128 …)" in lines[1]


def test_a_terminal_obeys_nothing_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_workloads([replace(SERVER, ref="x\x1b[2J")], ended=True)

    assert "\x1b" not in capsys.readouterr().out


def test_of_nothing_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_workloads([], ended=False)
    print_workloads([], ended=True)

    said = capsys.readouterr()
    assert said.out == ""
    assert "rocmrun ps --all" in said.err
    assert "there is no workload" in said.err


def test_scripts_get_every_fact_but_the_controller() -> None:
    told = workload_to_json(SERVER)

    assert told["created_at"] == "2023-11-14T22:13:20+00:00"
    assert (told["health"], told["exit_code"], told["profile"]) == ("healthy", None, "serve")
    assert "controller" not in told
    assert workload_to_json(replace(SERVER, health="", digest=""))["health"] is None


def test_scripts_get_what_was_stopped() -> None:
    assert stopped_to_json(Stopped(name="server", exit_code=0, removed=True)) == {
        "name": "server", "exit_code": 0, "removed": True, "had_ended": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("state", "how"), [("running", "it runs on"), ("created", "it does not run")]
)
def test_a_handover_that_was_cut_off_is_said_with_its_way_out(state: str, how: str) -> None:
    """Whether there is a server at all is what people want to know first."""
    successor = replace(SERVER, name="server-ab", run="ab", successor_of="server", state=state)

    said = cut_off_warning(successor)

    assert said.startswith("server-ab was to become server when its launch was cut off")
    assert f"; {how}: rocmrun clean" in said
    told = workload_to_json(successor, cut_off=True)
    assert (told["successor_of"], told["cut_off"]) == ("server", True)
    assert workload_to_json(SERVER)["successor_of"] is None
