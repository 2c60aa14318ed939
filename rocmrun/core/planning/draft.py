"""What a plan is made from, and the list of grants as it grows. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocmrun.core.caller import Caller
from rocmrun.core.cdi import CdiDevice
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.grants import ParsedGrant, parse_grant
from rocmrun.core.host import HostFacts
from rocmrun.core.image import ImageFacts
from rocmrun.core.lock import LockedFacts
from rocmrun.core.path_facts import PathFacts, VolumeFacts
from rocmrun.core.plan import Grant, PlannedImage
from rocmrun.core.profile.merge import nearest
from rocmrun.core.profile.model import Profile
from rocmrun.core.run import PathOwner


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Everything that a plan depends on: equal requests give equal plans.

    Attributes:
        name: The profile's name.
        profile_path: Its file, absolute: profiles of one name in two projects are two profiles. "" where there is none.
        profile: Merged, with parameters filled in and the command line's changes applied.
        provenance: Key path → who set it ("profile base", "command line"); absent keys are defaults.
        image: What the lock says, with the id of the local image where one was looked up.
        probe_image: The same of the image that the probe runs in, where the profile names one.
        image_facts: The image's config; None when no engine was asked.
        claims: What the image says it holds.
        engine: None when no engine was asked.
        paths: Source path → facts, for every bind mount, and for volumes that are one.
        volumes: Name → facts, for every volume that the engine has already.
        seccomp_files: Path → JSON text, for every seccomp file that a grant names.
        check_files: Path → text, for every Python file that a check of the profile names.
        cdi: Devices of the CDI specifications here, where the profile injects by CDI.
        image_ids: Numeric uid and gid behind a USER that the image gives by name.
        search_path: Entry of the image's PATH → the directories on the way and their owners, where they were looked up.
        narrow: Selectors of --gpu: only what they select too is passed.
        debug: Whether `[debug]` applies.
    """

    name: str
    profile: Profile
    image: PlannedImage
    host: HostFacts
    caller: Caller
    provenance: Mapping[str, str] = field(default_factory=dict)
    probe_image: PlannedImage | None = None
    image_facts: ImageFacts | None = None
    claims: LockedFacts | None = None
    engine: EngineFacts | None = None
    profile_path: str = ""
    paths: Mapping[str, PathFacts] = field(default_factory=dict)
    volumes: Mapping[str, VolumeFacts] = field(default_factory=dict)
    seccomp_files: Mapping[str, str] = field(default_factory=dict)
    check_files: Mapping[str, str] = field(default_factory=dict)
    cdi: tuple[CdiDevice, ...] = ()
    image_ids: tuple[int, int] | None = None
    search_path: Mapping[str, tuple[PathOwner, ...]] = field(default_factory=dict)
    narrow: tuple[str, ...] = ()
    interactive: bool = False
    tty: bool = False
    debug: bool = False

    def asked_by(self, key: str) -> str:
        """Return who asks for what *key* says: whoever set it, or the list or table that holds it."""
        return f"{nearest(self.provenance, key) or f'profile {self.name}'}: {key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedPrivilege:
    """A privilege that the profile writes down, taken apart."""

    parsed: ParsedGrant
    reason: str
    asked_by: str


@dataclass(slots=True)
class Draft:
    """A plan in the making: nothing becomes a right without passing `grant`."""

    request: PlanRequest
    grants: list[Grant] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def grant(self, what: str, reason: str, asked_by: str = "baseline") -> None:
        """Record a right."""
        self.grants.append(Grant(what=what, reason=reason, asked_by=asked_by))

    def withdraw(self, start: str) -> None:
        """Take back what starts with *start*: a later word for the same thing replaces it."""
        self.grants = [grant for grant in self.grants if not grant.what.startswith(start)]

    def note(self, text: str) -> None:
        """Record something that a reader of the plan should know."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def privileges(self) -> tuple[AskedPrivilege, ...]:
        """Everything under [[privileges]], and under [debug] when that applies."""
        request = self.request
        asked = [
            AskedPrivilege(
                parsed=entry.parsed,
                reason=entry.reason,
                asked_by=request.asked_by(f"privileges[{index}]"),
            )
            for index, entry in enumerate(request.profile.privileges)
        ]
        if request.debug:
            asked += [
                AskedPrivilege(
                    parsed=parse_grant(text),
                    reason="asked for with --debug",
                    asked_by=request.asked_by(f"debug.privileges[{index}]"),
                )
                for index, text in enumerate(request.profile.debug.privileges)
            ]
        return tuple(asked)

    def asked(self, kind: str) -> tuple[AskedPrivilege, ...]:
        """Return the privileges of one kind."""
        return tuple(asked for asked in self.privileges if asked.parsed.kind == kind)

    def record(self, asked: AskedPrivilege, *, note: str = "") -> None:
        """Grant a privilege as it was asked for."""
        reason = f"{asked.reason} ({note})" if note else asked.reason
        self.grant(str(asked.parsed), reason, asked.asked_by)
