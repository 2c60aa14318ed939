"""The probe on the machine itself, without rocmrun and without a plan: how many devices there are it finds out."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "rocmrun/probe/gpu_probe.py"


def probed(visible: str | None) -> tuple[int, list[dict[str, Any]]]:
    """Run the script at quick; return its code and its checks."""
    environment = {name: text for name, text in os.environ.items() if "VISIBLE" not in name}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    done = subprocess.run(
        [sys.executable, SCRIPT, "--accelerator", "cuda"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, [event for event in events if event["event"] == "check"]


def identified(checks: list[dict[str, Any]]) -> list[Any]:
    return sorted(check["device"] for check in checks if check["name"] == "identity")


def test_all_devices_are_found(gpu_count: int) -> None:
    code, checks = probed(None)

    assert (code, identified(checks)) == (0, list(range(gpu_count)))


def test_fewer_than_there_are_nodes(gpu_count: int) -> None:
    """A scheduler showed one of them, or none: no process of the others is left to be reported."""
    if gpu_count < 2:
        pytest.skip("this machine has one GPU")

    code, checks = probed("1")

    assert (code, identified(checks)) == (0, [0])
    assert {check["device"] for check in checks} == {None, 0}


def test_none_of_them(gpu_count: int) -> None:
    """Their nodes are there, and torch sees no device."""
    del gpu_count
    code, checks = probed("")

    assert code != 0
    (count,) = (check for check in checks if check["name"] == "device_count")
    assert count["status"] == "fail"
    assert identified(checks) == []
