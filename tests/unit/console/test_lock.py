"""What people and scripts are told of a lock."""

from typing import Any

from rocmrun.console.lock import check_as_json, check_lines, report_as_json, report_lines
from rocmrun.core.lock import Lock, LockedFacts, PinnedImage
from rocmrun.core.lock_changes import changes
from rocmrun.core.lock_check import Finding
from rocmrun.core.lock_report import CheckReport, FileReport, Inherited, LockReport
from rocmrun.errors import TagMoved

A, B, C = (f"sha256:{letter * 64}" for letter in "abc")


def pin(name: str, found: str | None = A, **fields: Any) -> PinnedImage:
    return PinnedImage(ref=f"docker.io/team/{name}:1", digest=found, **fields)


BEFORE = Lock.of(
    [
        pin("changed", facts=LockedFacts(rocm="7.1.0", gfx=("gfx906",))),
        pin("kept"),
        pin("removed"),
        pin("updated"),
    ]
)
AFTER = Lock.of(
    [
        pin("added", facts=LockedFacts(rocm="7.2")),
        pin("changed", B, facts=LockedFacts(rocm="7.1.1", gfx=("gfx906", "gfx950"))),
        pin("kept"),
        PinnedImage(ref="docker.io/team/local:1", image_id=C, source="local"),
        pin("updated", image_id=C),
    ]
)
FILE = FileReport(
    path="rocmrun.lock",
    changes=changes(BEFORE, AFTER),
    written=True,
    inherited=(Inherited(pin=pin("shipped"), path="/usr/rocmrun.lock"),),
)


def test_one_line_a_change_and_one_a_file() -> None:
    """Short digests, short names, and what a reviewer of an upgrade wants to know; kept pins are counted."""
    assert list(report_lines(LockReport(files=(FILE,)))) == [
        "+ team/added:1  aaaaaaaaaaaa  ROCm 7.2",
        "~ team/changed:1  aaaaaaaaaaaa -> bbbbbbbbbbbb  ROCm 7.1.0 -> 7.1.1  gfx +gfx950",
        "+ team/local:1  cccccccccccc  local image",
        "- team/removed:1  aaaaaaaaaaaa",
        "* team/updated:1  aaaaaaaaaaaa  image id recorded",
        "= team/shipped:1  aaaaaaaaaaaa  as pinned in /usr/rocmrun.lock",
        "rocmrun.lock: written (2 added, 1 removed, 1 changed, 1 updated, 1 kept)",
    ]


def last_line(before: Lock, after: Lock, *, written: bool = False, dry_run: bool = False) -> str:
    file = FileReport(path="f", changes=changes(before, after), written=written)
    return list(report_lines(LockReport(files=(file,), dry_run=dry_run)))[-1]


def test_the_last_line_says_what_became_of_the_file() -> None:
    """Written or not, or what a run without --dry-run would do."""
    kept = Lock.of([pin("kept")])

    assert last_line(kept, kept) == "f: unchanged (1 kept)"
    assert last_line(Lock(), Lock()) == "f: nothing to write"
    assert last_line(kept, kept, dry_run=True) == "f: would stay (1 kept)"
    assert last_line(Lock(), kept, dry_run=True) == "f: would be written (1 added)"
    assert last_line(Lock(), kept, written=True) == "f: written (1 added)"


def test_scripts_get_everything_in_full() -> None:
    """Whole digests, before and after, and what other locks provide."""
    report = report_as_json(LockReport(files=(FILE,), warnings=("w",), asked=2))

    (file,) = report["locks"]
    by_ref = {image["ref"]: image for image in file["images"]}
    changed = by_ref["docker.io/team/changed:1"]
    assert (changed["before"]["digest"], changed["after"]["digest"]) == (A, B)
    assert by_ref["docker.io/team/removed:1"]["after"] is None
    assert file["inherited"][0]["path"] == "/usr/rocmrun.lock"
    assert (report["v"], report["ok"], report["asked"], report["warnings"]) == (1, True, 2, ["w"])


def test_a_check_without_findings() -> None:
    """One line; offline it does not claim to know about tags."""
    online = CheckReport(paths=("a", "b"), checked=("x", "y"))
    offline = CheckReport(paths=("a",), checked=("x",), offline=True)

    assert list(check_lines(online)) == [
        "a, b: 2 images locked as the profiles ask, and every tag still names its digest"
    ]
    assert list(check_lines(offline)) == ["a: 1 image locked as the profiles ask"]
    assert check_as_json(online)["ok"] is True
    assert "error" not in check_as_json(online)


def test_a_check_with_findings() -> None:
    """The deciding error, and each finding with its own code."""
    findings = (
        Finding(ref="x", error=TagMoved("x moved", hint="h")),
        Finding(ref="y", error=TagMoved("y moved")),
    )

    report = check_as_json(CheckReport(paths=("a",), findings=findings))

    assert (report["ok"], report["error"]["slug"], report["error"]["code"]) == (
        False,
        "tag-moved",
        4,
    )
    assert report["error"]["details"] == ["x moved", "y moved"]
    assert [(item["ref"], item["code"]) for item in report["findings"]] == [("x", 4), ("y", 4)]
