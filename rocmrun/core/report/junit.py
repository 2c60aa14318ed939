"""A probe's report as JUnit XML, which CI servers show: a suite a group, a case a check."""

import json
import re
from collections.abc import Iterable
from xml.etree import ElementTree as Xml

from rocmrun.core.probing.progress import label
from rocmrun.core.report.model import ProbeCheck, ProbeReport
from rocmrun.core.run_record import RefusedRun, RunRecord

# Everything that XML 1.0 has no character for, control characters first of all: www.w3.org/TR/xml/#charsets
_NO_CHARACTERS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(record: RunRecord | RefusedRun) -> str:
    """Return *record* as an XML document.

    JUnit knows no degraded check: one is passed here, and its output begins with the reason. The
    verdict of the whole probe is a case of its own, since a report can be broken without a failed check.
    """
    report = record.probe if isinstance(record, RunRecord) else None
    root = Xml.Element("testsuites", name=_clean(f"rocmrun probe {record.profile}"))
    checks = report.checks if report else ()
    for group in dict.fromkeys(check.group for check in checks):
        cases = [_case(check) for check in checks if check.group == group]
        _add_suite(root, group, cases, record.started_at)
    _add_suite(root, "verdict", [_verdict(record, report)], record.started_at)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, 0)) for suite in root)))
    root.set("time", _seconds(report.seconds if report else 0.0))
    Xml.indent(root)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"
    )


def _add_suite(root: Xml.Element, name: str, cases: list[Xml.Element], at: str) -> None:
    counts = {
        word: str(sum(case.find(kind) is not None for case in cases))
        for word, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    suite = Xml.SubElement(
        root,
        "testsuite",
        {
            "name": _clean(name),
            "tests": str(len(cases)),
            **counts,
            "time": _seconds(sum(float(case.get("time", 0)) for case in cases)),
            "timestamp": at,
        },
    )
    suite.extend(cases)


def _case(check: ProbeCheck) -> Xml.Element:
    case = _new_case(label(check.device), check.name, check.seconds)
    if check.status == "fail":
        Xml.SubElement(case, "failure", message=_clean(check.reason), type=check.status)
    elif check.status == "skipped":
        Xml.SubElement(case, "skipped", message=_clean(check.reason))
    Xml.SubElement(case, "system-out").text = _clean("\n".join(_output(check)))
    return case


def _output(check: ProbeCheck) -> Iterable[str]:
    if check.status == "degraded":
        yield f"degraded: {check.reason}"
    if check.threshold is not None:
        yield f"threshold {check.threshold:g}: {check.threshold_source}"
    yield json.dumps(check.evidence, indent=1, sort_keys=True, ensure_ascii=False)


def _verdict(record: RunRecord | RefusedRun, report: ProbeReport | None) -> Xml.Element:
    case = _new_case(record.profile, "probe", report.seconds if report else 0.0)
    if record.error is not None:
        Xml.SubElement(case, "error", message=_clean(record.error.message), type=record.error.slug)
    elif report is None:
        Xml.SubElement(case, "skipped", message="no probe ran")
    elif report.status == "fail":
        Xml.SubElement(case, "failure", message=_clean(report.reason), type="fail")
    elif report.status == "broken":
        Xml.SubElement(case, "error", message=_clean(report.reason), type="broken")
    if report is not None:
        said = [f"{report.status}: {report.reason}".removesuffix(": "), *report.stderr_tail]
        Xml.SubElement(case, "system-out").text = _clean("\n".join(said))
    return case


def _new_case(place: str, name: str, seconds: float) -> Xml.Element:
    names = {"classname": _clean(place), "name": _clean(name)}
    return Xml.Element("testcase", {**names, "time": _seconds(seconds)})


def _seconds(value: float) -> str:
    return f"{max(0.0, value):.3f}"


def _clean(text: str) -> str:
    return _NO_CHARACTERS.sub("", text)
