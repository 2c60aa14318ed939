"""A saved host comes back as it was."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmrun.core.host import HostFacts
from rocmrun.core.host_json import host_from_json, host_to_json
from rocmrun.errors import UsageError
from rocmrun.system.sysfs import read_host
from tests.hosts import MI210_X8, FakeNode, build_host, make_node, mi300x_partitions


def test_saving_and_reading_is_identity(tmp_path: Path) -> None:
    """Links, nodes, firmware, devices: everything."""
    root = build_host(tmp_path, MI210_X8, cpu_nodes=2, holders={9: [1]})
    make_node(root / "dev/infiniband/uverbs0", FakeNode())
    host = read_host(root, device_globs=["/dev/infiniband/*"])

    assert host_from_json(json.dumps(host_to_json(host))) == host


def test_an_empty_host_comes_back_too() -> None:
    """Unknown stays unknown."""
    assert host_from_json(json.dumps(host_to_json(HostFacts()))) == HostFacts()


def test_a_gpu_has_the_published_keys(tmp_path: Path) -> None:
    """What scripts lean on; null where it is not known."""
    root = build_host(tmp_path, mi300x_partitions(1, 2), links=False, pci=False)

    gpu = host_to_json(read_host(root))["gpus"][1]

    expected = {
        "node": 2,
        "gfx": "gfx942",
        "device_id": "0x74a1",
        "pci_bdf": "0000:05:00.0",
        "partition": 1,
        "render_minor": 129,
        "unique_id": "000000000000a105",
        "hive_id": "00000000000000b1",
        "vram_bytes": 24 * 1024**3,
        "compute_units": 38,
        "num_xcc": 1,
        "xgmi_peers": (),
        "compute_partition": None,
    }
    assert {key: gpu[key] for key in expected} == expected
    assert "pci_address" not in gpu


def test_keys_of_a_newer_rocmrun_are_ignored() -> None:
    """Within one version of the schema things are only added."""
    saved = host_to_json(HostFacts(hostname="a"))

    assert host_from_json(json.dumps({**saved, "v": 1, "ok": True, "later": []})).hostname == "a"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "no 'gpus'"),
        ('{"v": 1}', "no 'gpus'"),
        ('{"gpus": [], "schema_version": 99}', "version 99"),
        ('{"gpus": 1}', "wrong values"),
        ('{"gpus": ["x"]}', "wrong values"),
        ('{"gpus": [{"index": 0}]}', "wrong values"),
        ('{"gpus": [], "cpu_count": "many"}', "wrong values"),
    ],
)
def test_what_is_no_saved_host_is_refused(text: str, message: str) -> None:
    """With the place of the mistake."""
    with pytest.raises(UsageError, match=message):
        host_from_json(text)


def test_a_wrong_value_is_named() -> None:
    """By its path in the file."""
    with pytest.raises(UsageError) as caught:
        host_from_json('{"gpus": [{"index": 0, "node": "one"}]}')

    assert caught.value.details[0].startswith("gpus.0.node: ")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["gpus", "index", "node", "kfd"]), inner, max_size=3)
        ),
        max_leaves=10,
    )
)
def test_any_json_is_a_host_or_a_usage_error(values: Any) -> None:
    """Nobody else's exception escapes."""
    try:
        host = host_from_json(json.dumps(values))
    except UsageError:
        return
    assert isinstance(host, HostFacts)
