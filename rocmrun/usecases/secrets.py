"""Secrets of a launch: looked for before anything starts, handed to the workload alone, removed with it.

Those of a detached workload stay while it may run. Whoever looks next takes them away once it has ended.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rocmrun.core import labels
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.identity import Identity
from rocmrun.core.plan import Plan
from rocmrun.core.profile.model import Profile
from rocmrun.core.workloads import ALIVE
from rocmrun.errors import EngineFailed, HostNotReady, SecretMissing
from rocmrun.system import signals
from rocmrun.system.secret_files import (
    engine_of,
    held,
    is_held,
    make_secret_directory,
    read_secret,
    remove_secrets,
    secret_directories,
    secret_root,
    write_secrets,
)
from rocmrun.usecases.engine_protocol import Engine


def check_secrets(profile: Profile, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a launch that could not hand over what its profile names.

    Raises:
        SecretMissing: with every variable and file that is not there.
    """
    wanted = [*profile.container.env_from]
    wanted += [secret.source[4:] for secret in profile.secrets if secret.source.startswith("env:")]
    unset = [name for name in dict.fromkeys(wanted) if name not in environment]
    if unset:
        them, are = ("them", "they are") if len(unset) > 1 else ("it", "it is")
        msg = f"{', '.join(unset)}: the container takes {them} from your environment, where {are} not set"
        raise SecretMissing(msg, hint="; ".join(f"export {name}=…" for name in unset))
    for secret in profile.secrets:
        if secret.source.startswith("file:"):
            read_secret(secret.source.removeprefix("file:"))


def check_owner(plan: Plan, engine: EngineFacts | None) -> None:
    """Refuse files for a user that is another one on this host.

    Raises:
        HostNotReady: the engine maps ids, so that nobody inside could read them.
    """
    if plan.secrets and Identity.of(plan, engine).mapped:
        msg = (
            "this engine maps user ids: a file of mode 0400 would belong to nobody in the container"
        )
        raise HostNotReady(msg, hint="hand the value over as a variable: [container] env_from")


@contextlib.contextmanager
def secret_files(
    plan: Plan,
    run_id: str,
    *,
    keep: bool,
    engine: str = "",
    environment: Mapping[str, str] = os.environ,
    root: Path | None = None,
) -> Iterator[dict[str, str]]:
    """Write the plan's secrets for one run, yield target → file, and remove them at the end.

    Args:
        plan: Whose secrets, and whose user they belong to.
        run_id: Names the directory, so that `clean` finds it again.
        keep: Leave them: the container runs on. `forget_ended` removes them once it has ended.
        engine: Which engine the container is made on (`EngineFacts.key`).
        environment: Where variables are.
        root: In place of the user's runtime directory.
    """
    if not plan.secrets:
        yield {}
        return
    directory = (root or secret_root(environment)) / run_id
    values = {secret.name: _value(secret.source, environment) for secret in plan.secrets}
    done = False
    try:
        make_secret_directory(directory, plan.uid)
        # Before there is anything to take away.
        with held(directory):
            paths = write_secrets(directory, values, plan.uid, plan.gid, engine=engine)
            yield {secret.target: paths[secret.name] for secret in plan.secrets}
        done = True
    finally:
        if not (done and keep):
            with signals.postponed():
                remove_secrets(directory)


def _value(source: str, environment: Mapping[str, str]) -> bytes:
    kind, _, name = source.partition(":")
    if kind == "file":
        return read_secret(name)
    return environment[name].encode("utf-8", "surrogateescape")


def forget_run(run_id: str, root: Path | None = None) -> None:
    """Remove the secrets of a run whose container has ended or is gone."""
    if directory := _of_run(run_id, root):
        remove_secrets(directory)


@contextlib.contextmanager
def run_held(run_id: str, root: Path | None = None) -> Iterator[None]:
    """Keep the secrets of a run whose container is stopped meanwhile, and may be started again."""
    directory = _of_run(run_id, root)
    with contextlib.ExitStack() as stack:
        if directory is not None:
            with contextlib.suppress(FileNotFoundError):
                stack.enter_context(held(directory))
        yield


def _of_run(run_id: str, root: Path | None) -> Path | None:
    plain = run_id and "/" not in run_id and not run_id.startswith(".")
    return (root or secret_root()) / run_id if plain else None


def forget_ended(engine: Engine, *, root: Path | None = None) -> None:
    """Remove the secrets of runs on *engine* that are over: no container is left, or one that nothing starts again.

    Those of another engine stay, and those of which nobody wrote down whose they are.
    """

    def may_run(container: Mapping[str, Any]) -> bool:
        if container.get("State") != "exited":
            return True
        try:
            policy = engine.inspect(container["Id"])["HostConfig"].get("RestartPolicy") or {}
        except EngineFailed:
            # It goes this moment: whoever looks next sees that it is gone.
            return True
        return policy.get("Name", "") not in {"", "no"}

    for directory in _over(engine, root, may_run, unknown=False):
        remove_secrets(directory)


def clean_secrets(
    engine: Engine, *, dry_run: bool, root: Path | None = None
) -> list[tuple[str, str]]:
    """Remove the secrets of runs that no container on *engine* reads any more; return (directory, why) of each.

    Those of another engine stay; those of which nobody wrote down whose they are count as this one's.
    """
    found = _over(engine, root, _runs, unknown=True)
    if not dry_run:
        for directory in found:
            remove_secrets(directory)
    return [(str(directory), "secrets of a run that has ended") for directory in found]


def _runs(container: Mapping[str, Any]) -> bool:
    return container.get("State") in ALIVE


def _over(
    engine: Engine,
    root: Path | None,
    uses: Callable[[Mapping[str, Any]], bool],
    *,
    unknown: bool,
) -> list[Path]:
    """Return the directories of runs on *engine* that have no container of which *uses* is true.

    With *unknown* also those of which nobody wrote down which engine they are of.
    """
    left = [
        directory
        for directory in secret_directories(root or secret_root())
        if not is_held(directory)
    ]
    if not left:
        # The usual case, in which nobody is asked.
        return []
    keys = {engine.facts().key, *([""] if unknown else [])}
    left = [directory for directory in left if engine_of(directory) in keys]
    names = {directory.name for directory in left}
    # Looked at last: whoever has let go of a directory had started its container before.
    used = {
        run
        for container in engine.containers(labels.ROLE)
        if (run := container["Labels"].get(labels.RUN)) in names and uses(container)
    }
    return [directory for directory in left if directory.name not in used]
