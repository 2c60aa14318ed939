"""Secrets of a plan: which files the workload gets. Their values are read when the container starts, and never planned."""

from rocmrun.core.plan import PlannedSecret
from rocmrun.core.planning.draft import Draft


def plan_secrets(draft: Draft) -> tuple[PlannedSecret, ...]:
    """Return the profile's secrets, granting each."""
    found = []
    for index, secret in enumerate(draft.request.profile.secrets):
        draft.grant(
            f"secret:{secret.name}",
            f"{secret.path}, readable by its user alone, from {secret.source}",
            draft.request.asked_by(f"secrets[{index}]"),
        )
        if secret.source.startswith("env:"):
            draft.note(
                f"the docker run line has no secret {secret.name}: put it into a file of mode 0400 and mount that at {secret.path}"
            )
        found.append(PlannedSecret(target=secret.path, name=secret.name, source=secret.source))
    return tuple(sorted(found))
