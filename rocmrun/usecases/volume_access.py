"""Whether the container's user may use its volumes: known only once the engine has made and filled them."""

from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.identity import ENTER, READ, WRITE, Identity
from rocmrun.core.plan import Plan
from rocmrun.errors import MountUnreadable
from rocmrun.usecases.containers import CreatedContainer
from rocmrun.usecases.engine_protocol import Engine


def check_volume_access(
    engine: Engine, container: CreatedContainer, plan: Plan, facts: EngineFacts | None
) -> None:
    """Refuse a start whose user could not read a volume, or not write where the profile says rw.

    A new volume has the owner and the files of the image's directory at its target, else root's.

    Raises:
        MountUnreadable: with every such volume.
    """
    identity = Identity.of(plan, facts)
    refused = []
    for mount in plan.mounts:
        if mount.kind != "volume" or identity.mapped:
            continue
        owner = engine.path_owner(container.container_id, mount.target)
        wanted = READ | ENTER | (0 if mount.read_only else WRITE)
        if (
            owner
            and not owner.link_target
            and not identity.may(wanted, owner.mode, owner.uid, owner.gid)
        ):
            why = identity.refusal(owner.mode, owner.uid, owner.gid)
            refused.append(f"volume {mount.source} → {mount.target}: {why}")
    if refused:
        msg = f"uid {plan.uid} may not use what is mounted"
        raise MountUnreadable(
            msg,
            details=tuple(refused),
            hint='mount a directory of yours instead: type = "bind"; or let the volume\'s owner run: [container] user',
        )
