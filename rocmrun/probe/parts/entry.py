"""Prove, from inside a container or on bare metal, that every accelerator here computes right.

Stand-alone: Python 3.9 or newer, the standard library and torch. Nothing here may import more.

By hand:        python3 gpu_probe.py --help
In a container: the source and one line of settings arrive on standard input, so nothing is mounted.

Standard output carries JSON Lines, one object an event: `start`, then one `check` for each thing
that was tried, then `end`. Everything meant for people goes to standard error.

This process never imports torch. Each device is exercised by a child process that sees only that
device, so a hang, an abort or a fault of one is that device's result and the others still run.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import sys
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

from rocmrun.probe.parts.by_hand import parse_arguments, print_summary
from rocmrun.probe.parts.checks import described
from rocmrun.probe.parts.child import child_main
from rocmrun.probe.parts.controller import Controller
from rocmrun.probe.parts.events import Events, say
from rocmrun.probe.parts.machine import signal_name
from rocmrun.probe.parts.program import Program, program_of, show_text
from rocmrun.probe.parts.settings import (
    PROBE_VERSION,
    SettingsError,
    complete_settings,
    stages_of,
)


def probe(given: dict[str, Any], program: Program, *, by_hand: bool = False) -> int:
    """Run the probe and return its exit code: 0 pass or degraded, 1 fail, 2 settings, 3 its own fault.

    *by_hand* ends it with a table for people; in a container rocmrun makes one of the report.
    """
    events = Events()
    try:
        settings = complete_settings(given)
        events.runtime = settings["runtime"]
        controller = Controller(settings, program, events)
        end_on_signals(controller, events)
        events.emit(
            "start",
            probe_version=PROBE_VERSION,
            level=settings["level"],
            accelerator=settings["accelerator"],
            runtime=settings["runtime"],
            stages=stages_of(settings),
            python=platform.python_version(),
            pid=os.getpid(),
        )
        controller.run()
        if by_hand:
            print_summary(events.told)
        return 0 if events.end() in ("pass", "degraded") else 1
    except SettingsError as error:
        events.end(f"settings: {error}")
        return 2
    except BrokenPipeError:
        say("nobody reads the report")
    except Exception as error:
        say(traceback.format_exc())
        with contextlib.suppress(OSError):
            events.end(f"the probe itself failed: {described(error)}")
    return 3


def end_on_signals(controller: Controller, events: Events) -> None:
    """Make SIGTERM, SIGINT and SIGHUP end all children and close the report."""

    def end(number: int, _frame: Any) -> None:
        with contextlib.suppress(OSError):
            events.end(f"ended by {signal_name(number)}")
        controller.kill()
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


def main(arguments: list[str], code: CodeType, source: bytes | None, settings: bytes | None) -> int:
    """Start as a child, from standard input, or by hand; *code* is what all of this was compiled to."""
    if arguments[:1] == ["--child"]:
        jobs, results, *text = map(int, arguments[1:])
        if text:
            show_text(text[0], code)
        return child_main(jobs, results)
    program = program_of(Path(__file__).read_bytes() if source is None else source, code)
    if settings is None:
        return probe(parse_arguments(arguments), program, by_hand=True)
    try:
        given = json.loads(settings)
    except ValueError:
        given = {"v": "unreadable"}
    return probe(given, program)


if __name__ == "__main__":
    # The bootstrap on the command line leaves these two beside us; by hand they are absent.
    given_source, given_settings = map(globals().get, ("PROBE_SOURCE", "PROBE_SETTINGS"))
    sys.exit(main(sys.argv[1:], sys._getframe().f_code, given_source, given_settings))  # noqa: SLF001
