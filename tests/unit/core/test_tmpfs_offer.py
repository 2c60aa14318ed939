"""Where a tmpfs may stand in for a writable root, how large it is, and what is said of it."""

import pytest

from rocmrun.core.text import GIB, MIB
from rocmrun.core.tmpfs_offer import (
    LeftOutPlace,
    Place,
    TmpfsTried,
    TriedPlace,
    choose,
    note_on,
    places_of,
    tmpfs_size,
    why_not,
    wider,
)
from rocmrun.core.writes import Writes, WrittenDirectory
from tests.builders import plan

PLAN = plan(
    {
        "container": {"tmpfs": {"/scratch": "1GiB"}},
        "secrets": [{"name": "token", "source": "env:TOKEN"}],
        "mounts": [{"source": "/srv", "target": "/data/in"}],
    }
)


def chosen(*places: str, program: str = "", written: int | None = 0) -> tuple[list[str], dict[str, str]]:  # fmt: skip
    found = [Place(path=path) for path in places]
    tried, left_out = choose(found, PLAN, program=program, written_bytes=written)
    return [place.path for place in tried], {place.path: place.why for place in left_out}


@pytest.mark.parametrize(
    "path",
    [
        "/", "/usr", "/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/local", "/usr/local/lib", "/lib64", "/lib", "/bin",
        "/sbin", "/etc", "/dev", "/dev/mapper", "/proc", "/proc/sys", "/sys", "/sys/fs", "/boot", "/boot/grub",
    ],
)  # fmt: skip
def test_directories_of_the_system_are_never_covered(path: str) -> None:
    """Whoever hides them runs another system."""
    assert why_not(path, PLAN, "") == "a directory of the system is never covered"


@pytest.mark.parametrize("path", ["/app", "/etc/app", "/usr/local/lib/app", "/opt/app-1.0_x", "/var/tmp", "/lib64x", "/app/a b", "/app/ünï"])  # fmt: skip
def test_others_may_be_tried(path: str) -> None:
    """A run decides whether that does harm."""
    assert why_not(path, PLAN, "/opt/program/serve") == ""


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/data", "/data/in is mounted there"),
        ("/data/in/deep", "/data/in is mounted there"),
        ("/scratch", "/scratch is mounted there"),
        ("/run", "/run/secrets/token is mounted there"),
        ("/home", "/home/rocmrun is mounted there"),
        ("/opt/program", "the job's program is there"),
        ("/a:b", "not every form of a profile can say such a name"),
        ("/a,b", "not every form of a profile can say such a name"),
        ("/a$b", "not every form of a profile can say such a name"),
        ("/a\nb", "not every form of a profile can say such a name"),
    ],
)
def test_what_is_in_use_and_what_cannot_be_said_is_left_out(path: str, why: str) -> None:
    """A mount below or above, the program, a name that a docker line would take apart."""
    assert why_not(path, PLAN, "/opt/program/bin/serve") == why


def test_places_come_from_the_engine_and_from_what_the_job_said() -> None:
    """What lies in a known one is told of it; what does not is a place of its own, in the directory around it."""
    writes = Writes(
        directories=(
            WrittenDirectory(path="/app/state", paths=2, new=True),
            WrittenDirectory(path="/var/log"),
        )
    )

    found = places_of([writes], ["/app/state/db", "/app/other/x", "/app/state", "relative/x"])

    assert found == (
        Place(path="/app/other", refused=("/app/other/x",)),
        Place(path="/app/state", new=True, changed=2, refused=("/app/state/db", "/app/state")),
        Place(path="/var/log", changed=1),
    )
    assert found[1].named_by == (
        "the engine lists 2 paths changed there",
        "the job said that /app/state/db is read-only",
        "the job said that /app/state is read-only",
    )
    assert found[2].named_by == ("the engine lists a path changed there",)
    assert [(one.path, one.new) for one in wider(found)] == [
        ("/app/other", False), ("/app", False), ("/var/log", False),
    ]  # fmt: skip


def test_a_place_in_another_is_covered_by_it() -> None:
    """Whatever stands between them in the order of letters."""
    assert chosen("/app/state", "/app-x", "/app")[0] == ["/app", "/app-x"]


