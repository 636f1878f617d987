"""From JSON text to wire structures, with all faults reported together.

`msgspec` converts and checks types, but stops at the first error and does not see duplicate keys.
So the text is parsed by the standard library, which shows every pair of a JSON object, and where
the conversion fails the document is walked value by value to gather every fault.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct, UnsetType

from edgeflow_opt.errors import Fault, InputError
from edgeflow_opt.problem.values import shown

S = TypeVar("S", bound=Struct)

#: Faults of one document that are gathered; a document of junk could have millions.
MAX_FAULTS = 10_000

#: Texts longer than this are parsed only if they hold the name that all formats begin with, so that
#: a large file of something else fails before it fills the memory.
SNIFFED_BYTES = 1 << 20
_FORMAT_PREFIX = b"edgeflow-"


def parse_json(data: bytes, source: str, error: type[InputError]) -> Any:
    """Return the value of a JSON text; NaN, infinities and duplicate keys are refused.

    Raises
    ------
    InputError
        Of the given class.
    """
    faults: list[Fault] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) < len(items) and len(faults) < MAX_FAULTS:
            name = result.get("id") or result.get("name")
            owner = f"object {shown(name)}" if isinstance(name, str) else "an object"
            faults.extend(
                Fault(owner, shown(key), "is given more than once", remedy="keep one of them")
                for key, count in Counter(key for key, _ in items).items()
                if count > 1
            )
        return result

    def constant(name: str) -> float:
        if len(faults) < MAX_FAULTS:
            faults.append(
                Fault("document", "", "numbers must be finite", name, "give a number or null")
            )
        return 0.0

    try:
        if len(data) > SNIFFED_BYTES and _FORMAT_PREFIX not in data:
            fault = Fault(
                "document", "format", "is missing",
                remedy="check that the file is of the kind expected here",
            )  # fmt: skip
            raise error((fault,), source)
        value = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=pairs, parse_constant=constant
        )
    except UnicodeDecodeError as problem:
        fault = Fault(
            "document", "", f"is not UTF-8 text (byte {problem.start})", remedy="save it as UTF-8"
        )
    except json.JSONDecodeError as problem:
        fault = Fault(
            "document", "", f"is not JSON ({problem.msg}, line {problem.lineno}, column "
            f"{problem.colno})", remedy="give a JSON document",
        )  # fmt: skip
    except RecursionError:
        fault = _TOO_DEEP
    except InputError:
        raise
    except ValueError as problem:
        # Integers of more than 4300 digits end here.
        fault = Fault("document", "", f"has a number that cannot be read ({problem})")
    else:
        if faults:
            raise error(tuple(faults), source)
        return value
    raise error((fault,), source) from None


_TOO_DEEP = Fault(
    "document", "", "is nested too deeply", remedy="give a JSON document of the format"
)


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
        fault = Fault(
            "document", "", "must be a JSON object", shown(document),
            "check that the file is of the kind expected here",
        )  # fmt: skip
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
        pass
    try:
        document = whole_numbers(document)
        return msgspec.convert(document, wire, strict=True)
    except RecursionError:
        raise error((_TOO_DEEP,), source) from None
    except (msgspec.ValidationError, OverflowError) as first:
        walk = _struct_faults(document, wire, "document")
        faults = tuple(itertools.islice(walk, MAX_FAULTS))
        # The walk and msgspec agree by construction; should they not, the first error stands.
        raise error(faults or (Fault("document", "", str(first)),), source) from None


def convert_part(part: Any, wire: type[S], owner: str) -> S | tuple[Fault, ...]:
    """Return a part of a document as the wire structure `wire`, or every fault of it.

    Parameters
    ----------
    part
        A parsed JSON value.
    wire
        What it must be.
    owner
        What it is called in messages.
    """
    try:
        return msgspec.convert(whole_numbers(part), wire, strict=True)
    except RecursionError:
        return (_TOO_DEEP,)
    except (msgspec.ValidationError, OverflowError) as first:
        faults = tuple(itertools.islice(_struct_faults(part, wire, owner), MAX_FAULTS))
        return faults or (Fault(owner, "", str(first)),)


def whole_numbers(value: Any) -> Any:
    """Return `value` with every float that is whole as an int: in the formats 2.0 is 2."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [whole_numbers(item) for item in value]
    return value


def _struct_faults(value: Any, wire: type[Struct], owner: str) -> Iterator[Fault]:
    """Yield the faults of `value` as a structure, field by field."""
    if not isinstance(value, dict):
        yield Fault(owner, "", "must be a JSON object", shown(value))
        return
    fields = msgspec.structs.fields(wire)
    names = [field.encode_name for field in fields]
    for key in value:
        if key not in names:
            yield Fault(
                owner, shown(key), "is not a known key", remedy=f"known are {', '.join(names)}"
            )
    for field in fields:
        name = field.encode_name
        if name in value:
            yield from value_faults(value[name], field.type, owner, name)
        elif field.required:
            yield Fault(owner, name, "is missing", remedy=f"add the key {name!r}")


def value_faults(value: Any, kind: Any, owner: str, field: str) -> Iterator[Fault]:
    """Yield the faults of one value, those of all the values inside it told apart."""
    try:
        msgspec.convert(value, kind, strict=True)
        return
    except (msgspec.ValidationError, OverflowError) as problem:
        rule = _rule(str(problem), kind)
    kind = _without_null(kind)
    if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, dict):
        yield from _struct_faults(value, kind, _owner_inside(value, owner, field))
        return
    if get_origin(kind) is tuple and isinstance(value, list):
        kinds = get_args(kind)
        if kinds[-1] is Ellipsis:
            kinds = (kinds[0],) * len(value)
        inside = (
            fault
            for index, (item, item_kind) in enumerate(zip(value, kinds, strict=False))
            for fault in value_faults(item, item_kind, owner, f"{field}[{index}]")
        )
        first = next(inside, None)
        if first is not None:
            yield first
            yield from inside
            return
    yield Fault(owner, field, rule, shown(value))


def _owner_inside(item: dict[str, Any], owner: str, field: str) -> str:
    """Return how to name an object: by its id or name where it has one, else by its place."""
    for key in ("id", "name"):
        if isinstance(item.get(key), str):
            return f"{field.split('[')[0].removesuffix('s')} {shown(item[key])}"
    return field if owner == "document" else f"{owner}, {field}"


def _without_null(kind: Any) -> Any:
    """Return the kind itself: without annotations, and without null as an alternative."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif get_origin(kind) in (Union, UnionType):
            rest = [k for k in get_args(kind) if k not in (NoneType, UnsetType)]
            if len(rest) != 1:
                return kind
            kind = rest[0]
        else:
            return kind


_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a JSON object",
    "null": "null",
}


def _rule(message: str, kind: Any) -> str:
    """Return the rule that `msgspec` says is broken, in the words of the format."""
    plain = _without_null(kind)
    if get_origin(plain) is Literal:
        return f"must be one of {', '.join(repr(choice) for choice in get_args(plain))}"
    match = re.match(r"Expected `([^`]+)`(.*?)(?:, got .*)?$", message.split(" - at ")[0])
    if match is None:
        return "must be at most 1e15" if "out of range" in message else message
    names, limit = match.groups()
    words = " or ".join(_WORDS.get(name.strip(), name.strip()) for name in names.split("|"))
    limit = re.sub(r"(?<=1)(0{9,})(\.0)?$", lambda zeros: f"e{len(zeros[1])}", limit)
    return f"must be {words}{limit.removesuffix('.0')}"
