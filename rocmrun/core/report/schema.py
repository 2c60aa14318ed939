"""The JSON schema of a probe's report: what `rocmrun probe --json` prints and `--report FILE` holds."""

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from rocmrun.core.run_record import RefusedRun, RunRecord


class _WrittenSchema(GenerateJsonSchema):
    """The schema of what we write: every key is there, whatever a reader forgives."""

    def field_is_required(self, *_field: Any, **_more: Any) -> bool:
        return True

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def report_schema() -> dict[str, Any]:
    """Return the schema. Keys that it does not name may be added within a schema version."""
    adapter: TypeAdapter[RunRecord | RefusedRun] = TypeAdapter(RunRecord | RefusedRun)
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "rocmrun report",
        "description": "One run: what was planned, where it ran, what the probe found. Written by "
        "`--report FILE`, printed by `rocmrun probe --json` (with v and ok beside these keys).",
        **adapter.json_schema(mode="serialization", schema_generator=_WrittenSchema),
    }
