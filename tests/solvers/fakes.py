"""Solvers that misbehave on purpose, brought as plug-ins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from edgeflow_opt.solvers import SOLVERS, Capabilities, Draft


class FakeSolver:
    """A solver whose draft is what a function returns.

    Parameters
    ----------
    draft
        Called with (problem, arrays, options, control).
    """

    def __init__(
        self, draft: Callable[..., Draft], *, name: str = "fake", features: frozenset[str] = frozenset(),
        requires: tuple[str, ...] = (), params: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.capabilities = Capabilities(
            summary="fake", exact=True, features=features, requires=requires, params=params or {}
        )
        self._draft = draft

    def solve(self, *args: Any) -> Draft:
        """Return the draft."""
        return self._draft(*args)


class EntryPoint:
    """An entry point as importlib.metadata gives them; load() may raise."""

    def __init__(self, name: str, loaded: object) -> None:
        self.name, self.value, self._loaded = name, f"package_of_{name}:SOLVER", loaded

    def load(self) -> object:
        """Return what is behind the entry point, or raise what it is."""
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded


def plug_in(monkeypatch: pytest.MonkeyPatch, **solvers: object) -> None:
    """Bring `solvers` by name as the plug-ins of the test, and no others."""
    points = [EntryPoint(name, solver) for name, solver in solvers.items()]
    monkeypatch.setattr(SOLVERS, "_found", None)
    monkeypatch.setattr("edgeflow_opt.registry.entry_points", lambda group: points)
