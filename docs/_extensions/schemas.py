"""The file formats as tables, from their JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from markup import code, plain, table

#: A range as wide as this is none worth telling: it keeps numbers within what arithmetic can bear.
_WIDE = 1e12


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a format, as ``edgeflow schema`` prints it."""
    import contextlib
    import io

    from edgeflow_opt.cli.schema import schema

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        schema(name)
    made: dict[str, Any] = json.loads(printed.getvalue())
    return made


def page(name: str) -> str:
    """Return a table for each kind of object of a format, the document itself first."""
    document = schema_of(name)
    definitions = document.get("$defs", {})
    if "$ref" in document:
        first = document["$ref"].rpartition("/")[2]
        order = [first, *(key for key in definitions if key != first)]
        objects = [(key, definitions[key]) for key in order]
    else:
        objects = [("document", document), *_inner(document)]
    return tables(dict(objects))


def tables(objects: Mapping[str, dict[str, Any]]) -> str:
    """Return a table for each kind of object, from its schema by its name."""
    text = ""
    for key, schema in objects.items():
        if "properties" not in schema:
            continue
        text += f"**{plain(_title(key))}.** {plain(schema.get('description', ''))}\n\n"
        required = schema.get("required", [])
        rows = [
            (
                code(field) + ("" if field in required else " (optional)"),
                _type(told),
                plain(_meaning(told)),
                code(json.dumps(told["default"])) if "default" in told else "",
            )
            for field, told in schema["properties"].items()
        ]
        text += table(("key", "type", "meaning", "default"), rows) + "\n"
    return text


def _inner(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(key, told) for key, told in document["properties"].items() if "properties" in told]


def _title(key: str) -> str:
    """Return the words of the name of a structure: ``WireRateCorrected`` is rate corrected."""
    name = key.removeprefix("Wire")
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.strip().capitalize()


def _meaning(told: dict[str, Any]) -> str:
    if "description" in told:
        return str(told["description"])
    inner = [option["description"] for option in told.get("anyOf", []) if "description" in option]
    return "; ".join(inner)


def _type(told: dict[str, Any]) -> str:
    if "$ref" in told:
        return _title(told["$ref"].rpartition("/")[2]).lower()
    if "anyOf" in told:
        return " or ".join(dict.fromkeys(_type(option) for option in told["anyOf"]))
    if "const" in told:
        return code(json.dumps(told["const"]))
    if "enum" in told:
        return ", ".join(code(json.dumps(value)) for value in told["enum"])
    kind = told.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        if "prefixItems" in told:
            return "[" + ", ".join(_type(item) for item in told["prefixItems"]) + "]"
        return f"list of {_type(told.get('items', {}))}"
    if kind == "object" and isinstance(told.get("additionalProperties"), dict):
        return f"object of {_type(told['additionalProperties'])}"
    return str(kind) + _range(told)


def _range(told: dict[str, Any]) -> str:
    least, above, most = told.get("minimum"), told.get("exclusiveMinimum"), told.get("maximum")
    parts = []
    if least is not None and abs(least) < _WIDE:
        parts.append(f"≥ {least:g}")
    if above is not None:
        parts.append(f"> {above:g}")
    if most is not None and abs(most) < _WIDE:
        parts.append(f"≤ {most:g}")
    return f" {', '.join(parts)}" if parts else ""
