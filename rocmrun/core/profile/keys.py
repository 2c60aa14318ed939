"""The keys of a profile as the models declare them: the JSON schema, and what docs and suggestions make of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from rocmrun.core.profile.model import Profile
from rocmrun.core.profile.values import TextValue
from rocmrun.core.toml import KeyPath

# A number, a boolean or one of a few words may also be written as "${name}".
_PARAMETER = {"type": "string", "pattern": r"\$\{[a-z][a-z0-9_]*\}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileKey:
    """A key of a profile, for people.

    Attributes:
        path: "container.shm_size", "mounts[].target", "parameters.NAME.help".
        kind: What may stand there: "size", "rocm, cuda or cpu", "list of string".
        default: What holds when nobody sets it, as JSON; None when then nothing is there.
        required: Whether its table is refused without it.
        description: One or two sentences.
    """

    path: str
    kind: str
    default: str | None
    required: bool
    description: str


@cache
def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a profile file: one before parents are merged and parameters filled in."""
    schema = Profile.model_json_schema(schema_generator=_FileSchema)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "rocmrun profile"}


@cache
def profile_keys() -> tuple[ProfileKey, ...]:
    """Return every key in the order of the models."""
    return tuple(_keys(json_schema(), ""))


def keys_markdown() -> str:
    """Return the keys as one Markdown table."""
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for key in profile_keys():
        default = "required" if key.required else f"`{key.default}`" if key.default else ""
        cells = (f"`{key.path}`", key.kind, default, key.description)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def known_keys(path: KeyPath) -> tuple[str, ...]:
    """Return the keys of the table at *path* of a profile; () where a table has no fixed keys."""
    node = json_schema()
    for part in path:
        node = _resolved(node)
        free = node.get("items") if isinstance(part, int) else node.get("additionalProperties")
        node = node.get("properties", {}).get(part) or free or {}
    return tuple(_resolved(node).get("properties", ()))


def in_order(data: Mapping[str, Any], path: KeyPath = ()) -> dict[str, Any]:
    """Return *data* with its keys in the order of the models; free keys stay as they come."""
    known = known_keys(path)
    keys = [*(key for key in known if key in data), *(key for key in data if key not in known)]
    return {
        key: in_order(data[key], (*path, key)) if isinstance(data[key], Mapping) else data[key]
        for key in keys
    }


def table_of(key: str) -> str | None:
    """Return the one table that has *key* ("container" for "shm_size"); None when none or several have it."""
    parts = (known.path.rpartition(".") for known in profile_keys())
    tables = [table.removesuffix("[]") for table, _, last in parts if table and last == key]
    return tables[0] if len(tables) == 1 else None


class _FileSchema(GenerateJsonSchema):
    """The schema of what stands in a file: parameters allowed, no null, no titles made up from names."""

    def int_schema(self, schema: core_schema.IntSchema) -> JsonSchemaValue:
        return {"anyOf": [super().int_schema(schema), _PARAMETER]}

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        return {"anyOf": [super().float_schema(schema), _PARAMETER]}

    def bool_schema(self, schema: core_schema.BoolSchema) -> JsonSchemaValue:
        return {"anyOf": [super().bool_schema(schema), _PARAMETER]}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return {"anyOf": [super().literal_schema(schema), _PARAMETER]}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        # pydantic drops the title of the values, and with it what kind of value they are.
        return super().dict_schema(schema) | {
            "additionalProperties": self.generate_inner(schema["values_schema"])
        }

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = super().default_schema(schema)
        if "default" in inner and inner["default"] is None:
            del inner["default"]
        return inner

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, tuple):
            return [self.encode_default(item) for item in dft]
        return str(dft) if isinstance(dft, TextValue) else super().encode_default(dft)

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


def _keys(table: dict[str, Any], prefix: str) -> Iterator[ProfileKey]:
    for name, node in table["properties"].items():
        below, step = _table_below(node)
        if below:
            yield from _keys(below, f"{prefix}{name}{step}")
            continue
        yield ProfileKey(
            path=prefix + name,
            kind=_kind(node),
            default=json.dumps(node["default"]) if node.get("default") not in (None, "") else None,
            required=name in table.get("required", ()),
            description=node["description"],
        )


def _table_below(node: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the table with fixed keys that *node* is or holds, and how a path goes on to its keys."""
    holders = (
        (node, "."),
        (node.get("items"), "[]."),
        (node.get("additionalProperties"), ".NAME."),
    )
    for candidate, step in holders:
        resolved = _resolved(candidate) if isinstance(candidate, dict) else {}
        if "properties" in resolved:
            return resolved, step
    return None, ""


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    found: dict[str, Any] = json_schema()["$defs"][node["$ref"].rpartition("/")[2]]
    return found


def _kind(node: dict[str, Any]) -> str:
    if "title" in node:
        return str(node["title"])
    if "anyOf" in node:
        return " or ".join(_kind(choice) for choice in node["anyOf"] if choice != _PARAMETER)
    if "enum" in node:
        return ", ".join(node["enum"][:-1]) + f" or {node['enum'][-1]}"
    if node["type"] == "array":
        return f"list of {_kind(node['items'])}"
    if node["type"] == "object":
        return f"table of {_kind(node['additionalProperties'])}"
    return str(node["type"])
