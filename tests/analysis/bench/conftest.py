"""A solver that sleeps, brought as a plug-in, so that other processes know it too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeflow_opt.solvers import SOLVERS

SLEEPY = """
import time
import numpy as np
from edgeflow_opt.problem import SolveStatus
from edgeflow_opt.solvers import Capabilities, Draft
from edgeflow_opt.solvers.base import FEATURES

class Sleepy:
    name = "sleepy"
    capabilities = Capabilities(
        summary="sleeps", exact=False, features=frozenset(FEATURES), params={"seconds": "of sleep"}
    )

    def solve(self, problem, arrays, options, control):
        time.sleep(options.params.get("seconds", 0.02))
        plan = np.full((arrays.num_jobs, arrays.num_slots), -1)
        return Draft(status=SolveStatus.FEASIBLE, plan=plan)

SOLVER = Sleepy()
"""


@pytest.fixture
def sleepy(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Install the solver for this process and those that it starts."""
    folder = tmp_path_factory.mktemp("plug_in")
    (folder / "sleepy_solver.py").write_text(SLEEPY)
    info = folder / "sleepy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[edgeflow_opt.solvers]\nsleepy = sleepy_solver:SOLVER\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    paths = [str(folder), str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    SOLVERS.refresh()
    yield
    SOLVERS.refresh()
