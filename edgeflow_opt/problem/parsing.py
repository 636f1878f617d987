"""From JSON text to wire structures, with all faults reported together.

`msgspec` converts and checks types, but stops at the first error and does not see duplicate keys.
So the text is parsed by the standard library, which shows every pair of a JSON object, and where
the conversion fails the document is walked structure by structure to gather every fault.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct

from edgeflow_opt.errors import Fault, InputError
from edgeflow_opt.problem.validation import shown

S = TypeVar("S", bound=Struct)


class _DuplicateKeyError(ValueError):
    """A JSON object has a key twice."""


def parse_json(data: bytes, source: str, error: type[InputError]) -> Any:
    """Return the value of a JSON text; NaN, infinities and duplicate keys are refused.

    Raises
    ------
    InputError
        Of the given class.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) < len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in keys if keys.count(key) > 1)
            name = result.get("id") or result.get("name")
            owner = f"object {shown(name)}" if isinstance(name, str) else "an object"
            raise _DuplicateKeyError(f"{owner} has the key {twice!r} more than once")
        return result

    def constant(name: str) -> Any:
        raise _DuplicateKeyError(f"numbers must be finite, got {name}")

    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=pairs,
                          parse_constant=constant)  # fmt: skip
    except _DuplicateKeyError as problem:
        fault = Fault("document", "", str(problem), remedy="correct it where it was written")
    except UnicodeDecodeError as problem:
        fault = Fault("document", "", f"is not UTF-8 text (byte {problem.start})")
    except json.JSONDecodeError as problem:
        fault = Fault(
            "document", "", f"is not JSON ({problem.msg}, line {problem.lineno}, column "
            f"{problem.colno})", remedy="give a JSON document",
        )  # fmt: skip
    except RecursionError:
        fault = Fault("document", "", "is not JSON of any use (nested too deeply)")
    except ValueError as problem:
        # Integers of more than 4300 digits end here.
        fault = Fault("document", "", f"has a number that cannot be read ({problem})")
    raise error((fault,), source) from None


def convert_document(
    document: Any, wire: type[S], format_name: str, source: str, error: type[InputError]
) -> S:
    """Return `document` as the wire structure `wire`.

    Raises
    ------
    InputError
        Of the given class, with every fault of types, keys and ranges.
    """
    if not isinstance(document, dict):
        fault = Fault("document", "", "must be a JSON object", shown(document))
        raise error((fault,), source)
    if document.get("format") != format_name:
        fault = Fault(
            "document", "format", f"must be {format_name!r}", shown(document.get("format")),
            "check that the file is of the kind expected here",
        )  # fmt: skip
        raise error((fault,), source)
    try:
        return msgspec.convert(document, wire, strict=True)
    except (msgspec.ValidationError, OverflowError):
        document = _whole_numbers(document)
    try:
        return msgspec.convert(document, wire, strict=True)
    except (msgspec.ValidationError, OverflowError) as first:
        faults = list(_struct_faults(document, wire, "document"))
        # The walk and msgspec agree by construction; should they not, the first error stands.
        raise error(tuple(faults) or (Fault("document", "", str(first)),), source) from None


def _whole_numbers(value: Any) -> Any:
    """Return `value` with every float that is whole as an int: in the formats 2.0 is 2."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_numbers(item) for item in value]
    return value


def _struct_faults(value: Any, wire: type[Struct], owner: str) -> list[Fault]:
    """Return the faults of `value` as a structure, field by field."""
    if not isinstance(value, dict):
        return [Fault(owner, "", "must be a JSON object", shown(value))]
    fields = msgspec.structs.fields(wire)
    names = [field.encode_name for field in fields]
    faults = [
        Fault(owner, shown(key), "is not a known key", remedy=f"known are {', '.join(names)}")
        for key in value
        if key not in names
    ]
    for field in fields:
        name = field.encode_name
        if name not in value:
            if field.required:
                faults.append(Fault(owner, name, "is missing"))
            continue
        faults += _value_faults(value[name], field.type, owner, name)
    return faults


def _value_faults(value: Any, kind: Any, owner: str, field: str) -> list[Fault]:
    """Return the faults of one value: one at the most, but for structures inside it."""
    try:
        msgspec.convert(value, kind, strict=True)
    except (msgspec.ValidationError, OverflowError) as problem:
        inner = _struct_inside(kind)
        if inner is None:
            rule = str(problem).split(" - at ")[0]
            return [Fault(owner, field, rule[:1].lower() + rule[1:], shown(value))]
        if isinstance(value, list):
            faults = []
            for index, item in enumerate(value):
                faults += _struct_faults(item, inner, _owner_of(item, owner, field, index))
            return faults or [Fault(owner, field, str(problem).split(" - at ")[0], shown(value))]
        if isinstance(value, dict):
            return _struct_faults(value, inner, f"{owner}, {field}")
        return [Fault(owner, field, str(problem).split(" - at ")[0], shown(value))]
    return []


def _owner_of(item: Any, owner: str, field: str, index: int) -> str:
    """Return how to name an element of a list: by its id or name where it has one."""
    if isinstance(item, dict):
        for key in ("id", "name"):
            if isinstance(item.get(key), str):
                return f"{field.removesuffix('s')} {shown(item[key])}"
    prefix = "" if owner == "document" else f"{owner}, "
    return f"{prefix}{field}[{index}]"


def _struct_inside(kind: Any) -> type[Struct] | None:
    """Return the structure that `kind` is, or is a list or an alternative of."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind
    for argument in get_args(kind):
        found = _struct_inside(argument)
        if found is not None:
            return found
    return None
