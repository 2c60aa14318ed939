"""From a profile's name to a plan: read the profile, the lock, the host, the engine and the image, then decide."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from rocmrun.core import command_line
from rocmrun.core.access import AccessForecast, forecast_access
from rocmrun.core.engine_check import check_engine
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.host import HostFacts
from rocmrun.core.image import ImageFacts
from rocmrun.core.image_report import image_claims
from rocmrun.core.lock import LockedFacts, PinnedImage
from rocmrun.core.path_facts import PathFacts, VolumeFacts
from rocmrun.core.plan import Plan
from rocmrun.core.planning.draft import PlanRequest
from rocmrun.core.planning.planner import make_plan
from rocmrun.core.probing.image import check_volumes
from rocmrun.core.profile.loaded import LoadedProfile, override
from rocmrun.core.signature import VerifiedSignature
from rocmrun.core.support.judge import SupportReport
from rocmrun.core.voice import OnPull
from rocmrun.errors import EngineUnsuitable
from rocmrun.system.caller import read_caller
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.images import find_image
from rocmrun.usecases.plan_inputs import (
    cdi_devices,
    check_files,
    host_for,
    paths_of,
    seccomp_files,
    volumes_of,
)
from rocmrun.usecases.prepare_image import ids_of_image, image_of, named_image, pin_of
from rocmrun.usecases.probe_image import ProbeImage
from rocmrun.usecases.profiles import load_profile
from rocmrun.usecases.search_path import search_path_owners
from rocmrun.usecases.signatures import (
    Verify,
    signature_notes,
    signature_of,
    verify_signature,
)
from rocmrun.usecases.support import refuse_unsupported, support_notes, support_of

# What a path here says of a path of the same name on another machine: nothing.
UNKNOWABLE = frozenset({"missing", "denied", "loop"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan and all that it was made from.

    Attributes:
        pin: What the lock says; None for an unlocked image.
        lock_path: The lock file that said it.
        claims: What the image says it holds.
        access: Who may open what inside.
        support: What AMD's support matrix says; None without AMD GPUs.
        engine_notes: Those of the plan's notes that are about the engine, and are warnings.
        signature: What was verified of the image, where the profile asks for it.
        paths: Mount sources as they were when the plan was made.
        volumes: Volumes that there were then.
        check_files: Path → text, for the Python files of the profile's own checks.
        request: What the plan was made from; variants of it make variants of the plan.
    """

    loaded: LoadedProfile
    plan: Plan
    request: PlanRequest
    host: HostFacts
    pin: PinnedImage | None
    lock_path: Path | None
    engine: EngineFacts | None
    image: ImageFacts | None
    claims: LockedFacts | None
    access: AccessForecast
    support: SupportReport | None = None
    engine_notes: tuple[str, ...] = ()
    signature: VerifiedSignature | None = None
    paths: Mapping[str, PathFacts] = field(default_factory=dict)
    volumes: Mapping[str, VolumeFacts] = field(default_factory=dict)
    check_files: Mapping[str, str] = field(default_factory=dict)


def nothing_is_pulled() -> NoReturn:
    """Stand where a pull would be told of, for whoever fetches nothing."""
    msg = "a pull began although nothing was to be fetched"
    raise AssertionError(msg)


def load(ask: Ask) -> LoadedProfile:
    """Return the profile with the command line's changes in it."""
    loaded = load_profile(ask.profile, search=ask.search, settings=ask.settings)
    options = ask.options
    changed = override(
        loaded,
        replacing=command_line.replacing(options),
        adding=command_line.adding(
            options, directory=str(ask.search.working_directory), home=ask.search.home
        ),
    )
    return _with_command(changed, tuple(options.command)) if options.command else changed


def _with_command(loaded: LoadedProfile, command: tuple[str, ...]) -> LoadedProfile:
    """Replace the command, which no policy forbids: it runs with the profile's rights and no others."""
    profile = loaded.profile
    container = profile.container.model_copy(update={"command": command})
    return replace(
        loaded,
        profile=profile.model_copy(update={"container": container}),
        provenance={**loaded.provenance, "container.command": "command line"},
    )


