"""Mount sources once more, right before the workload starts: a probe takes long enough to swap one."""

from rocmrun.core.policy import check_policy
from rocmrun.errors import MountSourceInvalid
from rocmrun.usecases.engine_protocol import Engine
from rocmrun.usecases.plan_inputs import paths_of, volumes_of
from rocmrun.usecases.prepare import Prepared


def check_unchanged(prepared: Prepared, engine: Engine) -> None:
    """Refuse a launch whose mount sources are no longer what was planned.

    Raises:
        MountSourceInvalid: one is another file or directory now.
        PlanRefused: one became what is never mounted.
    """
    volumes = volumes_of(prepared.loaded, engine)
    paths = paths_of(prepared.loaded, volumes)
    changed = {
        before.path
        for name, before in prepared.paths.items()
        if (after := paths.get(name)) is None
        or (after.real_path, after.identity) != (before.real_path, before.identity)
    }
    changed |= {name for name, before in prepared.volumes.items() if volumes.get(name) != before}
    if changed:
        msg = "a mount's source changed while launching; nothing was started"
        raise MountSourceInvalid(
            msg,
            details=tuple(
                f"{name}: is not what it was when it was judged" for name in sorted(changed)
            ),
            hint="run the same line again when nobody replaces it",
        )
    check_policy(prepared.plan, prepared.engine, paths, volumes=volumes)
