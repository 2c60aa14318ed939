"""Secrets: looked for first, written for one user, gone with the run."""

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocmrun.core.create_request import create_request
from rocmrun.core.plan import Plan
from rocmrun.core.profile_parse import parse_profile
from rocmrun.core.ungranted import ungranted
from rocmrun.errors import HostNotReady, SecretMissing
from rocmrun.system.secret_files import secret_root
from rocmrun.usecases.secrets import (
    check_owner,
    check_secrets,
    clean_secrets,
    forget_run,
    secret_files,
)
from tests.builders import ENGINE, granted, plan

UID, GID = os.getuid(), os.getgid()


def planned(*secrets: Mapping[str, str]) -> Plan:
    """Return a plan whose user is this process's own."""
    made = plan({"secrets": list(secrets)})
    return made.with_changes(uid=UID, gid=GID)


def test_what_is_not_set_is_said_at_once() -> None:
    """Every variable, with the command that sets it."""
    profile = parse_profile(
        {"container": {"env_from": ["A", "B", "C"]}, "secrets": [{"name": "x", "source": "env:D"}]}
    )

    with pytest.raises(SecretMissing, match="A, B, D") as caught:
        check_secrets(profile, {"C": ""})
    assert caught.value.hint == "export A=…; export B=…; export D=…"


@pytest.mark.parametrize("what", ["missing", "directory", "large"])
def test_a_file_that_holds_no_secret_is_said(tmp_path: Path, what: str) -> None:
    """Before anything starts."""
    path = tmp_path / what
    if what == "directory":
        path.mkdir()
    elif what == "large":
        path.write_bytes(b"x" * ((1 << 20) + 1))
    profile = parse_profile({"secrets": [{"name": "x", "source": f"file:{path}"}]})

    with pytest.raises(SecretMissing, match=str(path)):
        check_secrets(profile, {})


def test_the_files_are_for_one_user_and_for_one_run(tmp_path: Path) -> None:
    """0400 in a directory that nobody else may enter, byte for byte, and afterwards nothing."""
    source = tmp_path / "source"
    source.write_bytes(b"two\nlines\n")
    root = tmp_path / "runtime" / "secrets"
    made = planned(
        {"name": "token", "source": "env:TOKEN"},
        {"name": "key", "source": f"file:{source}", "target": "/etc/app/key"},
    )

    with secret_files(made, "run1", keep=False, environment={"TOKEN": "t0k"}, root=root) as files:
        found = {target: Path(path) for target, path in files.items()}
        assert {t: p.read_bytes() for t, p in found.items()} == {
            "/run/secrets/token": b"t0k",
            "/etc/app/key": b"two\nlines\n",
        }
        for path in found.values():
            state = path.stat()
            assert (stat.S_IMODE(state.st_mode), state.st_uid, state.st_gid) == (0o400, UID, GID)
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
        assert clean_secrets([], dry_run=False, alive=frozenset(), root=root) == []

    assert list(root.iterdir()) == []


def test_a_failed_start_leaves_none(tmp_path: Path) -> None:
    """Also where they would have been kept."""
    made = planned({"name": "token", "source": "env:TOKEN"})

    with pytest.raises(RuntimeError), secret_files(made, "r", keep=True, environment={"TOKEN": "t"}, root=tmp_path / "s"):  # fmt: skip
        raise RuntimeError
    assert list((tmp_path / "s").iterdir()) == []


def test_those_of_a_detached_run_stay_until_it_has_ended(tmp_path: Path) -> None:
    """`clean` looks at the engine; whoever stops a container can have them removed at once."""
    root = tmp_path / "s"
    made = planned({"name": "token", "source": "env:TOKEN"})
    running = {"State": "running", "Labels": {"io.rocmrun.run": "r1"}}
    ended = {"State": "exited", "Labels": {"io.rocmrun.run": "r2"}}
    for run in ("r1", "r2", "r3"):
        with secret_files(made, run, keep=True, environment={"TOKEN": "t"}, root=root):
            pass

    def cleaned(*, dry_run: bool) -> list[str]:
        found = clean_secrets(
            [running, ended], dry_run=dry_run, alive=frozenset({"running"}), root=root
        )
        return [Path(path).name for path, _ in found]

    assert cleaned(dry_run=True) == ["r2", "r3"]
    assert cleaned(dry_run=False) == ["r2", "r3"]
    assert cleaned(dry_run=False) == []
    forget_run("../s/r1", root)
    assert [path.name for path in root.iterdir()] == ["r1"]
    forget_run("r1", root)
    assert list(root.iterdir()) == []


