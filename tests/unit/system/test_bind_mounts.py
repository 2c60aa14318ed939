"""Other ways to one place, made for real in a mount namespace of their own."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rocmrun.system.sysfs import read_host, read_path

MAKE_AND_READ = """
import dataclasses, json, subprocess, sys
from rocmrun.system.sysfs import read_host, read_path
top = sys.argv[1]
for what, where in (("/etc", "etc"), ("/proc/sys", "proc"), ("/dev", "below/dev")):
    subprocess.run(["mount", "--bind", what, f"{top}/{where}"], check=True)
names = ("etc", "etc/ssl", "proc", "below", "plain")
print(json.dumps({name: dataclasses.asdict(read_path(f"{top}/{name}")) for name in names}))
"""


def facts(top: Path) -> dict[str, dict[str, Any]]:
    for name in ("etc", "proc", "below/dev", "plain"):
        (top / name).mkdir(parents=True)
    made = subprocess.run(
        ["unshare", "--mount", "--", sys.executable, "-c", MAKE_AND_READ, str(top)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode and "unshare" in made.stderr:
        pytest.skip(f"no mount namespace here: {made.stderr.strip()}")
    assert made.returncode == 0, made.stderr
    found: dict[str, dict[str, Any]] = json.loads(made.stdout)
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_bind_mount_is_known_by_what_it_is_of(tmp_path: Path) -> None:
    found = facts(tmp_path)

    assert found["etc"]["other_names"] == ["/etc"]
    assert found["etc/ssl"]["other_names"] == ["/etc/ssl"]
    assert found["proc"]["other_names"] == ["/proc/sys"]
    assert [f"{tmp_path}/below/dev", ["/dev"]] in found["below"]["holds"]
    assert (found["plain"]["other_names"], found["plain"]["holds"]) == ([], [])


def test_an_ordinary_directory_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()

    assert read_path(f"{tmp_path}/models").other_names == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device nodes")
def test_a_disk_is_known_through_a_link(tmp_path: Path) -> None:
    """As the engine follows it, whatever it is called."""
    os.mknod(tmp_path / "disk", stat.S_IFBLK | 0o600, os.makedev(259, 200))
    (tmp_path / "job").symlink_to("disk")
    (tmp_path / "plain").touch()

    nodes = read_host(device_globs=[f"{tmp_path}/job", f"{tmp_path}/plain"]).devices

    assert [(node.block, node.major) for node in nodes] == [(True, 259), (False, None)]
