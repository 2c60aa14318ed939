"""The order of the stages; it never imports torch itself."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rocmrun.probe.parts.events import Events, made_check, say
from rocmrun.probe.parts.hip_layer import HipLayer, which_is_broken
from rocmrun.probe.parts.identity import same_device
from rocmrun.probe.parts.operators import run_operators
from rocmrun.probe.parts.own_stage import run_own_checks
from rocmrun.probe.parts.peer_copies import known_hang, reason_not_to_copy
from rocmrun.probe.parts.processes import Child, device_environment
from rocmrun.probe.parts.program import Program
from rocmrun.probe.parts.settings import stages_of
from rocmrun.probe.parts.siblings import Siblings
from rocmrun.probe.parts.together import run_together
from rocmrun.probe.parts.waves import likely_devices, wave_size


class Controller:
    """Runs the stages in order; every step of a device happens in that device's child."""

    def __init__(self, settings: dict[str, Any], program: Program, events: Events) -> None:
        self._settings = settings
        self._program = program
        self._events = events
        self._end = time.monotonic() + settings["timeout_seconds"]
        self._children: list[Child] = []
        self._accelerator = settings["accelerator"]
        self._planned = settings["expect"].get("gpus") or None
        self._found = 0  # devices that torch counts
        self._siblings = Siblings()
        self._proved: dict[Any, bool] = {}  # each device, and whether it passed on its own
        self._usable = False  # whether torch is here and built for these devices
        self._counts: dict[str, int] = {}  # how many devices a stage counted
        self._identities: list[dict[str, Any]] = []  # what each device says that it is
        self._claims: dict[str, list[list[int]]] = {}  # by stage: what a device can be

    def run(self) -> None:
        """Run every stage of the level."""
        try:
            self._environment()
            if self._accelerator == "cpu":
                self._cpu()
            elif self._settings["runtime"] == "hip":
                self._hip(sole=True)
            else:
                self._torch_and_hip()
            self._end_children()  # which hold memory on the GPUs
            if "operators" in stages_of(self._settings):
                run_operators(
                    self._settings,
                    self._events,
                    self._child,
                    self._close,
                    self._proved,
                    self._timeout,
                )
            run_own_checks(
                self._settings, self._events, self._child, self._close, self._proved, self._end
            )
        finally:
            self._end_children()

    def _end_children(self) -> None:
        if self._settings["level"] == "quick":
            self.kill()  # the deeper levels see whether a runtime winds up in order
        for child in self._children:
            child.dismiss()
        for child in self._children:
            child.close()
        self._children.clear()

    def kill(self) -> None:
        """End every child at once."""
        for child in self._children:
            child.kill()

    def _child(self, label: str, environment: dict[str, str]) -> Child:
        child = Child(label, self._program, environment)
        self._children.append(child)
        return child

    def _close(self, child: Child) -> None:
        self._children.remove(child)
        child.close()

    def _timeout(self, stage: str) -> float:
        """Return a stage's limit, less where the whole probe has less time left."""
        left = self._end - time.monotonic()
        return float(max(1.0, min(self._settings["timeouts"][stage], left)))

    def _job(self, stage: str, **fields: Any) -> dict[str, Any]:
        shared = {key: self._settings[key] for key in ("accelerator", "level", "size", "expect")}
        return {"stage": stage, **shared, **fields}

    def _do(self, child: Child, stage: str, device: Any = None, **fields: Any) -> bool:
        """Run one stage in a child and report it; return whether the next one makes sense."""
        child.begin(self._job(stage, **fields), self._timeout(stage))
        return self._collect(child, stage, device)

    def _collect(self, child: Child, stage: str, device: Any = None) -> bool:
        child.on_doing = lambda group, name: self._events.doing(group, name, device)
        outcome = child.wait(lambda check: self._events.check({**check, "device": device}))
        for check in outcome.checks if stage == "device" else ():
            self._siblings.note(check, device)
        for evidence in (check["evidence"] for check in outcome.checks):
            if "claims" in evidence:
                self._claims.setdefault(stage, []).append(evidence["claims"])
            if "device_count" in evidence:
                self._counts[stage] = evidence["device_count"]
        named = [c for c in outcome.checks if (c["group"], c["name"]) == ("device", "identity")]
        self._identities += [check["evidence"] for check in named]
        if outcome.ended != "done":
            groups = {
                "import": ("build", "torch"),
                "hip_runtime": ("hip", "runtime"),
                "peer_copies": ("collectives", "peer_copies"),
            }
            group, name = outcome.doing or groups.get(stage, (stage, stage))
            self._events.fail(
                group,
                name,
                f"{outcome.reason} (in {name})",
                device=device,
                seconds=outcome.seconds,
                evidence=outcome.evidence,
            )
        return outcome.passed

    def _environment(self) -> None:
        child = self._child("environment", dict(os.environ))
        self._do(child, "environment")
        self._do(child, "isolation")
        if "tools" in stages_of(self._settings):
            self._do(child, "tools")
        self._close(child)

    def _cpu(self) -> None:
        """One child for the build and the device, so that torch is imported once; a second one to work with it."""
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
        child = self._child("cpu", environment)
        passed = self._do(child, "import", told=True) and self._do(child, "build", gpus=None)
        other = None
        if passed and "collectives" in stages_of(self._settings):
            other = self._child("cpu rank 1", environment)  # imports while the first one computes
            other.begin(self._job("import", told=False), self._timeout("import"))
        passed = self._model(child, "cpu", passed=passed and self._do(child, "device", "cpu"))
        if "collectives" not in stages_of(self._settings):
            return
        if not passed or other is None:
            self._skip("collectives", "all_reduce", "the cpu failed on its own")
        elif self._collect(other, "import"):
            self._collectives([child, other], "gloo")

    def _torch_and_hip(self) -> None:
        """Ask HIP without torch as well: first where the level has time for it, else once torch has failed."""
        told = self._hip(sole=False) if "hip" in stages_of(self._settings) else None
        self._gpus()
        works = bool(self._proved) and all(self._proved.values())
        if not works and told is None and self._accelerator == "rocm":
            self._end_children()
            told = self._hip(sole=False)
        self._events.diagnosis = which_is_broken(works=works, reached=self._usable, hip=told)

    def _hip(self, *, sole: bool) -> str:
        layer = HipLayer(
            self._planned,
            child=self._child,
            close=self._close,
            do=self._do,
            skip=self._skip,
            counts=self._counts,
        )
        told = layer.run(sole=sole)
        self._distinct("hip")
        if sole:
            self._proved = dict(layer.passed)
        return told

    def _gpus(self) -> None:
        """Import torch in one child that sees all GPUs and, at the same time, in one for each of them."""
        build = self._child("build", dict(os.environ))
        build.begin(self._job("import", told=True), self._timeout("import"))
        count = len(self._planned) if self._planned else None
        started = likely_devices(self._accelerator) if count is None else count
        wave = wave_size(started)
        first = [self._start(index, wave) for index in range(min(started, wave))]
        self._usable = usable = self._collect(build, "import") and self._build(build, count)
        if count is None:
            count = self._found
        self._close(build)
        if not usable:
            self.kill()
            self._proved = dict.fromkeys(range(count), False)
            for index in range(count):
                self._skip(
                    "device", "device", "torch is not usable here: see the build checks", index
                )
            return
        if started != count:
            for child in first:
                child.kill()
                self._close(child)
            wave = wave_size(count)
            first = [self._start(index, wave) for index in range(min(count, wave))]
        self._exercise(first, count, wave)

    def _build(self, build: Child, planned: int | None) -> bool:
        """Report the build; a device count that is off still leaves devices to exercise."""
        build.begin(self._job("build", gpus=planned), self._timeout("build"))
        right_build = False

        def report(check: dict[str, Any]) -> None:
            nonlocal right_build
            self._events.check(check)
            self._found = check["evidence"].get("device_count") or self._found
            right_build = right_build or (check["name"], check["status"]) == ("accelerator", "pass")

        outcome = build.wait(report)
        if outcome.ended != "done":
            self._events.fail("build", "build", outcome.reason, evidence=outcome.evidence)
        return right_build

    def _start(self, index: int, wave: int) -> Child:
        environment = device_environment(self._accelerator, index, wave)
        child = self._child(f"device {index}", environment)
        child.begin(self._job("import", told=False), self._timeout("import"))
        return child

    def _exercise(self, first: list[Child], count: int, wave: int) -> None:
        """Exercise all devices, as many at a time as fit into memory, then let them work together."""
        passed: list[bool] = []
        children = first
        for begin in range(0, count, wave):
            if begin:
                for child in children:
                    self._close(child)
                children = [
                    self._start(index, wave) for index in range(begin, min(begin + wave, count))
                ]
            with ThreadPoolExecutor(len(children)) as pool:
                passed += pool.map(self._device, children, range(begin, begin + len(children)))
        self._distinct("device")
        for check in self._siblings.judged():
            self._events.check(check)
        self._together(children, passed, wave)

    def _device(self, child: Child, index: int) -> bool:
        if not self._collect(child, "import", index):
            self._proved[index] = False
            return False
        passed = self._do(child, "device", index, index=index, planned=self._planned)
        return self._model(child, index, passed=passed)

    def _model(self, child: Child, device: Any, *, passed: bool) -> bool:
        """Run a model on a device that passed on its own; return whether it still stands."""
        if passed and "model" in stages_of(self._settings):
            passed = self._do(child, "model", device)
        elif "model" in stages_of(self._settings):
            self._skip("model", "load", "the device failed on its own", device)
        self._proved[device] = passed
        return passed

    def _distinct(self, stage: str) -> None:
        every = self._claims.get(stage, [])
        for reason in same_device(every):
            self._events.fail(stage, "distinct", reason, evidence={"claims": every})

    def _together(self, children: list[Child], passed: list[bool], wave: int) -> None:
        count = len(passed)
        failed = [str(index) for index, good in enumerate(passed) if not good]
        if count <= 1:
            self._skip("collectives", "all_reduce", "there is only one device")
        elif failed:
            self._skip("collectives", "all_reduce", f"device {', '.join(failed)} failed on its own")
        elif count > wave:
            reason = f"{count} ranks at a time do not fit into memory, {wave} do"
            self._skip("collectives", "all_reduce", reason)
        else:
            hang = known_hang(self._identities)
            if hang:
                say(f"warning: {hang}")
            self._collectives(children, "nccl")
            if self._settings["level"] == "full":
                self._peer_copies(hang)

    def _skip(self, group: str, name: str, reason: str, device: Any = None) -> None:
        self._events.check(made_check(group, name, "skipped", reason=reason, device=device))

    def _collectives(self, children: list[Child], backend: str) -> None:
        """Let all children work together and report one check for each way of doing so."""
        boards = [str(seen.get("name")) for seen in self._identities]
        job = self._job("collectives", message_bytes=self._settings["message_bytes"])
        timeout = self._timeout("collectives")
        for check in run_together(children, job, timeout, backend, boards):
            self._events.check(check)

    def _peer_copies(self, hang: str) -> None:
        """Copy between all pairs of GPUs; where that has hung a host, after a warning and a pause."""
        reason = reason_not_to_copy(hang, os.environ)
        if reason:
            self._skip("collectives", "peer_copies", reason)
            return
        child = self._child("peer copies", dict(os.environ))
        if self._do(child, "import", told=False):
            fields = {"message_bytes": self._settings["message_bytes"]}
            self._do(child, "peer_copies", note={"known_hang": hang} if hang else {}, **fields)
        self._close(child)