def prepare(
    ask: Ask,
    engine: Engine | None,
    *,
    fetch: bool,
    on_pull: OnPull,
    loaded: LoadedProfile | None = None,
    verify: Verify = verify_signature,
    prove: bool = True,
) -> Prepared:
    """Return the plan for *ask*.

    Args:
        ask: What is wanted.
        engine: None to plan without one: what it alone can tell is then left open.
        fetch: Whether the image must be here in the end (launch, probe), rather than be described (plan).
        on_pull: Opened while a pull goes on; gives what takes its events.
        loaded: The profile that *ask* names, where it was read already.
        verify: Verifies the image's signature, where the profile asks for it, before it is fetched.
        prove: Whether a probe follows, so that the image that it runs in must be here too.
    """
    loaded = loaded or load(ask)
    pin, lock_path = pin_of(ask, loaded, required=fetch)
    probe_image = ProbeImage.of(
        loaded, lockfile=ask.lockfile, required=fetch and prove and not ask.unlocked
    )
    signature = signature_of(loaded, pin, verify) if fetch else None
    asked = _asked(ask, loaded, pin, probe_image, engine)
    if fetch and engine and (pin is None or find_image(engine, pin) is None):
        _refuse_early(asked, loaded, pin)
    image, planned = image_of(ask, loaded, pin, engine, fetch=fetch, on_pull=on_pull)
    probed_in = (
        probe_image.have(engine, fetch=fetch and prove, pull=ask.pull, on_pull=on_pull)
        if probe_image and engine
        else None
    )
    request = replace(
        asked,
        image=planned,
        probe_image=probe_image.planned(probed_in) if probe_image else None,
        image_facts=image,
        claims=image_claims(image, pin.facts if pin else None, planned.ref),
        image_ids=ids_of_image(loaded, engine, image),
        search_path=search_path_owners(engine, image, planned.platform) if engine and image else {},
    )
    plan = make_plan(request)
    if probed_in is not None:
        check_volumes(plan, probed_in)
    prepared = Prepared(
        loaded=loaded,
        plan=plan,
        request=request,
        host=request.host,
        pin=pin,
        lock_path=lock_path,
        engine=request.engine,
        image=image,
        claims=request.claims,
        access=_access(ask, plan, request),
        support=support_of(plan, request.host, request.claims, image),
        signature=signature,
        paths=request.paths,
        volumes=request.volumes,
        check_files=request.check_files,
    )
    return _judged(prepared, ask, fetch=fetch)


def _asked(
    ask: Ask,
    loaded: LoadedProfile,
    pin: PinnedImage | None,
    probe_image: ProbeImage | None,
    engine: Engine | None,
) -> PlanRequest:
    """Return what the plan is made from as far as it is known before the image is here."""
    host = ask.host or host_for(loaded, ask.host_root, debug=ask.debug)
    facts = engine.facts() if engine else None
    volumes = volumes_of(loaded, engine)
    sources = paths_of(loaded, volumes)
    if ask.host:
        # What lies on the other machine nobody knows here: neither what is missing nor where links lead.
        known = {name: found for name, found in sources.items() if found.kind not in UNKNOWABLE}
        sources = {name: replace(found, real_path=None) for name, found in known.items()}
    return PlanRequest(
        name=loaded.name,
        profile_path=loaded.path,
        profile=loaded.profile,
        provenance=loaded.provenance,
        image=named_image(loaded, pin),
        probe_image=probe_image.planned(None) if probe_image else None,
        host=host,
        engine=facts,
        caller=read_caller(),
        paths=sources,
        volumes=volumes,
        # A saved host has no specifications with it.
        cdi=() if ask.host else cdi_devices(loaded, ask.host_root, facts),
        seccomp_files=seccomp_files(loaded, debug=ask.debug),
        check_files=check_files(loaded),
        narrow=ask.narrow,
        interactive=ask.interactive,
        tty=ask.tty,
        debug=ask.debug,
    )


def _access(ask: Ask, plan: Plan, request: PlanRequest) -> AccessForecast:
    # For a saved host the sources here are another machine's: they say nothing.
    paths = {} if ask.host else request.paths
    return forecast_access(plan, request.host, request.engine, paths, caller_uid=request.caller.uid)


def _judged(prepared: Prepared, ask: Ask, *, fetch: bool) -> Prepared:
    """Refuse what could not work where it is to start, and note it in the plan where it is only to be seen."""
    loaded, plan, support = prepared.loaded, prepared.plan, prepared.support
    # A saved host is another machine than this engine's: they say nothing of each other.
    notes = () if ask.host else _engine_notes(prepared.engine, prepared.host, plan, refuse=fetch)
    if fetch:
        prepared.access.refuse()
        refuse_unsupported(support, loaded)
    later = () if fetch else (*signature_notes(loaded), *support_notes(support, loaded))
    return replace(
        prepared,
        plan=plan.with_changes(notes=(*plan.notes, *notes, *later)),
        engine_notes=notes,
    )


def _refuse_early(asked: PlanRequest, loaded: LoadedProfile, pin: PinnedImage | None) -> None:
    """Say what this host lacks before many gigabytes are fetched for nothing."""
    plan = make_plan(asked)
    recorded = image_claims(None, pin.facts if pin else None, asked.image.ref)
    refuse_unsupported(support_of(plan, asked.host, recorded, None), loaded)


def _engine_notes(
    facts: EngineFacts | None, host: HostFacts, plan: Plan, *, refuse: bool
) -> tuple[str, ...]:
    """Return what is to be said about the engine; an unsuitable one stops a launch, not the view of a plan."""
    if facts is None:
        return ()
    try:
        return check_engine(facts, host, plan)
    except EngineUnsuitable as error:
        if refuse:
            raise
        return (f"launch will refuse this engine: {error.message}",)
