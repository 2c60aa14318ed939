"""Faults planted into the real torch: each is found by the model check that is there for it."""

import json

import pytest

from tests.docker.jobs import Jobs
from tests.unit.probe.runs import SCRIPT

# The probe's own source as a module, its model stage on small inputs, one fault after the other.
PLANT = r"""
import json, sys, types

probe = types.ModuleType("probe")
sys.modules["probe"] = probe
exec(compile(sys.stdin.buffer.read(), "gpu_probe.py", "exec"), probe.__dict__)
import torch

class Kept:
    def __init__(self):
        self.checks = {}
    def send(self, check=None, **_):
        if check:
            self.checks[check["name"]] = [check["status"], check.get("reason", "")]
    def check(self, group, name, quiet=False):
        return probe.Check(self, group, name, quiet=quiet)

def run():
    kept = Kept()
    probe.stage_model({"accelerator": "cpu", "level": "full"}, kept, {"torch": torch})
    return kept.checks

silu, softmax, save, argmax = torch.nn.functional.silu, torch.softmax, torch.save, torch.Tensor.argmax
hoard, calls = [], [0]

def slightly_off(value):
    result = silu(value)
    return result * 1.001 if value.dtype == torch.float32 else result

def not_a_number(value, dim):
    result = softmax(value, dim=dim)
    if value.dtype == torch.float32:
        result[..., 0] = float("nan")
    return result

def flipped(weights, path):
    save({name: tensor + (name == "head") * 1e-6 for name, tensor in weights.items()}, path)

def keeps(value):
    if value.dtype == torch.float32:
        hoard.append(torch.ones(1 << 18))
    return silu(value)

def another(value, **how):
    calls[0] += 1
    return argmax(value, **how) ^ int(calls[0] == 30)

found = {"none": run()}
torch.nn.functional.silu = slightly_off
found["off by a thousandth"] = run()
torch.nn.functional.silu = silu
torch.softmax = not_a_number
found["not a number"] = run()
torch.softmax = softmax
torch.save = flipped
found["another weight"] = run()
torch.save = save
torch.nn.functional.silu = keeps
found["keeps memory"] = run()
torch.nn.functional.silu = silu
torch.Tensor.argmax = another
found["another token"] = run()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(locked_jobs: Jobs) -> dict[str, dict[str, list[str]]]:
    """What the model stage says of each fault."""
    words = ("--interactive", "--", "python3", "-c", PLANT)
    done = locked_jobs.launch(
        locked_jobs.demo, *words, input=SCRIPT.read_text(), check=True, timeout=250
    )
    result: dict[str, dict[str, list[str]]] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(
    ("fault", "failed", "reason"),
    [
        ("off by a thousandth", "long_input", "times the error bound"),
        ("off by a thousandth", "batch", "logits are wrong"),
        ("not a number", "short_input", "logits are not finite"),
        ("another weight", "load", "1 of 11 tensors are not what was saved: head"),
        ("another token", "greedy_decode", "tokens are not the likeliest"),
    ],
)
def test_a_fault_is_found(
    found: dict[str, dict[str, list[str]]], fault: str, failed: str, reason: str
) -> None:
    status, said = found[fault][failed]

    assert (status, reason in said) == ("fail", True), said


def test_memory_that_is_kept_is_told(found: dict[str, dict[str, list[str]]]) -> None:
    """The values are right, so that work may start."""
    checks = found["keeps memory"]

    assert checks.pop("memory_growth")[0] == "degraded"
    assert {status for status, _ in checks.values()} == {"pass"}


def test_without_a_fault_nothing_is_found(found: dict[str, dict[str, list[str]]]) -> None:
    assert {status for status, _ in found["none"].values()} == {"pass"}


def test_after_weights_that_changed_nothing_else_is_tried(
    found: dict[str, dict[str, list[str]]],
) -> None:
    assert list(found["another weight"]) == ["load"]
