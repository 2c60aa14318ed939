"""Sizes and ports: what their text means."""

import re

import pytest

from rocmrun.core.profile.values import MemoryLimit, Port, Size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1),
        (4096, 4096),
        ("512b", 512),
        ("1k", 1024),
        ("512m", 512 * 1024**2),
        ("512MB", 512 * 1024**2),
        ("9GiB", 9 * 1024**3),
        ("1.5 gib", 3 * 1024**3 // 2),
        ("2T", 2 * 1024**4),
    ],
)
def test_sizes_count_in_powers_of_1024(text: object, expected: int) -> None:
    """As the Docker CLI reads them: 16g, 16gb and 16GiB are one amount."""
    assert expected == Size.parse(text).bytes


@pytest.mark.parametrize(
    "text", ["", "0", "0.1", "-1", "9 GB/s", "1ib", "GiB", "1,5g", True, 1.5, None]
)
def test_other_sizes_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"size|byte"):
        Size.parse(text)


def test_a_size_keeps_its_text() -> None:
    assert (str(Size.parse("9GiB")), str(Size.parse(4096))) == ("9GiB", "4096")


def test_memory_is_a_size_or_a_share() -> None:
    assert MemoryLimit.parse("90%").of(1000) == 900
    assert MemoryLimit.parse("12.5%").of(1000) == 125
    assert MemoryLimit.parse("1k").of(1000) == 1024


@pytest.mark.parametrize("text", ["0%", "100.1%", "-5%", "%", "all"])
def test_other_shares_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"share|size"):
        MemoryLimit.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8000:80", ("127.0.0.1", 8000, 80, "tcp")),
        ("0.0.0.0:1:65535/udp", ("0.0.0.0", 1, 65535, "udp")),
        ("[::1]:8000:80/tcp", ("::1", 8000, 80, "tcp")),
    ],
)
def test_a_port_is_taken_apart(text: str, expected: tuple[str, int, int, str]) -> None:
    port = Port.parse(text)

    assert expected == (port.address, port.host_port, port.container_port, port.protocol)
    assert text == str(port)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("8000:8000", 'did you mean "127.0.0.1:8000:8000"?'),
        ("8000", "is not ADDRESS:HOST:CONTAINER"),
        (":8000:8000", "needs an IP address"),
        ("localhost:8000:8000", "needs an IP address"),
        ("256.0.0.1:1:1", "needs an IP address"),
        ("[127.0.0.1]:1:1", "IPv6"),
        ("::1:80:80", "is not ADDRESS"),
        ("127.0.0.1:0:80", "outside 1 to 65535"),
        ("127.0.0.1:80:65536", "outside 1 to 65535"),
        ("127.0.0.1:80:80/sctp", "is not ADDRESS"),
        (8000, "got an integer"),
    ],
)
def test_a_port_without_its_address_is_refused(text: object, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        Port.parse(text)
