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
from rocmrun.core.profile.parse import parse_profile
from rocmrun.core.ungranted import ungranted
from rocmrun.errors import EngineFailed, HostNotReady, SecretMissing
from rocmrun.system.secret_files import secret_root
from rocmrun.usecases.secrets import (
    check_owner,
    check_secrets,
    clean_secrets,
    forget_ended,
    forget_run,
    run_held,
    secret_files,
)
from tests.builders import ENGINE, granted, plan
from tests.fakes import FakeEngine

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
        assert clean_secrets(FakeEngine(), dry_run=False, root=root) == []
        forget_ended(FakeEngine(), root=root)
        assert len(list((root / "run1").iterdir())) == 3

    assert list(root.iterdir()) == []


def test_a_failed_start_leaves_none(tmp_path: Path) -> None:
    """Also where they would have been kept."""
    made = planned({"name": "token", "source": "env:TOKEN"})

    with pytest.raises(RuntimeError), secret_files(made, "r", keep=True, environment={"TOKEN": "t"}, root=tmp_path / "s"):  # fmt: skip
        raise RuntimeError
    assert list((tmp_path / "s").iterdir()) == []


def left(root: Path, *runs: str, engine: str = ENGINE.key) -> None:
    """Leave the secrets of detached runs, made on the engine that *engine* names."""
    made = planned({"name": "token", "source": "env:TOKEN"})
    for run in runs:
        with secret_files(
            made, run, keep=True, engine=engine, environment={"TOKEN": "t"}, root=root
        ):
            pass


def runs_in(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def container(run: str, state: str) -> dict[str, Any]:
    """Return the engine's summary of a run's container."""
    labels = {"io.rocmrun.run": run, "io.rocmrun.role": "workload"}
    return {"Id": run, "State": state, "Labels": labels}


class Restarting(FakeEngine):
    """An engine that starts a container again when it has ended."""

    def inspect(self, container_id: str) -> dict[str, Any]:
        """Return what an engine records of a restart policy."""
        if container_id == "gone":
            msg = "no such container"
            raise EngineFailed(msg)
        name = {"again": "on-failure", "r2": "no"}.get(container_id, "")
        return {"HostConfig": {"RestartPolicy": {"Name": name, "MaximumRetryCount": 0}}}


def test_those_of_a_detached_run_stay_until_it_has_ended(tmp_path: Path) -> None:
    """`clean` looks at the engine; whoever stops a container can have them removed at once."""
    root = tmp_path / "s"
    left(root, "r1", "r2", "r3")
    engine = FakeEngine(others=[container("r1", "running"), container("r2", "exited")])

    def cleaned(*, dry_run: bool) -> list[str]:
        found = clean_secrets(engine, dry_run=dry_run, root=root)
        return [Path(path).name for path, _ in found]

    assert cleaned(dry_run=True) == ["r2", "r3"]
    assert cleaned(dry_run=False) == ["r2", "r3"]
    assert cleaned(dry_run=False) == []
    forget_run("../s/r1", root)
    assert runs_in(root) == ["r1"]
    forget_run("r1", root)
    assert runs_in(root) == []


def test_whoever_looks_next_takes_away_what_nothing_starts_again(tmp_path: Path) -> None:
    """Not what runs, what is about to, what the engine restarts, and what it does not answer for."""
    root = tmp_path / "s"
    states = {
        "r1": "running",
        "r2": "exited",
        "made": "created",
        "again": "exited",
        "gone": "exited",
    }
    left(root, *states, "nowhere")
    engine = Restarting(others=[container(run, state) for run, state in states.items()])

    forget_ended(engine, root=root)

    assert runs_in(root) == ["again", "gone", "made", "r1"]


def test_those_of_another_engine_stay(tmp_path: Path) -> None:
    """Its containers are none of this one's; of old ones nobody knows, and `clean` alone takes those."""
    root = tmp_path / "s"
    left(root, "here")
    left(root, "there", engine="AAAA:BBBB")
    left(root, "old", engine="")
    named = FakeEngine(facts=replace(ENGINE, identity="CCCC:DDDD"))

    forget_ended(named, root=root)
    assert runs_in(root) == ["here", "old", "there"]

    forget_ended(FakeEngine(), root=root)
    assert runs_in(root) == ["old", "there"]

    clean_secrets(FakeEngine(), dry_run=False, root=root)
    assert runs_in(root) == ["there"]


def test_without_secrets_nobody_is_asked(tmp_path: Path) -> None:
    """What is empty is being made or removed at this moment."""
    engine = FakeEngine()
    (tmp_path / "s" / "new").mkdir(parents=True)

    forget_ended(engine, root=tmp_path / "none")
    forget_ended(engine, root=tmp_path / "s")

    assert engine.calls == []
    assert runs_in(tmp_path / "s") == ["new"]


def test_a_stopped_container_that_may_come_back_keeps_its_own(tmp_path: Path) -> None:
    """While its successor is started."""
    root = tmp_path / "s"
    left(root, "r1")
    engine = FakeEngine(others=[container("r1", "exited")])

    with run_held("r1", root), run_held("none", root):
        assert clean_secrets(engine, dry_run=False, root=root) == []
    assert [Path(path).name for path, _ in clean_secrets(engine, dry_run=False, root=root)] == [
        "r1"
    ]


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
