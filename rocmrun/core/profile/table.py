"""What every table of a profile is."""

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A table of a profile: frozen, and closed to keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)
