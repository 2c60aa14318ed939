"""What people and scripts are told of a clean."""

from rocmrun.console.clean import as_json, lines
from rocmrun.core.keep_tags import CleanedImages, KeptImage
from rocmrun.usecases.clean_caches import CleanedCaches, UnusedCache

ID = f"sha256:{'1' * 64}"
TAG = "rocmrun/locked:aaaaaaaaaaaa"
PULLED = "docker.io/team/x@sha256:a"


def kept(*names: str, stays: str = "") -> KeptImage:
    return KeptImage(image_id=ID, tags=(TAG,), names=names, stays=stays, size_bytes=2048)


CLEANED = CleanedImages(
    images=(
        kept(TAG, PULLED),
        kept(TAG, stays="team/x:1 names it too"),
        kept(stays="a container uses it"),
    ),
    locks=("/p/rocmrun.lock",),
)


def test_one_line_for_each_container_and_image() -> None:
    assert list(lines([("rocmrun-x", "left behind")], CLEANED)) == [
        "rocmrun-x: left behind",
        f"{TAG}: no lock uses it; image 111111111111 goes with it (2 KiB)",
        f"{TAG}: no lock uses it; image 111111111111 stays, since team/x:1 names it too",
        f"{TAG}: no lock uses it; image 111111111111 keeps it, since a container uses it",
    ]


def test_scripts_get_what_was_removed_and_why_the_rest_stays() -> None:
    told = as_json([], CLEANED, dry_run=True)

    assert (told["dry_run"], told["removed"], told["locks"]) == (True, [], ["/p/rocmrun.lock"])
    assert [(item["removed"], item["image_removed"]) for item in told["images"]] == [
        ([TAG, PULLED], True),
        ([TAG], False),
        ([], False),
    ]
    assert [item["why_it_stays"] for item in told["images"]] == [
        None,
        "team/x:1 names it too",
        "a container uses it",
    ]


def test_images_that_nobody_asked_about_are_not_mentioned() -> None:
    assert as_json([("x", "y")], None, dry_run=False) == {
        "v": 1,
        "ok": True,
        "dry_run": False,
        "removed": [{"name": "x", "why": "y"}],
        "renamed": [],
    }


def test_a_successor_that_got_its_name_is_said() -> None:
    """It runs on: only what it is called has changed."""
    renamed = [("server-ab", "server")]

    assert list(lines([], None, renamed=renamed)) == [
        "server-ab: its --replace was cut off; it runs on as server"
    ]
    told = as_json([], None, dry_run=False, renamed=renamed)
    assert told["renamed"] == [{"name": "server-ab", "to": "server"}]


def test_caches_are_told_with_their_sizes() -> None:
    gone = UnusedCache(path="/c/a", profile="/p", digest="7f", size_bytes=2048, why="no lock")
    used = UnusedCache(
        path="/c/b",
        profile="",
        digest="80",
        size_bytes=0,
        why="no lock",
        stays="container x uses it",
    )
    caches = CleanedCaches(caches=(gone, used), locks=("/q/rocmrun.lock",))

    assert list(lines([], None, caches)) == [
        "/c/a: no lock; it goes (2 KiB)",
        "/c/b: no lock; it stays (0 B), since container x uses it",
    ]
    told = as_json([], CLEANED, caches, dry_run=False)
    assert told["locks"] == ["/p/rocmrun.lock", "/q/rocmrun.lock"]
    assert told["caches"][0] == {
        "path": "/c/a", "profile": "/p", "digest": "7f", "size_bytes": 2048, "why": "no lock",
        "removed": True, "why_it_stays": None,
    }  # fmt: skip
    assert [cache["removed"] for cache in told["caches"]] == [True, False]
