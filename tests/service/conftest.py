"""What tests of the service share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeflow_opt.policies.registry import POLICIES
from edgeflow_opt.problem import CONSTRAINTS
from edgeflow_opt.solvers import SOLVERS
from tests.service.plug_in import install_plug_in


@pytest.fixture(scope="session")
def plug_in_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the package of somebody else is installed."""
    folder = tmp_path_factory.mktemp("else")
    install_plug_in(folder)
    return folder


@pytest.fixture
def plug_in(plug_in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put that folder on the path of this process and of those that it starts."""
    monkeypatch.syspath_prepend(str(plug_in_folder))
    SOLVERS.refresh()
    POLICIES.refresh()
    CONSTRAINTS.refresh()
    yield plug_in_folder
    for name in [name for name in sys.modules if name.split(".")[0] == "edgeflow_else"]:
        del sys.modules[name]
    monkeypatch.undo()
    SOLVERS.refresh()
    POLICIES.refresh()
    CONSTRAINTS.refresh()
