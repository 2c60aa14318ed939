"""The image that the probe runs in where it is not the workload's: the same rights, another user space."""

from rocmrun.core.image import ImageFacts
from rocmrun.core.plan import Plan, PlannedImage
from rocmrun.errors import PlanRefused

WHOSE = "its user space is the probe's, not the workload's"
DIGEST_LABEL, REF_LABEL = "io.rocmrun.digest", "io.rocmrun.ref"


def probe_plan(plan: Plan) -> Plan:
    """Return the plan of the probe's container: *plan* itself, or *plan* in the probe's image.

    PATH may have been written for the workload's image, where other programs lie elsewhere.
    """
    image = plan.probe.image
    if image is None:
        return plan
    labels = dict(plan.labels) | {REF_LABEL: image.ref, DIGEST_LABEL: image.digest or ""}
    env = tuple((name, value) for name, value in plan.env if name != "PATH")
    return plan.with_changes(image=image, labels=tuple(sorted(labels.items())), env=env)


def check_volumes(plan: Plan, facts: ImageFacts) -> None:
    """Refuse a probe image that brings a volume which the plan covers by nothing.

    Raises:
        PlanRefused: the engine would make a writable volume that the workload does not have.
    """
    covered = {mount.target for mount in plan.mounts} | {tmpfs.target for tmpfs in plan.tmpfs}
    open_volumes = sorted({volume.rstrip("/") for volume in facts.volumes} - covered)
    if open_volumes and plan.probe.image is not None:
        msg = f"the probe image {plan.probe.image.ref} declares a VOLUME at {', '.join(open_volumes)}, which the workload does not have"
        raise PlanRefused(msg, hint="build the probe image on a base that declares none")


def named(image: PlannedImage) -> str:
    """Return an image as people are told of it."""
    local = f"local image {image.image_id}" if image.source == "local" else "not locked"
    known = image.digest or local
    return f"{image.ref} @ {known}"
