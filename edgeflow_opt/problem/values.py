"""Values as callers give them: put in plain Python, told apart, and shown in messages."""

from __future__ import annotations

import itertools
import reprlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

#: Largest magnitude of any number in an instance.
MAX_MAGNITUDE = 1e15

_PLAIN = frozenset({int, float, str, bool, type(None)})

#: Characters of a value in a message at most.
_SHOWN = 60


def plain(value: Any) -> Any:
    """Return `value` in plain Python: lists and arrays as tuples, numbers of numpy as such of Python.

    What is none of these comes back as it is, for the validation to judge.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (tuple, list)):
        return tuple([item if type(item) in _PLAIN else plain(item) for item in value])
    # Numbers, texts and arrays of numpy, and what is like them.
    to_plain = getattr(value, "tolist", None)
    return plain(to_plain()) if callable(to_plain) and not isinstance(value, type) else value


def as_tuple(parts: Any) -> Any:
    """Return several objects, given in whatever way, as a tuple; what is none of that as it is."""
    if not isinstance(parts, Iterable) or isinstance(parts, (str, bytes, Mapping)):
        return parts
    # An array without dimensions says that it can be walked through, and cannot.
    return parts if getattr(parts, "shape", None) == () else tuple(parts)


def make_plain(part: Any, names: Iterable[str]) -> None:
    """Put the fields of a frozen object in plain Python."""
    for name in names:
        value = getattr(part, name)
        if type(value) not in _PLAIN:
            object.__setattr__(part, name, plain(value))


def is_number(value: object) -> TypeGuard[float]:
    """Whether `value` is a number of Python; true and false are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether `value` is an integer of Python; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite(value: object) -> TypeGuard[float]:
    """Whether `value` is a number that a double can hold."""
    return is_number(value) and abs(value) <= sys.float_info.max


def shown(value: Any) -> str:
    """Return `value` as text short enough for an error message."""
    try:
        text = _SHORT_REPR.repr(value)
    except ValueError:
        # The interpreter refuses to write integers of more than 4300 digits.
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


class _ShortRepr(reprlib.Repr):
    """A `repr` that looks at the beginning of its object only, whatever the size of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 20
        self.maxlevel = 4
        self.maxstring = self.maxlong = self.maxother = 2 * _SHOWN

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        # That of the standard library sorts all keys first.
        pairs = (
            f"{self.repr1(key, level - 1)}: {self.repr1(item, level - 1)}"
            for key, item in itertools.islice(x.items(), self.maxdict if level > 0 else 0)
        )
        return "{" + ", ".join(pairs) + "}"


_SHORT_REPR = _ShortRepr()
