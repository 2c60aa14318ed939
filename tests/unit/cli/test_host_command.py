"""rocmrun host, as a person or a script calls it."""

import json
from pathlib import Path

from click.testing import CliRunner

from rocmrun.cli.host import command
from rocmrun.core.host_json import host_from_json
from rocmrun.system.sysfs import read_host
from tests.hosts import MI210_X8, build_host


def test_json_is_one_object_that_can_be_read_again(tmp_path: Path) -> None:
    """What `plan --host` takes."""
    root = build_host(tmp_path, MI210_X8, cpu_nodes=2)

    result = CliRunner().invoke(command, ["--root", str(root), "--json"])

    assert (result.exit_code, result.stderr) == (0, "")
    saved = json.loads(result.stdout)
    assert (saved["v"], saved["ok"], len(saved["gpus"])) == (1, True, 8)
    assert host_from_json(result.stdout) == read_host(root)


def test_a_table_is_printed_for_people(tmp_path: Path) -> None:
    """On stdout, it is the result."""
    result = CliRunner().invoke(command, ["--root", str(build_host(tmp_path, MI210_X8[:1]))])

    assert result.exit_code == 0
    assert "0000:63:00.0" in result.stdout


def test_a_root_that_is_no_directory_is_a_usage_error(tmp_path: Path) -> None:
    """Exit code 2, as for every wrong option."""
    result = CliRunner().invoke(command, ["--root", str(tmp_path / "none")])

    assert result.exit_code == 2
