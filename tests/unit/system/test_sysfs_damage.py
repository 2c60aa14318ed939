"""Trees that cannot be read: facts or nothing, never a crash."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmrun.core.host import DeviceNode
from rocmrun.core.host_json import host_to_json
from rocmrun.system.sysfs import read_file, read_host
from rocmrun.system.sysfs.gpus import render_node
from rocmrun.system.sysfs.tree import Tree
from tests.hosts import TEN_GPUS, build_host, mi300x_partitions, refusing


def test_failed_reads_are_bounded(tmp_path: Path) -> None:
    """A tree that cannot be read at all gives a short list of problems."""
    root = build_host(tmp_path, TEN_GPUS)

    host = read_host(root, read=refusing("/", number=errno.EIO))

    assert len(host.problems) == 41
    assert host.problems[-1].endswith("more reads that failed")


def test_a_node_that_is_another_device_is_no_render_node() -> None:
    """On this machine's own root, 226 and the minor decide; /dev/dri/renderD127 is no DRM node here."""
    tree = LiveTree(DeviceNode(path="x", host_path="x", mode=0o666, uid=0, gid=0, major=1, minor=3))

    assert render_node(tree, 127) is None
    assert tree.problems == ("/dev/dri/renderD127 is 1:3, not the DRM node 226:127",)


class LiveTree(Tree):
    """This machine's own root, with *node* wherever one is looked for."""

    def __init__(self, node: DeviceNode) -> None:
        super().__init__(Path("/"))
        self._node = node

    def device(self, path: str) -> DeviceNode:
        return replace(self._node, path=path)


FILES = st.one_of(
    st.none(),  # missing
    st.binary(max_size=200),
    st.sampled_from([b"", b"\n", b"-1\n", b"0x", b"9" * 5000, b"\x00" * 10, "٣\n".encode()]),
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "simd_count",
                    "location_id",
                    "domain",
                    "drm_render_minor",
                    "gfx_target_version",
                    "unique_id",
                    "hive_id",
                    "device_id",
                    "size_in_bytes",
                    "heap_type",
                    "node_to",
                    "type",
                ]
            ),
            st.one_of(st.integers(0, 300), st.integers(0, 2**70), st.just(-1)),
        ),
        max_size=12,
    ).map(lambda lines: "".join(f"{key} {value}\n" for key, value in lines).encode()),
    st.sampled_from([errno.EPERM, errno.EACCES, errno.EIO, errno.EISDIR]),
)


@pytest.fixture(scope="module")
def whole_host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of a partitioned host that only the reader damages."""
    root = tmp_path_factory.mktemp("host")
    return build_host(root, mi300x_partitions(2, 2), cpu_nodes=1, holders={5: [0]})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_damage_is_a_crash(whole_host: Path, data: st.DataObject) -> None:
    """Missing files, garbage, binary, huge numbers, refused reads: facts or None, and JSON."""
    damage: dict[str, bytes | int | None] = {}

    def read(path: str) -> bytes:
        if path not in damage:
            damage[path] = data.draw(FILES) if data.draw(st.booleans()) else read_file(path)
        content = damage[path]
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if isinstance(content, int):
            raise OSError(content, os.strerror(content), path)
        return content

    host = read_host(whole_host, read=read)

    assert host_to_json(host)["gpus"] is not None
    for gpu in host.gpus:
        assert gpu.gfx is None or gpu.gfx.startswith("gfx")
        assert gpu.render_minor != 0
        assert gpu.permitted or (gpu.pci_address, gpu.gfx, gpu.vram_bytes) == (None, None, None)
