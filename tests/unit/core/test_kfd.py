"""KFD's text becomes values, and what is no such text becomes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.kfd import (
    KfdNode,
    compute_units,
    gfx_name,
    hex_id,
    is_apu,
    parse_link,
    parse_properties,
    partition_bits,
    pci_location,
    vram_bytes,
)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (90000, "gfx900"),
        (90010, "gfx90a"),
        (90012, "gfx90c"),
        (90402, "gfx942"),
        (90500, "gfx950"),
        (100306, "gfx1036"),
        (110501, "gfx1151"),
        (120001, "gfx1201"),
        (120500, "gfx1250"),
        (0, None),
        (None, None),
        (1_000_000, None),  # major 100
        (91600, None),  # minor 16 is no hexadecimal digit
        (90016, None),
        (2**64 - 1, None),
    ],
)
def test_a_target_version_becomes_its_gfx_name(version: int | None, name: str | None) -> None:
    """Major in decimal, minor and step in hexadecimal; anything else names no target."""
    assert gfx_name(version) == name


def test_properties_are_read_line_by_line() -> None:
    """A line that is joined, cut, negative or too large is skipped and kept for the report."""
    text = (
        "simd_count 256\n"
        "size_in_bytes 536870912flags 0\n"
        "unique_id 99999999999999999999\n"
        "latency -1\n"
        "capability2 7\n"
        "max_engine_clk"
    )

    properties = parse_properties(text)

    assert properties.values == {"simd_count": 256, "capability2": 7}
    assert properties.skipped == (
        "size_in_bytes 536870912flags 0",
        "unique_id 99999999999999999999",
        "latency -1",
        "max_engine_clk",
    )


def test_whole_properties_skip_nothing() -> None:
    """With or without the last newline."""
    assert parse_properties("a 1\nb 2\n").skipped == ()
    assert parse_properties("a 1\nb 2").skipped == ()
    assert parse_properties("").skipped == ()


def test_skipped_lines_are_bounded_and_printable() -> None:
    """Garbage neither floods a report nor reaches a terminal."""
    skipped = parse_properties("\x1b[31mred\x07" * 50 + "\n" + "x\n" * 100).skipped

    assert len(skipped) == 8
    assert all(len(line) <= 80 and line.isprintable() for line in skipped)


@given(st.text())
def test_any_text_gives_numbers_or_nothing(text: str) -> None:
    """No text is an error, and no value leaves 64 bits."""
    properties = parse_properties(text)
    parse_link(text, peer_to_peer=False)

    assert all(0 <= value < 2**64 for value in properties.values.values())


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.integers(0, 2**64 - 1)))
def test_what_the_kernel_prints_comes_back(values: dict[str, int]) -> None:
    """Writing and parsing is identity."""
    text = "".join(f"{key} {value}\n" for key, value in values.items())

    assert parse_properties(text).values == values


@pytest.mark.parametrize(
    ("values", "address"),
    [
        ({"location_id": 25344, "domain": 0}, "0000:63:00.0"),
        ({"location_id": 25344}, "0000:63:00.0"),
        ({"location_id": 0xF9, "domain": 0x11}, "0011:00:1f.1"),
        ({"location_id": 0, "domain": 2}, "0002:00:00.0"),
        ({"location_id": 0x0500, "domain": 0x10000}, "10000:05:00.0"),
        ({"location_id": 0x30000500, "domain": 0}, "0000:05:00.0"),
        ({"location_id": 0, "domain": 0}, None),
        ({"domain": 0}, None),
        ({"location_id": 0x10500}, None),
        ({"location_id": 2**40}, None),
        ({"location_id": 0x500, "domain": 2**40}, None),
    ],
)
def test_a_location_is_a_pci_address(values: dict[str, int], address: str | None) -> None:
    """Four digits of domain, lower case; missing or impossible numbers are no address."""
    location = pci_location(values)

    assert (location.address if location else None) == address


def test_some_kernels_put_the_partition_in_the_top_bits() -> None:
    """location_id[31:28], as the reverted change to kfd_topology.c did."""
    assert partition_bits({"location_id": 0x30000500}) == 3
    assert partition_bits({"location_id": 0x0500}) == 0


@pytest.mark.parametrize(
    ("text", "kind", "weight"),
    [
        ("type 2\nversion_major 0\nnode_from 2\nnode_to 7\nweight 20\nflags 1\n", "pcie", 20),
        ("type 11\nnode_from 2\nnode_to 7\nweight 15\n", "xgmi", 15),
        ("type 5\nnode_to 7\n", "5", None),
        ("weight 41\nnode_to 7\ntype 11\n", "xgmi", 41),
        ("type 11\nnode_to 7\nweight", "xgmi", None),
    ],
)
def test_a_link_says_where_it_goes_and_over_what(text: str, kind: str, weight: int | None) -> None:
    """The type decides; weights of xGMI and PCIe overlap. The order of lines does not matter."""
    link = parse_link(text, peer_to_peer=True)

    assert link is not None
    assert (7, kind, weight, True) == (link.to_node, link.kind, link.weight, link.peer_to_peer)


def test_a_link_without_an_end_is_none() -> None:
    """A cut file gives no link."""
    assert parse_link("type 11\nnode_from 2\n", peer_to_peer=False) is None


def test_vram_is_the_sum_of_its_banks() -> None:
    """Heap types 1 and 2 count; system memory, unreadable banks and no directory do not make 0."""
    public = {"heap_type": 1, "size_in_bytes": 100}
    private = {"heap_type": 2, "size_in_bytes": 50}

    assert vram_bytes((public, private, {"heap_type": 0, "size_in_bytes": 999})) == 150
    assert vram_bytes(({"size_in_bytes": 70},)) == 70
    assert vram_bytes((public, {"heap_type": 1})) is None
    assert vram_bytes(()) is None
    assert vram_bytes(None) is None


def test_compute_units_need_both_numbers() -> None:
    """Four SIMDs a unit on CDNA, two on RDNA, unknown without the line."""
    assert compute_units({"simd_count": 1216, "simd_per_cu": 4}) == 304
    assert compute_units({"simd_count": 192, "simd_per_cu": 2}) == 96
    assert compute_units({"simd_count": 608}) is None
    assert compute_units({"simd_count": 608, "simd_per_cu": 0}) is None


def test_ids_are_sixteen_digits_and_zero_is_none() -> None:
    """Leading zeros stay: tools that drop them print other ids."""
    assert hex_id(0x0DAC900428E69CE8) == "0dac900428e69ce8"
    assert hex_id(0) is None
    assert hex_id(None) is None


@pytest.mark.parametrize(
    ("gfx", "values", "apu"),
    [
        ("gfx1151", {}, True),
        ("gfx902", {"cpu_cores_count": 8}, True),
        (None, {"cpu_cores_count": 4}, True),  # Carrizo: one node for both
        ("gfx942", {"device_id": 0x74A0}, True),
        ("gfx942", {"device_id": 0x74A1}, False),
        ("gfx942", {}, None),
        ("gfx1100", {}, False),
        ("gfx1399", {}, None),
        (None, {}, None),
    ],
)
def test_apus_are_known_by_target_or_cores(
    gfx: str | None, values: dict[str, int], *, apu: bool | None
) -> None:
    """A target that nobody knows yet is neither."""
    assert is_apu(gfx, values) is apu


@pytest.mark.parametrize(
    ("node", "is_gpu"),
    [
        (KfdNode(number=1, values={"simd_count": 256}), True),
        (KfdNode(number=1, values={"simd_count": 0, "drm_render_minor": 128}, gpu_id=5), False),
        (KfdNode(number=1, hidden=True), True),
        (KfdNode(number=1, gpu_id=22124), True),
        (KfdNode(number=1, gpu_id=0), False),
        (KfdNode(number=1), False),
    ],
)
def test_simd_count_makes_a_gpu(node: KfdNode, *, is_gpu: bool) -> None:
    """Where it cannot be read, KFD's own id does: it is 0 for processors. EPERM is asked for GPUs only."""
    assert node.is_gpu is is_gpu
