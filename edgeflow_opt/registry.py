"""Registries of things known by name: built in, or brought by other packages as entry points.

A built-in entry is one line ``name: "module:object"``; nothing is imported before it is asked for,
and a broken plug-in never breaks the import of the package or the use of another one.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import threading
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from edgeflow_opt.errors import UsageError

logger = logging.getLogger(__name__)

#: Held while something is imported late. Python guards each module by itself, and two threads that
#: come upon numba from two sides wait for each other for ever, or see half of a module.
IMPORTING = threading.RLock()


class Registry:
    """Objects by name.

    Parameters
    ----------
    what
        What the objects are, for messages: ``"solver"``, ``"policy"``.
    group
        Group of entry points in which other packages bring theirs.
    built_in
        ``name: "module:object"``.
    """

    def __init__(self, what: str, group: str, built_in: Mapping[str, str]) -> None:
        self._what = what
        self._group = group
        self._built_in = dict(built_in)
        self._found: dict[str, Any] | None = None

    def names(self) -> tuple[str, ...]:
        """Return all names: the built-in ones in their order, then those of plug-ins, sorted."""
        return (*self._built_in, *sorted(self._plug_ins()))

    def get(self, name: str) -> Any:
        """Return the object called `name`.

        ``FAMILY:MEMBER`` is the member of an object that has members (a method ``member``).

        Raises
        ------
        UsageError
            If there is none of that name, or its plug-in cannot be loaded.
        """
        if not isinstance(name, str):
            raise UsageError(
                f"{self._what}: must be a name, got {type(name).__name__}; known are "
                f"{', '.join(self.names())}"
            )
        if name in self._built_in:
            module, _, attribute = self._built_in[name].partition(":")
            with IMPORTING:
                return getattr(importlib.import_module(module), attribute)
        plug_in = self._plug_ins().get(name)
        family, colon, member = name.partition(":")
        if plug_in is None and colon and family in self.names():
            find = getattr(self.get(family), "member", None)
            if find is not None:
                return find(member)
        if plug_in is None:
            close = difflib.get_close_matches(name, self.names(), n=1)
            hint = f"did you mean '{close[0]}'? " if close else ""
            raise UsageError(
                f"{self._what} {name!r} is not known; {hint}known are {', '.join(self.names())}"
            )
        try:
            with IMPORTING:
                return plug_in.load()
        except Exception as problem:
            raise UsageError(
                f"{self._what} {name!r} of plug-in '{plug_in.value}' cannot be loaded "
                f"({type(problem).__name__}: {problem}); repair or remove that package"
            ) from problem

    def refresh(self) -> None:
        """Look for plug-ins anew when next asked; they are otherwise looked for once."""
        self._found = None

    def _plug_ins(self) -> dict[str, Any]:
        if self._found is None:
            self._found = self._look_for_plug_ins()
        return self._found

    def _look_for_plug_ins(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for point in entry_points(group=self._group):
            if point.name in self._built_in or point.name in found:
                logger.warning(
                    "%s '%s' of '%s' is ignored: the name is taken",
                    self._what,
                    point.name,
                    point.value,
                )
                continue
            found[point.name] = point
        return found
