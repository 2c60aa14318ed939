"""The lock's text is canonical, its reader forgiving of nothing, its errors name the way out."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.lock import Lock, LockedFacts, PinnedImage, parse_lock
from rocmrun.core.reference import parse_reference
from rocmrun.errors import LockMissing, LockStale, LockUnreadable
from tests.strategies import examples

A, B, C = (f"sha256:{letter * 64}" for letter in "abc")
INDEX = "application/vnd.oci.image.index.v1+json"


def pin(ref: str = "docker.io/rocm/pytorch:x", **fields: Any) -> PinnedImage:
    return PinnedImage(**{"ref": ref, "digest": A, **fields})


FULL = Lock.of(
    [
        pin(
            "docker.io/rocm/pytorch:rocm7.1",
            media_type=INDEX,
            platforms=("linux/amd64", "linux/arm64/v8"),
            image_id=B,
            facts=LockedFacts(
                user="1000:1000",
                rocm="7.1.0",
                gfx=("gfx90a", "gfx942"),
                sources={"rocm": "env:ROCM_VERSION", "gfx": "env:PYTORCH_ROCM_ARCH"},
            ),
        ),
        PinnedImage(ref="docker.io/library/mine:dev", image_id=C, source="local"),
    ]
)

FULL_TEXT = f"""\
# Written by `rocmrun lock`. Commit this file. Change profiles, then run `rocmrun lock`;
# new digests for the same tags come only with `rocmrun lock --upgrade`.
version = 1

[[image]]
ref = "docker.io/library/mine:dev"
platform = "linux/amd64"
image-id = "{C}"
source = "local"

[[image]]
ref = "docker.io/rocm/pytorch:rocm7.1"
digest = "{A}"
media-type = "application/vnd.oci.image.index.v1+json"
platform = "linux/amd64"
platforms = [
    "linux/amd64",
    "linux/arm64/v8",
]
image-id = "{B}"

[image.facts]
user = "1000:1000"
rocm = "7.1.0"
gfx = [
    "gfx90a",
    "gfx942",
]
sources = {{ gfx = "env:PYTORCH_ROCM_ARCH", rocm = "env:ROCM_VERSION" }}
"""


def test_text_is_sorted_one_field_a_line() -> None:
    """What is committed is small to review and merges line by line."""
    assert FULL.text() == FULL_TEXT


def test_text_reads_back() -> None:
    """Writing and reading lose nothing."""
    assert parse_lock(FULL_TEXT, "rocmrun.lock") == FULL


def test_order_in_the_file_does_not_matter() -> None:
    """A file that was sorted otherwise is read, and written canonically."""
    other = Lock(images=tuple(reversed(FULL.images)))

    assert other.text() == FULL_TEXT


def test_an_empty_lock() -> None:
    """A lock without images is one."""
    assert Lock() == parse_lock(Lock().text(), "x")


def test_a_pin_without_media_type_is_one() -> None:
    """A published digest does not always say what kind of manifest it is of: nothing is invented."""
    text = f'version = 1\n[[image]]\nref = "docker.io/a/b:t"\ndigest = "{A}"\n'

    (image,) = parse_lock(text, "x").images

    assert (image.media_type, image.platform, image.image_id) == (None, "linux/amd64", None)
    assert "media-type" not in Lock.of([image]).text()


def stanza(**fields: str) -> str:
    values = {"ref": "docker.io/a/b:t", "digest": A, **fields}
    return "version = 1\n[[image]]\n" + "".join(f'{k} = "{v}"\n' for k, v in values.items() if v)


UNREADABLE = [
    ("version = ", "is not TOML"),
    ("version = " + "9" * 5000, "has an integer of more than 64 bits"),
    ("version = 0x" + "f" * 5000, "has an integer of more than 64 bits"),
    ("version" + ".a" * 5000 + " = 1", "is nested too deeply"),
    ("version = " + "[" * 20_000, "is nested too deeply"),
    ("", "it has no version"),
    ('version = "1"', "version is '1'"),
    ("version = true", "version is True"),
    ("version = 0", "version is 0"),
    ("version = 1.0", "version is 1.0"),
    ("version = 2\nnew = 1", "version 2; this rocmrun reads up to 1"),
    ("version = 1\nimages = []", "images: unknown key"),
    (stanza(media_type="x"), "image[0].media_type: unknown key"),
    (stanza(extra="x"), "image[0].extra: unknown key"),
    (stanza(digest=""), "image[0]: digest is missing"),
    (stanza(digest="sha256:12"), "image[0].digest: String should match"),
    (stanza(digest=A.upper()), "image[0].digest: String should match"),
    (stanza(ref=""), "image[0].ref: Field required"),
    (stanza(ref="a/b:t"), "image[0]: ref must be written as docker.io/a/b:t"),
    (stanza(ref="docker.io/A/b:t"), "lower case"),
    (stanza(ref=f"docker.io/a/b:t@{B}"), "digest differs from the one in ref"),
    (stanza(platform="amd64"), "image[0].platform: String should match"),
    (stanza(source="local"), "a local image has an image-id and no digest"),
    (stanza(source="elsewhere"), "image[0].source: Input should be"),
    (stanza() + '[image.facts]\nrocm = "7\\u001b[31m"\n', "image[0].facts.rocm: String should"),
    (stanza() + stanza().removeprefix("version = 1\n"), "docker.io/a/b:t is locked twice"),
    ("version = 1\nimage = 5", "image: Input should be a valid tuple"),
    ("version = 1\n[[image]]\nref = 2026-01-01\n", "image[0].ref: Input should be a valid string"),
]


@pytest.mark.parametrize(("text", "says"), UNREADABLE)
def test_what_is_no_lock_is_refused_with_the_place(text: str, says: str) -> None:
    """Every refusal names the file, and the key where it is one key's fault."""
    with pytest.raises(LockUnreadable) as caught:
        parse_lock(text, "dir/rocmrun.lock")

    assert "dir/rocmrun.lock" in caught.value.message
    assert says in "\n".join((caught.value.message, *caught.value.details))
    assert caught.value.hint


