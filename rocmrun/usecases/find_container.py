"""Which container of an engine a name means: one of ours by profile or run, any by name or id."""

import difflib
from collections.abc import Mapping
from typing import Any

from rocmrun.core import labels
from rocmrun.core.text import printable
from rocmrun.core.workloads import is_ours, meant, name_of
from rocmrun.errors import WorkloadAmbiguous, WorkloadNotFound
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.workloads import labelled_by_its_image, list_workloads

# As many hex digits as `docker ps` shows are meant as an id; fewer could be a word.
_LEAST_ID = 4
_MOST_NAMED = 5


def find_container(engine: Engine, name: str) -> tuple[str, bool]:
    """Return the id of the container that *name* means, and whether rocmrun made it.

    Raises:
        WorkloadNotFound: none, with the names that are near.
        WorkloadAmbiguous: several.
    """
    every = engine.containers("")
    for summary in every:
        if name in {name_of(summary), summary["Id"]}:
            return summary["Id"], made_by_us(engine, summary)
    workloads = list_workloads(engine, ended=True)
    if any(workload.profile == name for workload in workloads):
        return meant(workloads, name).container_id, True
    by_run = [workload for workload in workloads if name and workload.run == name]
    if by_run:
        return by_run[0].container_id, True
    by_id = [each for each in every if len(name) >= _LEAST_ID and each["Id"].startswith(name)]
    if len(by_id) > 1:
        msg = f'"{printable(name, 80)}" is the start of {len(by_id)} containers\' ids'
        raise WorkloadAmbiguous(msg, details=tuple(map(name_of, by_id)), hint="write more of it")
    if by_id:
        return by_id[0]["Id"], made_by_us(engine, by_id[0])
    raise _not_found(name, [*map(name_of, every), *(workload.profile for workload in workloads)])


def made_by_us(engine: Engine, summary: Mapping[str, Any]) -> bool:
    """Whether rocmrun made a container, and not the image that carries its labels."""
    found = {**summary, "Labels": summary.get("Labels") or {}}
    if labels.ROLE not in found["Labels"] or not is_ours(found):
        return False
    return not labelled_by_its_image(engine, found)


def _not_found(name: str, names: list[str]) -> WorkloadNotFound:
    near = difflib.get_close_matches(name, dict.fromkeys(names), n=_MOST_NAMED, cutoff=0.6)
    msg = f'the engine has no container "{printable(name, 80)}", and no workload of that profile'
    return WorkloadNotFound(
        msg,
        details=tuple(f"there is {printable(each, 80)}" for each in near),
        hint="rocmrun ps --all lists workloads, docker ps --all every container",
    )
