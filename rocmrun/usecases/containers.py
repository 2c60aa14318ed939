"""Create a container from a plan, and inspect it before it may start."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rocmrun.core.image_user import misleading_groups
from rocmrun.core.inspection import weaker
from rocmrun.core.plan import Plan
from rocmrun.core.run import PathStat
from rocmrun.core.ungranted import ungranted
from rocmrun.errors import CommandNotExecutable, CommandNotFound, ContainerMismatch, LimitDropped
from rocmrun.system import signals
from rocmrun.usecases.engine_protocol import Engine

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Where most commands are: each directory is a question to the engine.
LIKELY = ("/usr/bin", "/bin", "/usr/local/bin")
MOST_LINKS = 40
DAEMON_HINT = "look for defaults and plugins of the engine: docker info, /etc/docker/daemon.json, or containers.conf of Podman"
# What engines warn when the kernel cannot keep a limit that was asked for.
_DROPPED = (
    "Limitation discarded",
    "cgroup is not mounted",
    "does not support",
    "limit capabilities",
)
_SWAP_ONLY = ("swap limit", "Memory limited without swap")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedContainer:
    """A container that was created and inspected, and may be started."""

    container_id: str
    name: str
    record: Mapping[str, Any]


@contextlib.contextmanager
def created(
    engine: Engine,
    plan: Plan,
    request: Mapping[str, Any],
    *,
    name: str,
    keep: bool = False,
    on_warning: Callable[[str], None],
) -> Iterator[CreatedContainer]:
    """Create, inspect, hand out, and remove at the end, whatever happened.

    Args:
        engine: Where.
        plan: Supplies the platform.
        request: The create request.
        name: The container's name.
        keep: Leave the container in place once it has started.
        on_warning: Takes what the engine warns about.

    Raises:
        ContainerMismatch: the engine recorded more rights than were asked for.
        LimitDropped: the engine says that it cannot keep a limit.
    """
    extra = ungranted(request, plan)
    if extra:
        msg = f"the request would give rights that the plan does not grant: {', '.join(extra)}"
        raise AssertionError(msg)
    with contextlib.ExitStack() as stack:
        with signals.postponed():
            answer = engine.create(request, name, plan.image.platform)
            stack.callback(_remove, engine, answer.container_id)
        record = engine.inspect(answer.container_id)
        check_warnings(answer.warnings, on_warning)
        check_recorded(request, record, warnings=answer.warnings)
        yield CreatedContainer(container_id=answer.container_id, name=name, record=record)
        if keep:
            stack.pop_all()


def _remove(engine: Engine, container_id: str) -> None:
    with signals.postponed():
        engine.remove(container_id)


def check_recorded(
    request: Mapping[str, Any], record: Mapping[str, Any], *, warnings: tuple[str, ...] = ()
) -> None:
    """Refuse a container that the engine recorded with more rights than were asked for.

    A kernel that counts no swap keeps the memory limit alone; the engine's warning says so, and it was shown.
    """
    without_swap = any(_is_about_swap(warning) for warning in warnings)
    found = [
        difference
        for difference in weaker(request, record)
        if not (without_swap and difference.field == "HostConfig.MemorySwap")
    ]
    if not found:
        return
    ulimits = [difference for difference in found if difference.field == "HostConfig.Ulimits"]
    msg = "the engine recorded a container that is weaker than asked for; it was removed and nothing started"
    raise ContainerMismatch(
        msg,
        details=tuple(str(difference) for difference in found),
        hint=_ulimit_hint(ulimits[0].sent, ulimits[0].recorded) if ulimits else DAEMON_HINT,
    )


def _ulimit_hint(sent: Any, recorded: Any) -> str:
    """A site's own default-ulimits can be accepted, but only written down."""
    asked = {limit["Name"] for limit in sent or ()}
    extra = [limit for limit in recorded or () if limit["Name"] not in asked]
    grants = ", ".join(
        f'"ulimit:{limit["Name"]}={limit["Soft"]}:{limit["Hard"]}"' for limit in extra
    )
    return f"the daemon has default-ulimits; accept one by writing it down: [[privileges]] grant = {grants or 'ulimit:NAME=N'}"


