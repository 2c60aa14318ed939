"""Secrets of a launch: looked for before anything starts, handed to the workload alone, removed with it."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.identity import Identity
from rocmrun.core.plan import Plan
from rocmrun.core.profile import Profile
from rocmrun.errors import HostNotReady, SecretMissing
from rocmrun.system import signals
from rocmrun.system.secret_files import (
    held,
    is_held,
    read_secret,
    remove_secrets,
    secret_directories,
    secret_root,
    write_secrets,
)

RUN_LABEL = "io.rocmrun.run"


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
    environment: Mapping[str, str] = os.environ,
    root: Path | None = None,
) -> Iterator[dict[str, str]]:
    """Write the plan's secrets for one run, yield target → file, and remove them at the end.

    Args:
        plan: Whose secrets, and whose user they belong to.
        run_id: Names the directory, so that `clean` finds it again.
        keep: Leave them: the container runs on. `clean_secrets` removes them once it has ended.
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
        paths = write_secrets(directory, values, plan.uid, plan.gid)
        with held(directory):
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
    if run_id and "/" not in run_id and not run_id.startswith("."):
        remove_secrets((root or secret_root()) / run_id)


def clean_secrets(
    containers: Iterable[Mapping[str, Any]],
    *,
    dry_run: bool,
    alive: frozenset[str],
    root: Path | None = None,
) -> list[tuple[str, str]]:
    """Remove the secrets of runs that have no container that could still read them; return (directory, why) of each.

    *containers* are the engine's summaries of all of rocmrun's; one in a state of *alive* still runs.
    """
    used = {
        container["Labels"].get(RUN_LABEL)
        for container in containers
        if container.get("State") in alive
    }
    found = []
    for directory in secret_directories(root or secret_root()):
        if directory.name in used or is_held(directory):
            continue
        if not dry_run:
            remove_secrets(directory)
        found.append((str(directory), "secrets of a run that has ended"))
    return found