def test_several_mistakes_are_told_at_once() -> None:
    """Nobody fixes a file one error at a time."""
    with pytest.raises(LockUnreadable) as caught:
        parse_lock(stanza(digest="x", platform="y", z="1"), "f")

    assert len(caught.value.details) == 3


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", "=======", ">>>>>>> theirs", "||||||| base"])
def test_merge_markers_are_recognised(marker: str) -> None:
    """An unresolved merge is named as such, with the line, not as broken TOML."""
    with pytest.raises(LockUnreadable, match=r"merge-conflict markers \(line 2\)") as caught:
        parse_lock(f"version = 1\n{marker}\n", "rocmrun.lock")

    assert "git checkout --ours rocmrun.lock" in (caught.value.hint or "")


def test_require_finds_the_pin_for_the_platform() -> None:
    """Launch gets exactly what is locked."""
    lock = Lock.of([pin(platform="linux/arm64")])

    assert lock.images[0] == lock.require("docker.io/rocm/pytorch:x", "linux/arm64")


def test_require_says_how_to_lock() -> None:
    """Missing and stale are told apart, and both name the command."""
    lock = Lock.of([pin()])

    with pytest.raises(LockMissing, match="is not locked") as missing:
        lock.require("docker.io/a/b:c", "linux/amd64", profile="serve")
    with pytest.raises(LockStale, match="locked for linux/amd64") as stale:
        lock.require("docker.io/rocm/pytorch:x", "linux/arm64", profile="serve")
    assert [missing.value.hint, stale.value.hint] == ["rocmrun lock serve"] * 2


def test_what_is_pulled_has_no_tag() -> None:
    """A tag beside a digest is ignored by engines without a word; so it is not there."""
    assert f"docker.io/rocm/pytorch@{A}" == pin().pull_reference
    local = PinnedImage(ref="docker.io/library/x:y", image_id=B, source="local")
    assert local.pull_reference == B


def test_a_pin_is_completed_by_one_of_the_same_content_only() -> None:
    """What was known stays while the digest does, and goes with it."""
    old = pin(media_type=INDEX, image_id=B, facts=LockedFacts(rocm="7"), platforms=("linux/amd64",))

    assert old == pin().completed_by(old)
    assert pin(digest=C) == pin(digest=C).completed_by(old)
    assert pin(platform="linux/arm64") == pin(platform="linux/arm64").completed_by(old)
    newer = pin(image_id=C)
    assert newer.completed_by(old).image_id == C


_digests = st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True)
_words = st.from_regex(r"[A-Za-z0-9._+:/-]{1,20}", fullmatch=True)
_platforms = st.sampled_from(["linux/amd64", "linux/arm64/v8", "linux/s390x"])
_facts = st.builds(
    LockedFacts,
    user=st.none() | _words,
    rocm=st.none() | _words,
    gfx=st.lists(_words, max_size=3).map(tuple),
    sources=st.dictionaries(st.sampled_from(["user", "rocm", "gfx"]), _words),
)
_pins = st.builds(
    PinnedImage,
    ref=st.from_regex(r"[a-z]{1,3}\.io/[a-z]{1,3}:[a-z]{1,2}", fullmatch=True).map(
        lambda text: parse_reference(text).canonical
    ),
    digest=_digests,
    media_type=st.none() | _words,
    platform=_platforms,
    platforms=st.none() | st.lists(_platforms, max_size=3).map(tuple),
    image_id=st.none() | _digests,
    facts=st.none() | _facts,
)


@examples(100)
@given(st.lists(_pins, max_size=4, unique_by=lambda image: image.ref))
def test_any_lock_reads_back_and_writes_the_same_bytes(images: list[PinnedImage]) -> None:
    """Round trip, and the same bytes whatever order the pins came in."""
    text = Lock.of(images).text()

    assert Lock.of(images) == parse_lock(text, "x")
    assert text == parse_lock(text, "x").text() == Lock(images=tuple(reversed(images))).text()
    assert text.endswith("\n")
    assert tomllib.loads(text)["version"] == 1
