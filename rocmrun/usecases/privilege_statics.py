"""What diff-privileges says without running anything: how two sides differ, and whether a certificate still holds."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rocmrun.core.certificate import Certificate, changes_since
from rocmrun.core.exposure.score import score_plan
from rocmrun.core.plan import Grant, Plan
from rocmrun.core.privilege_report import StaticDifference
from rocmrun.core.run_record import EngineSummary, HostSummary
from rocmrun.core.text import one_line
from rocmrun.errors import InputError
from rocmrun.system.files import read_text
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.prepare import load, nothing_is_pulled, prepare
from rocmrun.usecases.privilege_sides import load_minimal, make_sides


def static_difference(
    ask: Ask, minimal: Ask | None, recipe: str | None, engine: Engine | None
) -> StaticDifference:
    """Return how the plan of *ask* differs from that of *minimal*, or from the baseline for the same job."""
    sides = make_sides(
        ask, load(ask), None, engine, recipe=recipe, fetch=False, on_pull=nothing_is_pulled
    )
    first, second = sides.plan(sides.permissive), sides.plan(())
    host = other_host = sides.prepared.host
    if minimal is not None:
        other = prepare(
            minimal, engine, fetch=False, on_pull=nothing_is_pulled, loaded=load_minimal(minimal)
        )
        second, other_host = other.plan, other.host
    facts = sides.prepared.engine
    rights = [{grant.what for grant in plan.grants} for plan in (first, second)]
    return StaticDifference(
        names=(
            f"AMD's usual line for {ask.profile}" if recipe else ask.profile,
            minimal.profile if minimal else "the baseline",
        ),
        only=(_without(first, rights[1]), _without(second, rights[0])),
        both=tuple(sorted(rights[0] & rights[1])),
        exposures=(score_plan(first, host, facts), score_plan(second, other_host, facts)),
        untested=sides.untested,
    )


def _without(plan: Plan, rights: set[str]) -> tuple[Grant, ...]:
    return tuple(grant for grant in plan.grants if grant.what not in rights)


def read_certificate(text: str, name: str) -> Certificate:
    """Return the certificate *text*; *name* is what it is called in messages.

    Raises:
        InputError: it is none.
    """
    try:
        return Certificate.model_validate_json(text)
    except ValidationError as error:
        msg = f"{name} is no certificate of diff-privileges"
        raise InputError(msg, hint="rocmrun diff-privileges PROFILE --certificate FILE") from error


def stale(text: str, name: str, ask: Ask, minimal: Ask | None, engine: Engine) -> tuple[str, ...]:
    """Return a sentence for each thing that the certificate *text* depends on and that has changed.

    *name* is what the certificate is called in messages. *ask* names the profile; the command is the certificate's.

    Raises:
        InputError: it is no certificate, or one of another profile or minimal side.
    """
    old = read_certificate(text, name)
    named = minimal.profile if minimal else ""
    if named != old.minimal_profile:
        msg = f"{name} was made with {old.minimal_profile or 'the baseline'} as the minimal side, not {named or 'the baseline'}"
        raise InputError(msg)
    asked = replace(ask, options=replace(ask.options, command=old.command))
    loaded = load(asked)
    if loaded.name != old.profile:
        msg = f"{name} was made for the profile {old.profile}, not {loaded.name}"
        raise InputError(msg, hint=f"rocmrun diff-privileges {old.profile} --stale {name}")
    other = load_minimal(minimal) if minimal else None
    sides = make_sides(
        asked, loaded, other, engine,
        recipe=old.recipe or None, fetch=False, on_pull=nothing_is_pulled,
    )  # fmt: skip
    plan = sides.plan(sides.permissive)
    new: dict[str, Any] = {
        "profile": plan.profile,
        "image_ref": plan.image.ref,
        "image_digest": plan.image.digest,
        "image_id": plan.image.image_id,
        "profile_hash": plan.hash,
        "engine": EngineSummary.of(engine.facts()).model_dump(mode="json"),
        "host": HostSummary.of(sides.prepared.host, plan).model_dump(mode="json"),
    }
    # Whoever sent the certificate wrote what is quoted from it.
    found = (*changes_since(old, new), *_changed_filters(old))
    return tuple(one_line(each, len(each)) for each in found)


def _changed_filters(old: Certificate) -> tuple[str, ...]:
    """Return a sentence for each seccomp file, made or made from, that is not as it was."""
    if old.seccomp is None or not old.seccomp.sha256:
        return ()
    base = old.seccomp.base
    files = {old.seccomp.file: old.seccomp.sha256}
    if base is not None and base.file:
        files[base.file] = base.sha256
    found = []
    for name, was in files.items():
        text = read_text(Path(name), InputError)
        if text is None:
            found.append(f"seccomp profile {name}: is no longer there")
        elif hashlib.sha256(text.encode()).hexdigest() != was:
            found.append(f"seccomp profile {name}: has changed")
    return tuple(found)
