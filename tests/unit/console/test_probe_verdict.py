"""The last lines of `rocmrun probe`: what was proved, and in whose user space."""

import io

from rich.console import Console

from rocmrun.console.probe import print_report
from rocmrun.core.plan import PlannedImage
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import RunRecord
from tests.builders import ENGINE, host, plan


def test_a_probe_in_another_image_says_so_and_gives_that_images_versions() -> None:
    """Also of HIP alone, which has no build check."""
    job = plan(probe_image=PlannedImage(ref="example.com/probe:1"))
    runtime = ProbeCheck(group="hip", name="runtime", status="pass", evidence={"hip": "6.2.41134"})
    report = ProbeReport(status="pass", runtime="hip", checks=(runtime,), seconds=1.0)
    record = RunRecord.begin(job, host(), ENGINE, started_at="now").with_probe(report)
    console = Console(file=io.StringIO(), width=200)

    print_report(console, record)

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[-3:] == [
        "example.com/probe:1 on 6.8.0-60-generic: ROCm 6.2.41134",
        "probed for example.com/rocm/torch:1 in example.com/probe:1: its user space is the probe's, not the workload's",
        "verdict: pass (1 pass, 1.0 s)",
    ]
    assert record.rocm_version is None  # the workload's is not known
