"""The checks of a profile's own, [[probe.checks]]: what is run, and what is expected of it."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from rocmrun.core.profile.fields import (
    Boolean,
    CheckName,
    Count,
    ExitCode,
    MetricName,
    Number,
    Pattern,
    Text,
)
from rocmrun.core.profile.table import Table
from rocmrun.core.toml import KeyPath


class MetricBounds(Table):
    """Where a number that a check prints must lie."""

    min: Number | None = Field(None, description="The least that it may be.")
    max: Number | None = Field(None, description="The most that it may be.")


class OwnCheck(Table):
    """A command or a Python file that must say yes before work starts; its result joins the report."""

    name: CheckName = Field(description="What the report calls it.")
    command: tuple[Text, ...] = Field(
        (), description="What runs, inside the probe's container: a program and its arguments."
    )
    file: Text = Field(
        "",
        description="Python file that runs in place of a command, with `probe.python`. Its text is sent, nothing is mounted; ~ and paths relative to the profile's file are allowed.",
    )
    timeout: Count = Field(60, description="Seconds after which it has failed.")
    expect_exit: ExitCode = Field(0, description="Exit code that it must end with.")
    expect_output: Pattern = Field(
        "",
        description="Regular expression that a line of its output must match somewhere.",
    )
    metrics: dict[MetricName, MetricBounds] = Field(
        {},
        description="Numbers that it must print, by name, in JSON objects on lines of its stdout; the last value counts.",
    )
    level: Literal["quick", "standard", "full"] = Field(
        "standard", description="The lowest level at which it runs."
    )
    device: Literal["all", "each"] = Field(
        "all", description="Once with all GPUs, or once for each GPU with no other in sight."
    )
    writable_mounts: Boolean = Field(
        default=False,
        description="Whether the probe's container gets the profile's rw mounts writable, at the levels at which this runs; else they are read-only there.",
    )


def check_mistakes(checks: tuple[OwnCheck, ...]) -> Iterator[tuple[KeyPath, str]]:
    """Yield what contradicts itself in *checks*: the key, and a sentence."""
    places: dict[str, int] = {}
    for index, check in enumerate(checks):
        place: KeyPath = ("probe", "checks", index)
        if check.command and check.file:
            yield (*place, "file"), "a check is a command or a file; keep one of the two"
        elif not check.command and not check.file:
            yield place, "names nothing to run: a command or a file"
        if check.name in places:
            first = places[check.name]
            yield (*place, "name"), f'"{check.name}" is the name of probe.checks[{first}] already'
        places.setdefault(check.name, index)
        for name, bounds in check.metrics.items():
            if bounds.min is not None and bounds.max is not None and bounds.min > bounds.max:
                text = f"no number is at least {bounds.min:g} and at most {bounds.max:g}"
                yield (*place, "metrics", name), text
