"""What Debian's real libamdhip64 said in a container without a GPU, recorded from the probe's own output."""

from pathlib import Path

from rocmrun.core.report.parser import ReportParser

RECORDED = Path(__file__).parent / "recorded" / "hip-5.2.21153-without-a-gpu.jsonl"


def test_a_real_hip_without_a_device_fails_by_the_name_of_its_error() -> None:
    """And names the library and its version; nothing was compiled, which that hipRTC would not have survived."""
    parser = ReportParser()
    parser.feed(RECORDED.read_bytes())
    report = parser.finish(exit_code=1)

    assert (report.status, report.runtime) == ("fail", "hip")
    assert report.reason == (
        "hip: device_count: no device is visible: hipGetDeviceCount returned hipErrorNoDevice (100)"
    )
    assert report.version_of("hip") == "5.2.21153"
    runtime = report.find("hip", "runtime")
    assert runtime is not None
    assert runtime.evidence["library"].endswith("/libamdhip64.so.5.2.21153")
    assert [(c.name, c.status) for c in report.checks] == [
        ("runtime", "pass"),
        ("device_count", "fail"),
        ("identity", "skipped"),
    ]
