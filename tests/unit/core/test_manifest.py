"""Which of an index's images a platform means."""

import json

import pytest

from rocmrun.core.manifest import (
    OCI_INDEX,
    OCI_MANIFEST,
    choose_platform,
    digest_of,
    parse_manifest,
    platform_name,
)
from rocmrun.errors import ManifestUnsupported, PlatformMismatch


@pytest.mark.parametrize(
    ("wanted", "offered", "chosen"),
    [
        ("linux/amd64", ["linux/amd64", "linux/arm64"], "linux/amd64"),
        ("linux/arm64", ["linux/arm64/v8"], "linux/arm64/v8"),
        ("linux/arm64/v8", ["linux/arm64"], "linux/arm64"),
        ("linux/amd64", ["linux/amd64/v3", "linux/amd64"], "linux/amd64"),
        ("linux/amd64", ["linux/amd64/v3"], "linux/amd64/v3"),
        ("linux/arm", ["linux/arm/v6", "linux/arm/v7"], "linux/arm/v7"),
        ("linux/x86_64", ["linux/amd64"], "linux/amd64"),
        ("linux/aarch64", ["linux/arm64/v8"], "linux/arm64/v8"),
    ],
)
def test_chooses(wanted: str, offered: list[str], chosen: str) -> None:
    """The plain architecture and its default variant are one; another variant only where it is the only one."""
    assert chosen == choose_platform(wanted, offered, "x")


@pytest.mark.parametrize(
    ("wanted", "offered", "says"),
    [
        ("linux/arm64", ["linux/amd64"], "not made for linux/arm64; it has linux/amd64"),
        ("linux/arm64", [], "it has nothing to run"),
        ("linux/amd64/v3", ["linux/amd64"], "not made for linux/amd64/v3"),
        ("linux/arm64", ["linux/arm64/v9", "linux/arm64/v10"], "several variants"),
        ("windows/amd64", ["linux/amd64"], "not made for windows/amd64"),
    ],
)
def test_refuses(wanted: str, offered: list[str], says: str) -> None:
    """None, or a choice that only people can make."""
    with pytest.raises(PlatformMismatch, match=says):
        choose_platform(wanted, offered, "x")


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"os": "linux", "architecture": "amd64"}, "linux/amd64"),
        ({"os": "linux", "architecture": "arm64", "variant": "v8"}, "linux/arm64/v8"),
        ({"os": "unknown", "architecture": "unknown"}, None),
        ({"os": "linux", "architecture": None}, None),
        ({}, None),
    ],
)
def test_platform_names(parts: dict[str, str | None], name: str | None) -> None:
    """Unknown platforms have no name."""
    assert name == platform_name(parts)


def index(*digests: str, **more: object) -> bytes:
    platform = {"os": "linux", "architecture": "amd64"}
    children: list[object] = [{"digest": digest, "platform": platform} for digest in digests]
    return json.dumps(
        {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children} | more
    ).encode()


def test_two_different_images_for_one_platform_are_refused() -> None:
    """Which of them a pull brings depends on the engine; the same one twice is fine."""
    a, b = digest_of(b"a"), digest_of(b"b")

    assert a == parse_manifest(index(a, a), "", "x").child_for("linux/amd64", "x").digest
    with pytest.raises(PlatformMismatch, match="2 different images"):
        parse_manifest(index(a, b), "", "x").child_for("linux/amd64", "x")


@pytest.mark.parametrize(
    "manifests",
    [None, 5, ["x"], [{"platform": 5}], [{"platform": {"os": "a", "architecture": "b"}}]],
)
def test_a_malformed_index_offers_nothing(manifests: object) -> None:
    """Garbage from a registry is no crash."""
    assert parse_manifest(index(manifests=manifests), "", "x").platforms == ()


def test_the_shape_decides_only_where_nobody_says() -> None:
    """An index without a media type is one by its list; a body that is neither is no image."""
    body = json.dumps({"schemaVersion": 2, "manifests": []}).encode()

    assert parse_manifest(body, "application/json", "x").media_type == OCI_INDEX
    with pytest.raises(ManifestUnsupported, match="nothing"):
        parse_manifest(b'{"schemaVersion": 2}', "", "x")
    with pytest.raises(ManifestUnsupported, match="no image"):
        parse_manifest(b'{"config": 5}', OCI_MANIFEST, "x")
