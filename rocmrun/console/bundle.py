"""Show what became of a support bundle: where it was written, or what was found in one."""

from typing import Any

from rich.console import Console

from rocmrun.console.doctor import diagnosis_as_json, print_diagnosis
from rocmrun.console.output import say, warn
from rocmrun.core.bundle_outcome import JudgedBundle, WrittenBundle
from rocmrun.core.text import human_size, printable


def written_as_json(written: WrittenBundle) -> dict[str, Any]:
    """Return what is said of a bundle that was written."""
    return {
        "path": written.path,
        "size_bytes": written.size_bytes,
        "masked": dict(written.bundle.masked),
        "cut": list(written.bundle.cut),
        "differs": written.differs or None,
    }


def tell_written(written: WrittenBundle) -> None:
    """Say what was written, and what to do before it is sent."""
    masked = ", ".join(f"{kind} {count}" for kind, count in written.bundle.masked.items())
    say(f"wrote {written.path} ({human_size(written.size_bytes)}); masked: {masked or 'nothing'}")
    for cut in written.bundle.cut:
        say(f"left out: {cut}")
    if written.differs:
        warn(written.differs)
    say("read it before you send it: less " + written.path)


def judged_as_json(judged: JudgedBundle) -> dict[str, Any]:
    """Return what this version finds in a bundle, and where the bundle comes from."""
    return {**diagnosis_as_json(judged.found), "from": _origin(judged)}


def print_judged(console: Console, judged: JudgedBundle) -> None:
    """Print where a bundle comes from, then what is found in it."""
    origin = _origin(judged)
    made = judged.bundle.made
    console.print(
        f"From a bundle of rocmrun {printable(made.rocmrun, 40)}, {printable(made.at, 40)}: {printable(made.host, 400)}."
    )
    console.print("Nothing of this host was looked at; the commands below are for that one.")
    for cut in judged.bundle.cut:
        console.print(f"Left out there: {printable(cut, 400)}.")
    if origin["found_then"] != origin["found_now"]:
        console.print(
            f"That version found: {', '.join(origin['found_then']) or 'nothing'}.", style="bold"
        )
    console.print()
    print_diagnosis(console, judged.found)


def _origin(judged: JudgedBundle) -> dict[str, Any]:
    bundle = judged.bundle
    return {
        "rocmrun": bundle.made.rocmrun,
        "at": bundle.made.at,
        "host": bundle.made.host,
        "version": bundle.version,
        "cut": list(bundle.cut),
        "found_then": [printable(kind, 80) for kind in bundle.kinds],
        "found_now": [finding.kind.slug for finding in judged.found.findings],
    }
