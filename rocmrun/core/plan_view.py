"""A plan with all that is shown of it: where it was read, what it exposes, who may open what."""

from dataclasses import dataclass

from rocmrun.core.access import AccessForecast
from rocmrun.core.engine_facts import EngineFacts
from rocmrun.core.exposure.score import Exposure
from rocmrun.core.host import HostFacts
from rocmrun.core.image_report import ImageReport
from rocmrun.core.plan import Plan
from rocmrun.core.support.judge import SupportReport


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """What `rocmrun plan` prints.

    Attributes:
        profile_path: The profile's file; None where there is none to name.
        lock_path: The lock file that covers the image.
    """

    plan: Plan
    host: HostFacts
    engine: EngineFacts | None
    exposure: Exposure
    access: AccessForecast
    image: ImageReport
    support: SupportReport | None = None
    profile_path: str | None = None
    lock_path: str | None = None
