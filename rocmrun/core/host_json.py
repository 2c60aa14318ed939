"""A host as JSON and back, so that a plan for one machine can be made and reviewed on another."""

import json
from dataclasses import asdict
from typing import Any

from rocmrun.core.host import SCHEMA_VERSION, HostFacts
from rocmrun.core.text import printable
from rocmrun.errors import UsageError

# Field of Gpu → its name in JSON.
_GPU_KEYS = {"pci_address": "pci_bdf"}
_SHOWN_MISTAKES = 8


def host_to_json(host: HostFacts) -> dict[str, Any]:
    """Return *host* as JSON values: null is "not known", never a stand-in for zero."""
    values = asdict(host)
    values["gpus"] = [
        {_GPU_KEYS.get(key, key): value for key, value in gpu.items()} for gpu in values["gpus"]
    ]
    return values


def host_from_json(text: str) -> HostFacts:
    """Return the host that `rocmrun host --json` saved; unknown keys are ignored.

    Raises:
        UsageError: *text* is no saved host, or one of a newer rocmrun.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415  # only where a host was saved

    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"the saved host is no JSON: {error}"
        raise UsageError(msg, hint=_HINT) from error
    if not isinstance(values, dict) or "gpus" not in values:
        msg = "the saved host has no 'gpus'"
        raise UsageError(msg, hint=_HINT)
    version = values.get("schema_version", SCHEMA_VERSION)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        msg = f"the saved host is of version {version}; this rocmrun reads {SCHEMA_VERSION}"
        raise UsageError(msg, hint="use the rocmrun that saved it, or a newer one")
    try:
        return TypeAdapter(HostFacts).validate_python(_with_field_names(values))
    except ValidationError as error:
        msg = "the saved host has wrong values"
        raise UsageError(msg, hint=_HINT, details=_mistakes(error.errors())) from error


_HINT = "rocmrun host --json > host.json"


def _with_field_names(values: dict[str, Any]) -> dict[str, Any]:
    fields = {key: field for field, key in _GPU_KEYS.items()}
    gpus = values["gpus"]
    if not isinstance(gpus, list):
        return values
    renamed = [
        {fields.get(key, key): value for key, value in gpu.items()}
        if isinstance(gpu, dict)
        else gpu
        for gpu in gpus
    ]
    return {**values, "gpus": renamed}


def _mistakes(errors: list[Any]) -> tuple[str, ...]:
    lines = [f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in errors]
    return tuple(printable(line, 200) for line in lines[:_SHOWN_MISTAKES])
