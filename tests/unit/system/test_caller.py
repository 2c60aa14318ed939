"""Who calls, where files of a caller belong, and which processes still run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocmrun.core.caller import NOBODY, Caller
from rocmrun.system.caller import (
    boot_id,
    process_label,
    process_runs,
    read_caller,
    state_directory,
    values_of,
)

ROOT = os.getuid() == 0


def test_the_caller_is_who_runs_the_process() -> None:
    caller = read_caller({"HOME": "/home/me"})

    assert (caller.uid, caller.gid) == (os.getuid(), os.getgid())


@pytest.mark.skipif(not ROOT, reason="only root can have been given its rights by sudo")
@pytest.mark.parametrize(
    ("environment", "ids"),
    [
        ({"SUDO_UID": "1000", "SUDO_GID": "100"}, (1000, 100)),
        ({"SUDO_UID": "1000"}, (1000, 1000)),
        ({"SUDO_UID": "", "SUDO_GID": "100"}, (0, 0)),
        ({"SUDO_UID": "me"}, (0, 0)),
        ({"SUDO_UID": "²"}, (0, 0)),
        ({"SUDO_UID": "2147483648", "SUDO_GID": "100"}, (0, 0)),
        ({"SUDO_UID": "1000", "SUDO_GID": "99999999999999999999"}, (1000, 1000)),
    ],
)
def test_under_sudo_the_caller_is_who_typed_it(
    environment: dict[str, str], ids: tuple[int, int]
) -> None:
    caller = read_caller(environment)

    assert (caller.uid, caller.gid) == ids


@pytest.mark.skipif(ROOT, reason="for root these variables count")
def test_nobody_but_root_is_believed_about_sudo() -> None:
    assert read_caller({"SUDO_UID": "0", "HOME": "/x"}).uid == os.getuid()


@pytest.mark.parametrize(
    ("value", "in_ci"),
    [("true", True), ("1", True), ("", False), ("0", False), ("false", False), ("False", False)],
)
def test_ci_is_what_the_environment_says(value: str, *, in_ci: bool) -> None:
    assert read_caller({"CI": value, "HOME": "/x"}).in_ci == in_ci


def test_caches_and_records_go_where_the_caller_wants_them() -> None:
    environment = {"XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "/s", "HOME": "/home/me"}

    assert read_caller(environment).cache_root == "/c/rocmrun"
    assert state_directory(environment) == Path("/s/rocmrun")


def test_without_a_word_they_go_to_the_system_for_root_and_home_for_others() -> None:
    environment = {"HOME": "/home/me"}

    cache, state = read_caller(environment).cache_root, str(state_directory(environment))

    expected = ("/var/cache/rocmrun", "/var/lib/rocmrun") if ROOT else (
        "/home/me/.cache/rocmrun", "/home/me/.local/state/rocmrun",
    )  # fmt: skip
    assert (cache, state) == expected


@pytest.mark.skipif(not ROOT, reason="needs another user to become")
def test_a_relative_directory_counts_as_unset() -> None:
    """So says the XDG base directory specification; a bind mount needs an absolute path."""
    without = {"HOME": "/h"}

    assert read_caller({"XDG_CACHE_HOME": "c", **without}) == read_caller(without)


def test_a_user_without_a_home_variable_has_one_in_the_password_file() -> None:
    script = (
        "import os; from rocmrun.system.caller import read_caller\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "print(read_caller({}).cache_root, read_caller({'HOME': '/h'}).cache_root)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], env={}, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["/nonexistent/.cache/rocmrun", "/h/.cache/rocmrun"]


def test_values_are_taken_by_name_and_absent_ones_stay_absent() -> None:
    environment = {"A": "1", "EMPTY": "", "OTHER": "x"}

    assert values_of(("A", "EMPTY", "UNSET"), environment) == {"A": "1", "EMPTY": ""}


def test_plain_root_runs_containers_as_nobody() -> None:
    assert Caller(uid=0, gid=0, cache_root="/c").container_ids == (NOBODY, NOBODY)
    assert Caller(uid=5, gid=6, cache_root="/c").container_ids == (5, 6)


def test_one_boot_has_one_id() -> None:
    assert boot_id() == boot_id()
    assert len(boot_id()) == 36


def test_a_process_is_known_by_its_start_too() -> None:
    """A number is given again."""
    label = process_label()
    pid, start, namespace = label.split(":")

    assert pid == str(os.getpid())
    assert process_runs(label)
    assert not process_runs(f"{pid}:{int(start) + 1}:{namespace}")


def test_a_process_of_another_pid_namespace_counts_as_running() -> None:
    """Its number means nothing here, and what it looks after must not be cleaned away."""
    assert process_runs("999999999:5:1")


@pytest.mark.parametrize("label", ["", ":", "x:1", "1", "999999999:5", "²:1"])
def test_a_label_that_is_none_names_no_process(label: str) -> None:
    assert not process_runs(label)


def test_a_process_that_has_ended_does_not_run() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        stat = Path(f"/proc/{child.pid}/stat").read_text()
        label = f"{child.pid}:{stat.rpartition(')')[2].split()[19]}"
        assert process_runs(label)
        child.kill()
    assert not process_runs(label)


@pytest.mark.skipif(not ROOT, reason="only root can become another user")
def test_a_process_that_proc_hides_counts_as_running(tmp_path: Path) -> None:
    """With hidepid another user's processes are not in /proc, and what they look after is theirs."""
    label = process_label()
    pid = label.partition(":")[0]
    gone = label.replace(pid, "4194303", 1)
    script = (
        "import os\nfrom pathlib import Path\nfrom rocmrun.system.caller import process_runs\n"
        "os.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n"
        f"print([process_runs(label, Path('{tmp_path}')) for label in ({label!r}, {gone!r})])"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[True, False]"


def test_a_namespace_of_another_machine_is_another() -> None:
    """The first one has the same number everywhere, and an engine may be used from several machines."""
    _, _, namespace = process_label().split(":")
    number = namespace.partition("-")[0]

    assert process_runs(f"999999999:5:{number}-0123456789ab")


def test_a_label_names_a_process_of_any_name(tmp_path: Path) -> None:
    """What another process that has the number by now is called need be no text; digits without end are no number."""
    namespace = process_label().partition(":")[2].partition(":")[2]
    (tmp_path / "77").mkdir()
    (tmp_path / "77/stat").write_bytes(b"77 (\xff\xfe) S" + b" 5" * 18 + b" 1234 0\n")

    assert process_runs(f"77:1234:{namespace}", tmp_path)
    assert not process_runs(f"77:1235:{namespace}", tmp_path)
    assert not process_runs(f"{'9' * 5000}:1:{namespace}")
