"""Run the real probe script as a real process, with the stub torch or with none."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from rocmrun.core.probing.protocol import bootstrap_command
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.report.parser import ReportParser

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "rocmrun" / "probe" / "gpu_probe.py"
STUB = ROOT / "tests" / "stub_torch"
TIMEOUTS = {"import": 20, "device": 20, "collectives": 20}


def gpus(count: int) -> list[dict[str, Any]]:
    """Return planned GPUs, as the stub torch and the stand-in for HIP show them."""
    return [
        {
            "index": index,
            "gfx": "gfx942",
            "pci_address": f"0000:{0x63 + index:02x}:00.0",
            "unique_id": f"f330dc00000000{0x63 + index:02x}",
        }
        for index in range(count)
    ]


TWO_GPUS = gpus(2)


def run_probe(
    scene: dict[str, Any] | None = None,
    *,
    environment: dict[str, str] | None = None,
    command: tuple[str, ...] = bootstrap_command(sys.executable),
    torch: bool = True,
    **settings: Any,
) -> ProbeReport:
    """Run the probe over standard input, as in a container, on 8x8 matrices."""
    small = {"size": 8, "message_bytes": 256, "timeouts": TIMEOUTS}
    given = {"v": 1, "accelerator": "rocm", **small, **settings}
    return finished(
        list(command),
        json.dumps(given).encode() + b"\n" + SCRIPT.read_bytes(),
        clean_environment(scene, torch=torch) | (environment or {}),
    )


def clean_environment(scene: dict[str, Any] | None, *, torch: bool = True) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    stub = {"PYTHONPATH": str(STUB), "STUB_TORCH": json.dumps(scene or {})}
    return kept | (stub if torch else {})


def finished(command: list[str], data: bytes, environment: dict[str, str]) -> ProbeReport:
    done = subprocess.run(
        command, input=data, env=environment, capture_output=True, check=False, timeout=120
    )
    parser = ReportParser()
    parser.feed(done.stdout)
    report = parser.finish(
        exit_code=done.returncode, stderr_tail=done.stderr.decode(errors="replace").splitlines()
    )
    assert (report.usable, 0) == (done.returncode == 0, report.noise_lines)
    return report


def found(report: ProbeReport, name: str, device: int | None = None) -> ProbeCheck:
    check = report.find("device", name, device)
    assert check is not None, [check.label for check in report.checks]
    return check
