"""The health check of a profile: a command that the engine runs inside, again and again."""

from pydantic import Field

from rocmrun.core.profile.fields import Boolean, Count, Seconds, Text
from rocmrun.core.profile.table import Table


class Health(Table):
    """What tells whether the workload is well. Without it nothing is run, the image's HEALTHCHECK neither."""

    command: tuple[Text, ...] = Field(
        (), description="Run inside, without a shell; 0 is healthy, anything else is not."
    )
    image: Boolean = Field(
        default=False, description="Run the image's own HEALTHCHECK in place of a command."
    )
    interval: Count = Field(30, description="Seconds between two runs.")
    timeout: Count = Field(5, description="Seconds after which a run counts as failed.")
    retries: Count = Field(3, description="Failures in a row that make it unhealthy.")
    start_period: Seconds = Field(
        0, description="Seconds after the start in which failures do not count."
    )
