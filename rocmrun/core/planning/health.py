"""The health check of a plan."""

import shlex

from rocmrun.core.plan import PlannedHealth
from rocmrun.core.planning.draft import Draft


def plan_health(draft: Draft) -> PlannedHealth | None:
    """Return what the profile has the engine run; None is nothing at all, not even what the image brings."""
    request = draft.request
    asked = request.profile.container.health
    facts = request.image_facts
    if asked is None:
        if facts is not None and facts.healthcheck:
            draft.note(
                "the image's HEALTHCHECK is not run; [container] health = { image = true } has the engine run it"
            )
        return None
    if asked.image and facts is not None and not facts.healthcheck:
        draft.note("container.health.image has no effect: the image has no HEALTHCHECK")
    what = "the image's own HEALTHCHECK" if asked.image else shlex.join(asked.command)
    draft.grant(
        "healthcheck",
        f"the engine runs {what} inside every {asked.interval} s, with the rights of the workload",
        request.asked_by("container.health"),
    )
    return PlannedHealth(
        command=asked.command,
        interval_seconds=asked.interval,
        timeout_seconds=asked.timeout,
        retries=asked.retries,
        start_period_seconds=asked.start_period,
    )
