"""Create, inspect, find the command: refused before the start, and removed whatever happens."""

from typing import Any

import pytest

from rocmrun.core.create_request import create_request
from rocmrun.core.run import PathStat
from rocmrun.errors import CommandNotExecutable, CommandNotFound, ContainerMismatch, LimitDropped
from rocmrun.usecases.containers import (
    MOST_LINKS,
    CreatedContainer,
    check_command,
    check_groups,
    check_recorded,
    check_warnings,
    created,
)
from tests.builders import plan, privileges
from tests.docker_records import recorded
from tests.fakes import FakeEngine

JOB = plan()
DIRECTORY = (1 << 31) | 0o755


def request(**changes: Any) -> dict[str, Any]:
    return create_request(JOB, role="workload", labels={"io.rocmrun.role": "workload"}) | changes


def test_a_container_is_handed_out_inspected_and_removed() -> None:
    engine = FakeEngine()

    with created(engine, JOB, request(), name="x", on_warning=print) as container:
        assert engine.calls == ["create workload", "inspect workload"]
        assert container.record["HostConfig"]["ReadonlyRootfs"] is True

    assert engine.kept == []


@pytest.mark.parametrize(("fails", "left"), [(False, 1), (True, 0)])
def test_a_container_is_kept_only_when_all_went_well(left: int, *, fails: bool) -> None:
    engine = FakeEngine()

    def use() -> None:
        with created(engine, JOB, request(), name="x", keep=True, on_warning=print):
            if fails:
                raise ZeroDivisionError

    if fails:
        with pytest.raises(ZeroDivisionError):
            use()
    else:
        use()

    assert len(engine.kept) == left


def test_a_request_with_a_right_that_nobody_granted_is_never_sent() -> None:
    """It would be a mistake of ours, and is told as one."""
    engine = FakeEngine()
    body = request()
    body["HostConfig"]["CapAdd"] = ["SYS_ADMIN"]

    with (
        pytest.raises(AssertionError, match="cap:SYS_ADMIN"),
        created(engine, JOB, body, name="x", on_warning=print),
    ):
        pass

    assert engine.calls == []


def test_every_difference_is_named() -> None:
    body = request()
    record = recorded(body)
    record["HostConfig"] |= {"Privileged": True, "PidMode": "host"}

    with pytest.raises(ContainerMismatch) as caught:
        check_recorded(body, record)

    assert [detail.split(":")[0] for detail in caught.value.details] == [
        "HostConfig.PidMode", "HostConfig.Privileged",
    ]  # fmt: skip
    assert "docker info" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ([{"Name": "memlock", "Soft": -1, "Hard": -1}], '"ulimit:memlock=-1:-1"'),
        ([{"Name": "nproc", "Soft": 1, "Hard": 2}, {"Name": "stack", "Soft": 5, "Hard": 5}],
         '"ulimit:nproc=1:2", "ulimit:stack=5:5"'),
        ([], "ulimit:NAME=N"),
    ],
)  # fmt: skip
def test_default_ulimits_of_a_site_are_accepted_in_writing_alone(
    limits: list[dict[str, Any]], said: str
) -> None:
    body = request()
    record = recorded(body)
    ours = record["HostConfig"]["Ulimits"]
    record["HostConfig"]["Ulimits"] = [*ours, *limits] if limits else None

    with pytest.raises(ContainerMismatch) as caught:
        check_recorded(body, record)

    assert said in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded.",
        "Your kernel does not support pids limit capabilities or the cgroup is not mounted. PIDs limit discarded.",
        "Your kernel does not support CPU CFS scheduler or the cgroup is not mounted. Period discarded.",
    ],
)
def test_a_limit_that_was_dropped_is_refused(text: str) -> None:
    heard: list[str] = []

    with pytest.raises(LimitDropped) as caught:
        check_warnings(
            ("IPv4 forwarding is disabled. Networking will not work.", text), heard.append
        )

    assert caught.value.details == (text,)
    assert heard == ["engine: IPv4 forwarding is disabled. Networking will not work."]


def look(
    command: str, files: dict[str, PathStat | bytes | None], **config: Any
) -> CommandNotFound | CommandNotExecutable | None:
    """Return why *command* cannot run in an image where only *files* differ; None when it can."""
    body = request(Entrypoint=[command], Cmd=[], **config)
    engine = FakeEngine(files=files)
    with created(engine, JOB, body, name="x", on_warning=print) as container:
        try:
            check_command(engine, container, JOB)
        except (CommandNotFound, CommandNotExecutable) as error:
            return error
    return None


NOWHERE: dict[str, PathStat | bytes | None] = {
    f"{path}/tool": None for path in ("/usr/local/bin", "/usr/bin", "/bin")
}


def test_a_command_is_found_along_path() -> None:
    assert look("tool", {}) is None
    assert look("tool", NOWHERE | {"/bin/tool": PathStat(mode=0o755)}) is None


