"""Which Debian is installed, and from where."""

import pytest

from scripts import rootfs

TARGETS = """\
http://mirror.example/debian-security/ bookworm-security main
mirror+file:/etc/apt/mirrors/debian.list bookworm main
http://mirror.example/debian/ bookworm contrib
http://mirror.example/debian/ bookworm main
http://other.example/debian/ bookworm main
http://mirror.example/debian/ trixie main
"""


@pytest.mark.parametrize(
    ("os_release", "expected"),
    [
        ({"ID": "debian", "VERSION_CODENAME": "trixie"}, "trixie"),
        ({"ID": "debian"}, "bookworm"),
        ({"ID": "ubuntu", "VERSION_CODENAME": "noble"}, "bookworm"),
        ({}, "bookworm"),
    ],
)
def test_the_suite_is_the_host_s_where_that_is_debian(
    os_release: dict[str, str], expected: str
) -> None:
    """An image for a Debian host is of its own release; elsewhere of one known to have the tools."""
    assert rootfs.suite(os_release) == expected


@pytest.mark.parametrize(
    ("suite", "expected"),
    [
        ("bookworm", "http://mirror.example/debian/"),
        ("trixie", "http://mirror.example/debian/"),
        ("sid", None),
    ],
)
def test_the_mirror_is_the_one_that_apt_uses(suite: str, expected: str | None) -> None:
    """The first of apt's own sources that debootstrap can read too; else debootstrap's default."""
    assert rootfs.mirror_in(TARGETS, suite) == expected
