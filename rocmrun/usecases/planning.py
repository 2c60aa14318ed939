"""Plan: decide and show, start nothing."""

from collections.abc import Callable
from pathlib import Path

from rocmrun.core.exposure.score import score_plan
from rocmrun.core.host import HostFacts
from rocmrun.core.host_json import host_from_json
from rocmrun.core.image_report import image_report
from rocmrun.core.plan_view import PlanView
from rocmrun.errors import EngineUnreachable, InputError
from rocmrun.system.files import read_text
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.engines import connect
from rocmrun.usecases.prepare import Prepared, nothing_is_pulled, prepare


def plan_profile(
    ask: Callable[..., Ask],
    *,
    offline: bool,
    host_file: Path | None,
    connect: Callable[[], Engine] = connect,
) -> Prepared:
    """Return the plan, made without an engine when *offline* and for a saved host when *host_file* is given."""
    host = saved_host(host_file) if host_file is not None else None
    try:
        engine = None if offline else connect()
    except EngineUnreachable as error:
        error.hint = f"{error.hint}; or plan without one: --offline"
        raise
    return prepare(ask(host=host), engine, fetch=False, on_pull=nothing_is_pulled)


def saved_host(path: Path) -> HostFacts:
    """Return the host that was saved in a file.

    Raises:
        InputError: there is none in it.
    """
    text = read_text(path, InputError)
    if text is None:
        msg = f"host file {path} does not exist"
        raise InputError(msg, hint="make one with `rocmrun host --json > FILE` on that host")
    return host_from_json(text)


def view(prepared: Prepared) -> PlanView:
    """Return what is shown of a plan."""
    plan, host, engine = prepared.plan, prepared.host, prepared.engine
    return PlanView(
        plan=plan,
        host=host,
        engine=engine,
        exposure=score_plan(plan, host, engine),
        access=prepared.access,
        image=image_report(prepared.image, prepared.claims),
        support=prepared.support,
        profile_path=prepared.loaded.path,
        lock_path=str(prepared.lock_path) if prepared.lock_path else None,
    )
