"""The sides of diff-privileges as plans: what varies, what the minimal side has, and a plan for any set between."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from rocmrun.core.host import HostFacts
from rocmrun.core.plan import Plan
from rocmrun.core.planning.draft import PlanRequest
from rocmrun.core.planning.planner import make_plan
from rocmrun.core.privilege_sides import (
    RECIPE_REASON,
    ROOT,
    TAILORED_REASON,
    Asked,
    items_of,
    realised,
    recipe_items,
    space_of,
    with_items,
    with_tmpfs,
)
from rocmrun.core.privileges import severity_of
from rocmrun.core.profile.loaded import LoadedProfile
from rocmrun.core.profile.model import Privilege, Profile
from rocmrun.core.search_space import Space
from rocmrun.core.voice import OnPull
from rocmrun.errors import PlanRefused, RocmrunError, UsageError
from rocmrun.system.cache_directories import make_cache_directory
from rocmrun.system.caller import read_caller
from rocmrun.usecases.ask import Ask
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.plan_inputs import host_for, seccomp_files
from rocmrun.usecases.prepare import Prepared, load, prepare

AMD = "amd"


@dataclass(slots=True)
class Sides:
    """What is compared.

    Attributes:
        prepared: The job, planned once; every variant is made from the same facts.
        asked: The catalogue items of the permissive side, with their reasons.
        base: Items of the minimal side.
        permissive: Items of the permissive side that a plan can hold.
        untested: Item → why no plan and no engine takes it.
        no_offer: Alternatives that the engine starts no container with.
    """

    prepared: Prepared
    asked: Asked
    base: tuple[str, ...]
    permissive: tuple[str, ...]
    untested: dict[str, str] = field(default_factory=dict)
    no_offer: set[str] = field(default_factory=set)
    _plans: dict[frozenset[str], Plan] = field(default_factory=dict)

    @property
    def space(self) -> Space:
        """What is searched: items that a plan can hold by themselves, the mildest preferred."""
        space = space_of(
            self.permissive,
            self.base,
            shm_baseline=self.asked.shm_baseline,
            offered=self.asked.tmpfs,
        )
        fits = tuple(
            item
            for item in space.elements
            if item in space.asked or (item not in self.no_offer and not self._refusal({item}))
        )
        return replace(space, elements=fits)

    def plan(self, items: Iterable[str]) -> Plan:
        """Return the job's plan with *items* beyond the minimal side; it is started once and never again."""
        held = frozenset({*items, *self.base})
        if held not in self._plans:
            plan = make_plan(_variant(self.prepared.request, self.profile(items)))
            self._plans[held] = plan.with_changes(restart="no", interactive=False, tty=False)
        return self._plans[held]

    def profile(self, items: Iterable[str]) -> Profile:
        """Return the profile with *items* beyond the minimal side."""
        held = {*items, *self.base}
        return with_items(self.prepared.loaded.profile, held, self.asked)

    def filtered(self, items: Iterable[str], file: str, text: str) -> tuple[Profile, Plan]:
        """Return the profile with *items* beyond the minimal side and the seccomp profile *text*, and its plan.

        What the filter was for among the items goes: a rule, which would unlock calls by a capability, is in *text*.

        Raises:
            PlanRefused: no plan holds that.
        """
        held = realised({*items, *self.base})
        plain = with_items(
            self.prepared.loaded.profile,
            [item for item in held if not item.startswith("seccomp:")],
            self.asked,
        )
        grant = Privilege(grant=f"seccomp:{file}", reason=TAILORED_REASON)
        profile = plain.model_copy(update={"privileges": (*plain.privileges, grant)})
        request = replace(self.prepared.request, seccomp_files={file: text})
        plan = make_plan(_variant(request, profile))
        return profile, plan.with_changes(restart="no", interactive=False, tty=False)

    @property
    def program(self) -> str:
        """The job's program where it is named by an absolute path; "" where it is looked up along PATH."""
        job, image = self.prepared.plan, self.prepared.request.image_facts
        own = job.entrypoint if job.entrypoint is not None else image.entrypoint if image else ()
        words = (*own, *(job.command or (image.command if image else ())))
        return words[0] if words and words[0].startswith("/") else ""

    def make_cache(self, plan: Plan) -> None:
        """Make the directory of *plan*'s cache, which a bind mount needs to exist; another user has another one."""
        if plan.cache is not None:
            root, profile = read_caller().cache_root, self.prepared.loaded.path
            make_cache_directory(plan.cache.source, root, plan.uid, plan.gid, profile=profile)

    def offer_tmpfs(self, sizes: Mapping[str, int]) -> None:
        """Take these into what is searched, in the place of what was offered before."""
        based = {item: size for item, size in self.asked.tmpfs.items() if item in self.base}
        self.asked = replace(self.asked, tmpfs=based | dict(sizes))

    def leave_out(self, items: Iterable[str], why: str) -> None:
        """Take items out of the permissive side that cannot be tried."""
        gone = set(items)
        self.untested |= dict.fromkeys(sorted(gone), why)
        self.permissive = tuple(item for item in self.permissive if item not in gone)

    def _refusal(self, items: Iterable[str]) -> str:
        try:
            self.plan(items)
        except RocmrunError as error:
            return " ".join((error.message, *error.details))
        return ""

    def leave_out_what_no_plan_holds(self) -> None:
        """Add the items one by one, root and then the mildest first: what a plan refuses then is untested."""
        root = ROOT in {*self.base, *self.permissive}
        held: list[str] = []
        # Root opens nodes that no group opens, so that it makes plans of more items than it forbids.
        order = sorted(
            self.permissive, key=lambda one: (one != ROOT, severity_of(one, root=root), one)
        )
        for item in order:
            if why := self._refusal([*held, item]):
                self.leave_out([item], why)
            else:
                held.append(item)