def test_a_directory_of_others_is_refused(tmp_path: Path) -> None:
    """Whoever may enter it could read or swap the files."""
    root = tmp_path / "s"
    root.mkdir(mode=0o755)
    made = planned({"name": "token", "source": "env:TOKEN"})

    with pytest.raises(HostNotReady, match="others may enter it"), secret_files(made, "r", keep=False, environment={"TOKEN": "t"}, root=root):  # fmt: skip
        pass


@pytest.mark.parametrize("link", [False, True])
def test_a_place_that_others_could_exchange_is_refused(tmp_path: Path, *, link: bool) -> None:
    """The engine follows the path as root, so that who owns a directory on the way chooses what is mounted."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    root = shared / "rocmrun" / "secrets"
    if link:
        root = tmp_path / "link" / "secrets"
        root.parent.symlink_to(shared)
    made = planned({"name": "token", "source": "env:TOKEN"})

    def written() -> dict[str, str]:
        with secret_files(made, "r", keep=False, environment={"TOKEN": "t"}, root=root) as files:
            return files

    with pytest.raises(HostNotReady, match="others could exchange"):
        written()
    assert not (root / "r").exists()

    shared.chmod(0o1777)  # as /tmp is: nobody can rename what is another's
    assert list(written()) == ["/run/secrets/token"]


def test_an_engine_that_maps_ids_gets_none() -> None:
    """Root of the host would own the file, and the container's user could not read it."""
    mapped = replace(ENGINE, security_options=("name=seccomp,profile=default", "name=userns"))
    made = plan({"gpus": {"select": ["none"]}, "secrets": [{"name": "x", "source": "env:X"}]})

    check_owner(made, ENGINE)
    check_owner(plan(), mapped)
    with pytest.raises(HostNotReady, match="maps user ids"):
        check_owner(made, mapped)


def test_the_request_names_the_file_and_never_the_value() -> None:
    """The workload has it read-only, the probe not at all, and the plan grants it by name."""
    made = plan({"secrets": [{"name": "token", "source": "env:TOKEN"}]})
    files = {"/run/secrets/token": "/run/user/1000/rocmrun/secrets/r/token"}

    workload = create_request(made, role="workload", secret_files=files)
    probe = create_request(made, role="probe", secret_files=files)

    def mounts(request: dict[str, Any]) -> list[tuple[str, bool]]:
        return [(m["Target"], m["ReadOnly"]) for m in request["HostConfig"]["Mounts"]]

    assert "secret:token" in granted(made)
    assert ("/run/secrets/token", True) in mounts(workload)
    assert "/run/secrets/token" not in str(probe)
    assert ungranted(workload, made) == ()
    assert ungranted(workload, plan()) != ()
    writable = [{**m, "ReadOnly": False} for m in workload["HostConfig"]["Mounts"]]
    workload["HostConfig"]["Mounts"] = writable
    assert any("/run/secrets/token" in right for right in ungranted(workload, made))


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"XDG_RUNTIME_DIR": "/run/user/7"}, "/run/user/7/rocmrun/secrets"),
        ({"XDG_RUNTIME_DIR": "relative"}, None),
        ({}, None),
    ],
)
def test_the_runtime_directory_is_the_users_own(
    environment: dict[str, str], place: str | None
) -> None:
    """Without one it is the system's for root, and where logind puts it for others."""
    usual = "/run/rocmrun/secrets" if os.getuid() == 0 else f"/run/user/{UID}/rocmrun/secrets"

    assert str(secret_root(environment)) == (place or usual)
