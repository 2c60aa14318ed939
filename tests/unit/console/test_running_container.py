"""What people see of a container that runs, where there is much of it or little."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from rocmrun.console.running_container import (
    examined_as_json,
    live_line,
    print_examined,
    shown_watch,
)
from rocmrun.core.doctor import Diagnosis
from rocmrun.core.running.observation import Observation
from rocmrun.core.running.process import DrmClient
from rocmrun.usecases.examine_container import Examined
from tests.unit.core.running.observations import process, record, seen, sensors, use


def printed(observation: Observation) -> str:
    file = io.StringIO()
    console = Console(file=file, width=200, highlight=False)
    nothing = Diagnosis(checks=(), findings=(), kinds={})
    print_examined(console, Examined(seen=observation, diagnosis=nothing))
    return file.getvalue()


def test_the_busiest_of_many_processes_are_shown() -> None:
    """A server has hundreds."""
    early = [process(700 + place) for place in range(20)]
    late = [replace(each, cpu_seconds=10.0 + place) for place, each in enumerate(early)]
    text = printed(seen(processes=(early, late)))

    assert "719 python3" in text
    assert "700 python3" not in text
    assert "and 12 more that do less" in text


def test_what_may_not_be_seen_is_no_empty_list() -> None:
    """Another user's descriptors; a process without GPU nodes; one that holds memory."""
    client = DrmClient(device="0000:63:00.0", client="1", vram_bytes=3 << 30)
    these = [process(nodes=None), process(701, nodes=frozenset()), process(702, clients=(client,))]
    text = printed(seen(processes=(these, these)))

    assert "not to be seen" in text
    assert "3 GiB" in text
    assert any(line.split()[:4] == ["701", "python3", "0.00", "-"] for line in text.splitlines())


def test_what_was_not_kept_is_said() -> None:
    """Of a watch of a week: how many samples were taken, and how many the tables and checks are made of."""
    watched = replace(seen(), taken=604_800)

    heading = printed(watched).splitlines()[0]
    assert "604800 samples in 10.0 s, of which 2 were kept, evenly" in heading
    nothing = Diagnosis(checks=(), findings=(), kinds={})
    looked = examined_as_json(Examined(seen=watched, diagnosis=nothing))["looked"]
    assert (looked["samples"], looked["kept"]) == (604_800, 2)
    assert "kept" not in printed(seen()).splitlines()[0]


def test_one_that_does_not_run_has_its_state_in_the_heading() -> None:
    """And no tables."""
    ended = replace(seen(), samples=(), record=record(pid=0, state="exited", profile=""))

    assert printed(ended).splitlines()[0] == "container vllm: exited"
    assert "Ctrl-C" in printed(replace(seen(), interrupted=True)).splitlines()[0]


def test_the_live_line_leaves_out_what_is_not_known() -> None:
    """One line, however little there is."""
    nothing = use(cpu_seconds=None, memory_bytes=None)
    bare = seen(last=sensors(busy_percent=None), uses=(nothing, nothing))

    assert live_line(bare, 30) == "10 of 30 s, Ctrl-C ends it"


def test_off_a_terminal_nothing_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets the end alone."""
    with shown_watch(5) as show:
        show(seen())

    assert capsys.readouterr() == ("", "")
