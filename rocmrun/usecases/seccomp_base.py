"""The filter that a tailored one is made from: the engine's own, as it is for the job's container, or a file."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocmrun.core.host import HostFacts
from rocmrun.core.plan import Plan, canonical_json
from rocmrun.core.planning.security import SECCOMP_RULES
from rocmrun.core.seccomp import compact_seccomp
from rocmrun.core.seccomp_filter import SeccompFilter, Surface, parse_filter
from rocmrun.core.seccomp_tailored import SeccompBase
from rocmrun.errors import CommandNotFound, InputError, SeccompBaseUnknown
from rocmrun.system.files import read_text
from rocmrun.system.oci_bundle import read_bundle
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.trials import Trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A filter with where it is from."""

    filter: SeccompFilter
    record: SeccompBase


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseReader:
    """Finds the filter that a plan's container has when nobody tailors it.

    Attributes:
        file: What to start from in place of the engine's own.
        root: Where /proc is.
    """

    trials: Trials
    engine: Engine
    host: HostFacts
    file: Path | None
    root: Path

    def read(self, plan: Plan) -> Base:
        """Return the filter for a container with *plan*'s rights.

        Raises:
            InputError: the file is no seccomp profile, or says what is not known here.
            SeccompBaseUnknown: the engine's own cannot be read.
        """
        if self.file is not None:
            return self._from_file(self.file, plan, f"the file {self.file}")
        if plan.seccomp is not None:
            return self._parsed(json.loads(plan.seccomp), plan, "the profile's own")
        named = self.engine.facts().seccomp_profile or ""
        if named.startswith("/"):
            return self._from_file(Path(named), plan, f"the engine's default, which is the site's {named}")  # fmt: skip
        return self._from_engine(plan)

    def _from_file(self, path: Path, plan: Plan, source: str) -> Base:
        text = read_text(path, InputError)
        if text is None:
            msg = f"seccomp profile {path} does not exist"
            raise InputError(msg)
        try:
            data = json.loads(compact_seccomp(text))
        except ValueError as error:
            msg = f"seccomp profile {path} {error}"
            raise InputError(msg) from error
        rules = [grant.what.removeprefix("seccomp:") for grant in plan.grants]
        calls = [
            call for rule in rules if rule in SECCOMP_RULES for call in SECCOMP_RULES[rule][1].split(", ")
        ]  # fmt: skip
        digest = hashlib.sha256(text.encode()).hexdigest()
        return self._parsed(data, plan, source, file=str(path), digest=digest, calls=calls)

    def _from_engine(self, plan: Plan) -> Base:
        try:
            with self.trials.idle(plan) as container_id:
                pid = int(self.engine.inspect(container_id)["State"]["Pid"])
                bundle = read_bundle(pid, container_id, self.root)
        except CommandNotFound as error:
            msg = f"{plan.image.ref} has neither sleep nor {plan.probe.python}: no container of it waits until its filter is read"
            raise SeccompBaseUnknown(
                msg, hint="--seccomp-base FILE with the default.json of the engine's version"
            ) from error
        data = (bundle.get("linux") or {}).get("seccomp")
        if not data:
            msg = "the engine gives this container no seccomp filter: there is nothing to take away from"
            raise SeccompBaseUnknown(msg, hint="--seccomp-base FILE")
        return self._parsed(data, plan, "the engine's own")

    def _parsed(
        self,
        data: Mapping[str, Any],
        plan: Plan,
        source: str,
        *,
        file: str = "",
        digest: str = "",
        calls: tuple[str, ...] | list[str] = (),
    ) -> Base:
        facts = self.engine.facts()
        surface = Surface(
            capabilities=frozenset(plan.cap_add),
            architecture=plan.image.platform.split("/")[1],
            kernel=facts.kernel or self.host.kernel or "",
        )
        try:
            found = parse_filter(data, surface).also(calls)
        except ValueError as error:
            msg = f"{source}: the seccomp profile {error}"
            raise InputError(msg) from error
        return Base(
            filter=found,
            record=SeccompBase(
                source=source,
                engine=f"{facts.kind} {facts.version}",
                file=file,
                sha256=digest or hashlib.sha256(canonical_json(found.to_json()).encode()).hexdigest(),
                calls=len(found.calls),
            ),
        )  # fmt: skip