def test_more_than_a_few_places_are_none() -> None:
    """Such a job writes everywhere; what cannot be covered is told apart."""
    tried, left_out = chosen("/", "/a", "/b", "/c", "/d", "/e")

    assert tried == []
    assert left_out["/a"] == "the job writes in more than 4 directories"
    assert "system" in left_out["/"]
    assert chosen("/a", "/b", "/c", "/d")[0] == ["/a", "/b", "/c", "/d"]


def test_many_places_are_told_in_a_few_words() -> None:
    """Those with one reason together."""
    left_out = tuple(LeftOutPlace(path=f"/d{n}", why="too many") for n in range(7))
    tried = TmpfsTried(left_out=(LeftOutPlace(path="/", why="never"), *left_out))

    assert "(/: never; /d0, /d1, /d2, /d3 and 3 more: too many)" in note_on("rootfs:rw", tried)


def test_the_size_has_room_for_what_was_written() -> None:
    """Four times as much, a power of two, 16 MiB at least, and never more than half of the memory limit."""
    assert tmpfs_size(0, None) == 16 * MIB
    assert tmpfs_size(5 * MIB, None) == 32 * MIB
    assert tmpfs_size(None, None) == 64 * MIB
    assert tmpfs_size(GIB, 4 * GIB) == 2 * GIB
    assert tmpfs_size(3 * GIB, 4 * GIB) is None
    tried, left_out = chosen("/a", written=PLAN.memory_bytes)
    assert tried == []
    assert "too much to be held in memory" in left_out["/a"]


TRIED = TmpfsTried(
    outcome="failed",
    places=(TriedPlace(path="/app", size_bytes=16 * MIB, named_by=("it said so",)),),
    left_out=(LeftOutPlace(path="/", why="never"),),
    evidence="no such file",
)


def test_a_kept_tmpfs_says_what_it_costs() -> None:
    """Memory, what it hides, that nothing is kept, and what named it."""
    note = note_on("tmpfs:/app", TRIED)
    new = TRIED.model_copy(update={"places": (TRIED.places[0].model_copy(update={"new": True}),)})

    assert note.startswith("16 MiB of memory at most, noexec; it hides what the image has there; ")
    assert "is lost when the container ends: a mount or a volume there keeps it" in note
    assert note.endswith("; it said so")
    assert "hides" not in note_on("tmpfs:/app", new)


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        (TRIED, "a tmpfs at /app was tried in its place and does not do: no such file (not tried: /: never); a volume"),
        (TRIED.model_copy(update={"outcome": "", "places": ()}), "no tmpfs was tried in its place (/: never); a volume"),
        (TRIED.model_copy(update={"outcome": "stopped"}), "the budget ended before a tmpfs had been tried"),
        (TmpfsTried(), "nothing tells where the job writes, so that no tmpfs was tried"),
    ],
)  # fmt: skip
def test_a_kept_writable_root_says_why_no_tmpfs_does(tried: TmpfsTried, said: str) -> None:
    """And what is narrower all the same."""
    assert note_on("rootfs:rw", tried).startswith(said)
    assert note_on("cap:SYS_NICE", tried) == ""


def test_what_is_told_of_places_stays_on_its_line() -> None:
    """A name is whoever's made the directory, and may hold a line end, or what a terminal obeys."""
    place = Place(path="/app", refused=("/app/a\nb\x1b[2J",))
    left_out = (LeftOutPlace(path="/new\nline", why="of its name"),)

    assert place.named_by == ("the job said that /app/a b is read-only",)
    assert "/new line: of its name" in note_on("rootfs:rw", TmpfsTried(left_out=left_out))


def test_what_lies_in_a_place_is_counted_with_it() -> None:
    """One number for all of it."""
    tried, _ = choose(
        [Place(path="/app", changed=1), Place(path="/app/new", new=True, changed=2, refused=("/app/new/x",))],
        PLAN, program="", written_bytes=None,
    )  # fmt: skip

    assert [place.named_by for place in tried] == [
        ("the engine lists 3 paths changed there", "the job said that /app/new/x is read-only")
    ]
