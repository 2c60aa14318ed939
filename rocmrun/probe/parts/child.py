"""What a child does: the jobs that come down its pipe."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from typing import Any, Callable

from rocmrun.probe.parts.build import stage_build, stage_import
from rocmrun.probe.parts.checks import Reporter
from rocmrun.probe.parts.collectives import stage_collectives
from rocmrun.probe.parts.device import stage_device
from rocmrun.probe.parts.environment import stage_environment
from rocmrun.probe.parts.hip import stage_hip, stage_hip_runtime
from rocmrun.probe.parts.isolation import stage_isolation
from rocmrun.probe.parts.model import stage_model
from rocmrun.probe.parts.operators import stage_operator, stage_operators_installed
from rocmrun.probe.parts.own import stage_own
from rocmrun.probe.parts.peer_copies import stage_peer_copies
from rocmrun.probe.parts.tools import stage_tools


def child_main(jobs: int, results: int) -> int:
    """Do the jobs that come down the pipe, one a line, until it is closed."""
    # Python puts the directory of its script first; for a memfd that is "/", where a directory
    # named like a module may lie.
    sys.path[:] = [entry for entry in sys.path if entry not in ("/", "/proc/self/fd")]
    faulthandler.enable()
    reporter = Reporter(results)
    state: dict[str, Any] = {}
    stages: dict[str, Callable[..., None]] = {
        "environment": stage_environment,
        "isolation": stage_isolation,
        "tools": stage_tools,
        "import": stage_import,
        "build": stage_build,
        "device": stage_device,
        "hip_runtime": stage_hip_runtime,
        "hip": stage_hip,
        "collectives": stage_collectives,
        "peer_copies": stage_peer_copies,
        "operators_installed": stage_operators_installed,
        "operator": stage_operator,
        "model": stage_model,
        "own": stage_own,
    }
    with os.fdopen(jobs, "rb") as lines:
        for line in lines:
            job = json.loads(line)
            # Says where it hangs, from a thread that needs no interpreter lock, and ends a child
            # whose controller is gone.
            faulthandler.dump_traceback_later(job["timeout"], exit=True)
            stages[job["stage"]](job, reporter, state)
            faulthandler.cancel_dump_traceback_later()
            reporter.send(done=job["stage"])
    return 0
