"""The checks of a profile's own, each in a process of its own after everything else has let go of the GPUs."""

from __future__ import annotations

import os
import time
from typing import Any, Callable

from rocmrun.probe.parts.events import Events, made_check
from rocmrun.probe.parts.processes import Child, device_environment

NO_TIME = "no time was left for it: the whole probe has timeout_seconds"
REPORT_SECONDS = 5.0  # what a check's child may take to say how the check ended


def run_own_checks(
    settings: dict[str, Any],
    events: Events,
    spawn: Callable[[str, dict[str, str]], Child],
    close: Callable[[Child], None],
    devices: dict[Any, bool],
    end: float,
) -> None:
    """Run every check, one after the other, once or once a device.

    *devices* says which are here and whether each passed on its own: with one that failed, a check
    of all of them would only say the same again. *end* is when the probe must be over.
    """
    failed = [str(device) for device, passed in devices.items() if not passed]
    for own in settings["checks"]:
        targets = list(devices) if own["device"] == "each" else [None]
        if not devices:
            skip(events, own, None, "no device was found")
            continue
        for device in targets:
            bad = failed if device is None else [] if devices[device] else [str(device)]
            left = end - time.monotonic() - REPORT_SECONDS
            if bad:
                skip(events, own, device, f"device {', '.join(bad)} failed on its own")
            elif left <= 0:
                # Not skipped: work must not start because the check that it waits for came too late.
                events.fail("own", own["name"], NO_TIME, device=device)
            else:
                environment = dict(os.environ)
                if isinstance(device, int):
                    environment = device_environment(settings["accelerator"], device, 1)
                child = spawn(f"check {own['name']}", environment)
                run_own_check(child, events, own, device, min(own["timeout"], left))
                close(child)


def run_own_check(
    child: Child, events: Events, own: dict[str, Any], device: Any, seconds: float
) -> None:
    """Run one check in *child* and report it."""
    child.on_doing = lambda group, name: events.doing(group, name, device)
    job = {"stage": "own", "own": own, "seconds": seconds}
    outcome = child.run(
        job, seconds + REPORT_SECONDS, lambda check: events.check({**check, "device": device})
    )
    if outcome.ended != "done" and not outcome.checks:
        reason, evidence = outcome.reason, outcome.evidence
        events.fail("own", own["name"], reason, device=device, evidence=evidence)


def skip(events: Events, own: dict[str, Any], device: Any, reason: str) -> None:
    """Report a check that was not tried."""
    events.check(made_check("own", own["name"], "skipped", reason=reason, device=device))