def check_warnings(warnings: tuple[str, ...], on_warning: Callable[[str], None]) -> None:
    """Show what the engine warned about; a limit that was dropped is not a warning but a refusal."""
    dropped = []
    for warning in warnings:
        if any(text in warning for text in _DROPPED) and not _is_about_swap(warning):
            dropped.append(warning)
        else:
            on_warning(f"engine: {warning}")
    if dropped:
        msg = "the engine cannot keep a limit that the plan sets"
        raise LimitDropped(
            msg,
            details=tuple(dropped),
            hint="the last lines of `docker info` name what this kernel cannot limit",
        )


def _is_about_swap(warning: str) -> bool:
    return any(text in warning for text in _SWAP_ONLY)


def check_groups(engine: Engine, container: CreatedContainer, plan: Plan) -> None:
    """Refuse an image whose group file would turn a numeric group of the plan into another group.

    Raises:
        ContainerMismatch: it names a group like a number.
    """
    if not plan.groups:
        return
    path, _ = _resolve(engine, container.container_id, "/etc/group")
    text = (engine.read_file(container.container_id, path) or b"").decode(errors="replace")
    found = misleading_groups(plan.groups, text)
    if found:
        msg = f"{plan.image.ref} names groups like numbers, which an engine looks up first; nothing was started"
        raise ContainerMismatch(msg, details=found)


def check_command(engine: Engine, container: CreatedContainer, plan: Plan) -> None:
    """Find the command in the created container: with an init process a missing one does not fail at start.

    Raises:
        CommandNotFound: there is no such file (127).
        CommandNotExecutable: it is a directory or has no execute bit (126).
    """
    path = container.record.get("Path") or ""
    if not path:
        msg = f"image {plan.image.ref} has neither ENTRYPOINT nor CMD, and the profile names no command"
        raise CommandNotFound(msg, hint=f"rocmrun launch {plan.profile} -- COMMAND")
    stat = _find(engine, container, path)
    if stat is None:
        msg = f"{path}: not found in {plan.image.ref}"
        raise CommandNotFound(msg, hint=_path_hint(container, path))
    if stat.is_directory or not stat.executable:
        what = "is a directory" if stat.is_directory else "has no execute permission"
        msg = f"{path}: {what} in {plan.image.ref}"
        raise CommandNotExecutable(msg)


def _path_hint(container: CreatedContainer, path: str) -> str | None:
    return None if "/" in path else f"looked along PATH={_search_path(container)}"


def _search_path(container: CreatedContainer) -> str:
    environment = dict(
        entry.partition("=")[::2] for entry in container.record["Config"].get("Env") or ()
    )
    return environment.get("PATH") or DEFAULT_PATH


def _find(engine: Engine, container: CreatedContainer, command: str) -> PathStat | None:
    """Return what the command is after symlinks: an executable file along PATH, else a file that is none.

    A shell goes on where it may not execute, so that any entry answers: the likely ones are asked first.
    """
    if "/" in command:
        workdir = container.record["Config"].get("WorkingDir") or "/"
        return _follow(engine, container.container_id, _join(workdir, command))
    directories = sorted(_search_path(container).split(":"), key=lambda name: name not in LIKELY)
    candidates = (
        _follow(engine, container.container_id, _join(directory or ".", command))
        for directory in directories
    )
    first = None
    for stat in candidates:
        if stat is not None and stat.executable and not stat.is_directory:
            return stat
        first = first or stat
    return first


def _follow(engine: Engine, container_id: str, path: str) -> PathStat | None:
    """Return what *path* is in the end; None when it leads nowhere."""
    return _resolve(engine, container_id, path)[1]


def _resolve(engine: Engine, container_id: str, path: str) -> tuple[str, PathStat | None]:
    """Resolve the last component's symlinks; the engine resolves those on the way."""
    for _ in range(MOST_LINKS):
        stat = engine.path_stat(container_id, path)
        if stat is None or not stat.link_target:
            return path, stat
        path = _join(path.rpartition("/")[0] or "/", stat.link_target)
    return path, None


def _join(base: str, path: str) -> str:
    return path if path.startswith("/") else f"{base.rstrip('/')}/{path}"
