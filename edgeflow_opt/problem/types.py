"""What in an object is of another type than its class says.

Data classes of results do not look at the types of their fields: the package makes most of them, and
to look at all of them each time would cost more than the checker. So an object is used as it is, and
where that fails :func:`explained` walks through it and tells which of its fields is to blame.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from edgeflow_opt.errors import EdgeflowError, Fault, InputError, UsageError
from edgeflow_opt.problem.values import is_number, is_whole, shown

#: Largest magnitude of any number in a document.
_MOST = 1e300


@contextmanager
def explained(error: type[InputError], *parts: tuple[str, Any, Any]) -> Iterator[None]:
    """Turn what an object of wrong types brings about into one error that names the field.

    Parameters
    ----------
    error
        What is raised then, with all faults; the first exception is its cause.
    parts
        (name, object, its type) of what is used inside.
    """
    try:
        yield
    except EdgeflowError:
        raise
    except Exception as problem:
        faults = tuple(f for name, value, kind in parts for f in type_faults(value, kind, name))
        if not faults:
            raise
        raise error(faults) from problem


def expect(owner: str, value: Any, kind: type, remedy: str) -> None:
    """Refuse an argument of the wrong class.

    Raises
    ------
    UsageError
        With its name, the class, its own class and the way out.
    """
    if not isinstance(value, kind):
        name = kind.__name__
        if kind.__module__ not in ("builtins", "numpy") and not kind.__module__.startswith(
            "edgeflow"
        ):
            name = f"{kind.__module__}.{name}"
        article = "an" if name[0] in "AEIOUaeiou" else "a"
        raise UsageError(f"{owner}: must be {article} {name}, got {type(value).__name__}; {remedy}")


def type_faults(
    value: Any, kind: Any, owner: str, field: str = "", *, finite: bool = True
) -> Iterator[Fault]:
    """Yield what in `value` is not of the type `kind`, an annotation, one fault for each place.

    Parameters
    ----------
    value, kind
        Any object, and what it should be.
    owner, field
        How to name it.
    finite
        Whether numbers have to be finite and of magnitude at most 1e300.
    """
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        kinds = get_args(kind)
        if value is None and NoneType in kinds:
            return
        rest = [k for k in kinds if k is not NoneType]
        single = rest[0] if len(rest) == 1 else tuple(rest)
        yield from type_faults(value, single, owner, field, finite=finite)
    elif origin is tuple:
        yield from _sequence_faults(value, get_args(kind), owner, field, finite)
    elif dataclasses.is_dataclass(kind) and isinstance(value, typing.cast(type, kind)):
        for name, of_field in _kinds(typing.cast(type, kind)).items():
            where = f"{field}.{name}" if field else name
            yield from type_faults(getattr(value, name), of_field, owner, where, finite=finite)
    elif kind in (int, float):
        yield from _number_faults(value, kind, owner, field, finite)
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        # Its members are texts, and a plain text is as good.
        if not isinstance(value, str) or value not in list(kind):
            yield Fault(owner, field, f"must be one of {', '.join(kind)}", shown(value))
    elif isinstance(kind, type) and not isinstance(value, kind):
        rule = {str: "must be a text", bool: "must be true or false"}.get(kind)
        yield Fault(owner, field, rule or f"must be a {kind.__name__}", shown(value))


@cache
def _kinds(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a data class."""
    hints = typing.get_type_hints(kind)
    return {part.name: hints[part.name] for part in dataclasses.fields(kind)}


def _number_faults(value: Any, kind: type, owner: str, field: str, finite: bool) -> Iterator[Fault]:
    # As in documents 2.0 is 2.
    whole = is_whole(value) or (isinstance(value, float) and value.is_integer())
    if not (whole if kind is int else is_number(value)):
        rule = "must be a whole number" if kind is int else "must be a number"
        remedy = ""
        if hasattr(value, "tolist"):
            remedy = "of a number of numpy give .item(), which is one of Python"
        yield Fault(owner, field, rule, shown(value), remedy)
    elif finite and not abs(value) <= _MOST:
        yield Fault(
            owner, field, "must be a finite number of magnitude at most 1e300", shown(value)
        )


def _sequence_faults(
    value: Any, kinds: Any, owner: str, field: str, finite: bool
) -> Iterator[Fault]:
    if not isinstance(value, (tuple, list)):
        yield Fault(owner, field, "must be a tuple", shown(value))
        return
    if kinds[-1:] != (...,) and len(kinds) > 1:
        if len(value) != len(kinds):
            yield Fault(owner, field, f"must have {len(kinds)} items", shown(value))
            return
        each = list(kinds)
    else:
        each = [kinds[0]] * len(value)
    for index, (item, kind) in enumerate(zip(value, each, strict=True)):
        yield from type_faults(item, kind, owner, f"{field}[{index}]", finite=finite)