def test_a_command_that_is_nowhere_says_where_it_was_looked_for() -> None:
    error = look("tool", NOWHERE)

    assert isinstance(error, CommandNotFound)
    assert error.message == "tool: not found in example.com/rocm/torch:1"
    assert error.hint == "looked along PATH=/usr/local/bin:/usr/bin:/bin"


def test_the_first_that_may_run_is_taken_and_else_the_first_is_blamed() -> None:
    """As execvp does."""
    plain, directory = PathStat(mode=0o644), PathStat(mode=DIRECTORY)

    assert look("tool", NOWHERE | {"/usr/local/bin/tool": plain, "/bin/tool": PathStat(mode=0o755)}) is None  # fmt: skip
    error = look("tool", NOWHERE | {"/usr/bin/tool": plain, "/bin/tool": directory})
    assert isinstance(error, CommandNotExecutable)
    assert "has no execute permission" in error.message
    error = look("tool", NOWHERE | {"/usr/bin/tool": directory})
    assert isinstance(error, CommandNotExecutable)
    assert "is a directory" in error.message


def test_a_path_is_looked_up_from_the_working_directory() -> None:
    files: dict[str, PathStat | bytes | None] = {"/w/bin/tool": None, "/bin/tool": None}

    assert look("/opt/tool", files) is None
    error = look("bin/tool", files, WorkingDir="/w")
    assert isinstance(error, CommandNotFound)
    assert error.hint is None
    error = look("bin/tool", files)
    assert isinstance(error, CommandNotFound)


def test_an_empty_path_is_dockers_own_and_an_empty_entry_the_working_directory() -> None:
    body = request(Entrypoint=["tool"], Cmd=[])
    record = recorded(body) | {"Id": "x"}
    for path, where in (("", "/usr/local/sbin/tool"), (":/bin", "./tool")):
        asked: list[str] = []

        class Watching(FakeEngine):
            def path_stat(self, container_id: str, path: str) -> PathStat | None:  # noqa: ARG002
                asked.append(path)  # noqa: B023  # called within this turn
                return PathStat(mode=0o755) if path == where else None  # noqa: B023

        record["Config"]["Env"] = [f"PATH={path}"]
        container = CreatedContainer(container_id="x", name="x", record=record)
        check_command(Watching(), container, JOB)
        assert asked[-1] == where


def test_where_most_commands_are_is_asked_first() -> None:
    """One question to the engine for a command of a usual image, whatever comes before it in PATH."""
    asked: list[str] = []

    class Watching(FakeEngine):
        def path_stat(self, container_id: str, path: str) -> PathStat | None:  # noqa: ARG002
            asked.append(path)
            return PathStat(mode=0o755) if path == "/usr/bin/tool" else None

    record = recorded(request(Entrypoint=["tool"], Cmd=[])) | {"Id": "x"}
    record["Config"]["Env"] = ["PATH=/opt/venv/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/bin"]
    check_command(Watching(), CreatedContainer(container_id="x", name="x", record=record), JOB)

    assert asked == ["/usr/bin/tool"]


def test_links_are_followed_to_their_end() -> None:
    files: dict[str, PathStat | bytes | None] = {
        "/opt/tool": PathStat(mode=0o777, link_target="../usr/real"),
        "/opt/../usr/real": PathStat(mode=0o777, link_target="/usr/realer"),
        "/usr/realer": PathStat(mode=0o644),
    }

    assert isinstance(look("/opt/tool", files), CommandNotExecutable)
    assert look("/opt/tool", files | {"/usr/realer": PathStat(mode=0o755)}) is None
    assert isinstance(look("/opt/tool", files | {"/usr/realer": None}), CommandNotFound)


def test_a_loop_of_links_leads_nowhere() -> None:
    loop = PathStat(mode=0o777, link_target="/opt/tool")

    assert isinstance(look("/opt/tool", {"/opt/tool": loop}), CommandNotFound)
    assert MOST_LINKS == 40


def test_an_image_without_any_command_says_how_to_name_one() -> None:
    body = request()
    record = recorded(body) | {"Path": "", "Id": "x"}
    container = CreatedContainer(container_id="x", name="x", record=record)

    with pytest.raises(CommandNotFound, match="neither ENTRYPOINT nor CMD") as caught:
        check_command(FakeEngine(), container, JOB)

    assert caught.value.hint == "rocmrun launch job -- COMMAND"


def test_a_group_that_the_image_names_like_a_number_is_refused() -> None:
    """The engine would give the group of that name, which can be root's; also behind a link."""
    job = plan(privileges("group:992"))
    link = PathStat(mode=0o777, link_target="other")
    engine = FakeEngine(files={"/etc/group": link, "/etc/other": b"992:x:0:\n"})
    body = create_request(job, role="workload", labels={"io.rocmrun.role": "workload"})

    with (
        created(engine, job, body, name="x", on_warning=print) as container,
        pytest.raises(ContainerMismatch, match="names groups like numbers"),
    ):
        check_groups(engine, container, job)