def load_minimal(ask: Ask) -> LoadedProfile:
    """Return the minimal side's profile; --set is for the job, and may name what this profile has not."""
    try:
        return load(ask)
    except UsageError:
        if not ask.settings:
            raise
        return load(replace(ask, settings={}))


def make_sides(
    ask: Ask,
    loaded: LoadedProfile,
    minimal: LoadedProfile | None,
    engine: Engine | None,
    *,
    recipe: str | None,
    on_pull: OnPull,
    fetch: bool = True,
    prove: bool = False,
) -> Sides:
    """Read everything and return the sides of *loaded*, or of AMD's usual line for its job.

    Args:
        ask: The job.
        loaded: Its profile.
        minimal: The profile of the minimal side; None for the baseline.
        engine: None to compare without one.
        recipe: "amd" for AMD's usual line as the permissive side.
        on_pull: Takes the events of a pull.
        fetch: Whether the image must be here in the end.
        prove: Whether probes run.

    Raises:
        RocmrunError: not even the minimal side can be planned.
    """
    prepared = _prepared(ask, loaded, engine, fetch=fetch, prove=prove, on_pull=on_pull)
    request = replace(
        prepared.request,
        host=_with_nodes(prepared.request.host, ask, loaded, minimal, recipe),
        seccomp_files=_files(ask, loaded, minimal),
    )
    prepared = replace(prepared, request=request)
    bare = _bare(loaded.profile)
    baseline = make_plan(_variant(request, bare))
    asked = items_of(
        loaded.profile, request.host, shm_baseline=baseline.shm_size_bytes, debug=ask.debug
    )
    base = Asked(items=(), reasons={}, shm_baseline=asked.shm_baseline)
    if minimal is not None:
        base = items_of(minimal.profile, request.host, shm_baseline=asked.shm_baseline)
        base = with_tmpfs(base, minimal.profile, loaded.profile)
    items = recipe_items(request.host, prepared.plan.gpus) if recipe == AMD else ()
    permissive = tuple(sorted({*asked.items, *items} - set(base.items)))
    reasons = {**dict.fromkeys(items, RECIPE_REASON), **base.reasons, **asked.reasons}
    asked = replace(asked, reasons=reasons, tmpfs=base.tmpfs)
    sides = Sides(prepared=prepared, asked=asked, base=base.items, permissive=permissive)
    sides.plan(())
    sides.leave_out_what_no_plan_holds()
    return sides


def _prepared(
    ask: Ask,
    loaded: LoadedProfile,
    engine: Engine | None,
    *,
    fetch: bool,
    prove: bool,
    on_pull: OnPull,
) -> Prepared:
    """Prepare the profile as written; where policy refuses that, its job without what it asks for beyond the baseline."""
    try:
        return prepare(ask, engine, fetch=fetch, on_pull=on_pull, loaded=loaded, prove=prove)
    except PlanRefused:
        bare = replace(loaded, profile=_bare(loaded.profile))
        found = prepare(ask, engine, fetch=fetch, on_pull=on_pull, loaded=bare, prove=prove)
        return replace(found, loaded=loaded)


def _bare(profile: Profile) -> Profile:
    nothing = Asked(items=(), reasons={}, shm_baseline=0)
    return with_items(profile, (), nothing)


def _variant(request: PlanRequest, profile: Profile) -> PlanRequest:
    """[debug] is part of the items by now."""
    return replace(request, profile=profile, debug=False, interactive=False, tty=False)


def _files(ask: Ask, loaded: LoadedProfile, minimal: LoadedProfile | None) -> dict[str, str]:
    files = dict(seccomp_files(loaded, debug=ask.debug))
    return files | dict(seccomp_files(minimal, debug=False)) if minimal else files


def _with_nodes(
    host: HostFacts,
    ask: Ask,
    loaded: LoadedProfile,
    minimal: LoadedProfile | None,
    recipe: str | None,
) -> HostFacts:
    """Return *host* with every node that either side names, and for AMD's line those of /dev/dri."""
    found = {node.path: node for node in host_for(loaded, ask.host_root, debug=ask.debug).devices}
    if minimal is not None:
        more = host_for(minimal, ask.host_root, debug=False).devices
        found |= {node.path: node for node in more}
    if recipe == AMD:
        nodes = (*host.card_nodes, *host.render_nodes, *((host.kfd,) if host.kfd else ()))
        found |= {node.path: node for node in nodes}
    return replace(host, devices=tuple(found[path] for path in sorted(found)))
