"""Fixtures of the tests of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflow_opt.registry import Registry
from edgeflow_opt.solvers import SOLVERS
from tests.cli.helpers import INSTANCE, ScriptedSolver


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as into a pipe: runners of tests side by side set the columns of their terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that puts scripted solvers in the place of the registered ones."""

    def install(*solvers: ScriptedSolver) -> None:
        known = {solver.name: solver for solver in solvers}
        monkeypatch.setattr(SOLVERS, "names", lambda: tuple(known))
        unknown = Registry("solver", "no.such.group", dict.fromkeys(known, "nowhere:nothing"))
        monkeypatch.setattr(SOLVERS, "get", lambda name: known.get(name) or unknown.get(name))

    return install


@pytest.fixture
def instance_file(tmp_path: Path) -> Path:
    """Return a file with the instance."""
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(INSTANCE), encoding="utf-8")
    return path
