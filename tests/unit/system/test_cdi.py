"""Specification files are found where engines look."""

from pathlib import Path

from rocmrun.system.cdi import read_cdi_files
from rocmrun.system.sysfs import read_host
from tests.hosts import MI210_X8, build_host


def test_json_files_are_read_in_order_and_nothing_else(tmp_path: Path) -> None:
    for name in ("etc/cdi/b.json", "etc/cdi/a.json", "var/run/cdi/c.json", "etc/cdi/d.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "etc/cdi/broken.json").write_bytes(b"\xff\xfe")
    (tmp_path / "etc/cdi/folder.json").mkdir()

    found = read_cdi_files(tmp_path)

    assert [text for _, text in found] == ["etc/cdi/a.json", "etc/cdi/b.json", "var/run/cdi/c.json"]
    assert [text for _, text in read_cdi_files(tmp_path, ["/var/run/cdi"])] == [
        "var/run/cdi/c.json"
    ]
    assert read_cdi_files(tmp_path, ["/none"]) == ()


def test_the_card_beside_a_render_node_is_read(tmp_path: Path) -> None:
    """What the kernel lists under the device; without it, it is not known."""
    root = build_host(tmp_path, MI210_X8[:2])
    assert [gpu.card for gpu in read_host(root).gpus] == [None, None]

    (root / f"sys/devices/pci0000:63/{MI210_X8[0].address}/drm/card7").mkdir()

    assert [gpu.card for gpu in read_host(root).gpus] == [7, None]
