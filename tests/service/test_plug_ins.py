"""Solvers and policies of other packages: usable by name, and no harm where they are broken."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflow_opt.errors import SolverFaultError, UsageError
from edgeflow_opt.policies.registry import POLICIES
from edgeflow_opt.problem import EpochProblem, Grid
from edgeflow_opt.solvers import SOLVERS, solve
from tests.service.clusters import job, sites

pytestmark = pytest.mark.usefixtures("plug_in")


def _problem() -> EpochProblem:
    return EpochProblem(grid=Grid.uniform(0.0, 60.0, 6), sites=sites(), jobs=(job("a"), job("b")))


def test_a_solver_of_another_package_is_used_by_name() -> None:
    """An entry point is a solver like any other, and its result is checked."""
    result = solve(_problem(), "idle")
    assert result.status == "feasible"
    assert result.schedule.allocations == ()


def test_a_policy_of_another_package_is_used_by_name() -> None:
    """An entry point is a policy like any other."""
    assert "nothing" in POLICIES.names()
    assert POLICIES.get("nothing").__name__ == "Nothing"


@pytest.mark.parametrize(
    ("name", "why"),
    [("broken", "a_library_that_is_not_there"), ("missing", "NOT_THERE")],
)
def test_a_broken_plug_in_is_told_by_name(name: str, why: str) -> None:
    """A plug-in that cannot be loaded is one clear error that names it, and only when asked for."""
    assert name in SOLVERS.names()
    with pytest.raises(UsageError, match=f"{name}.*cannot be loaded.*{why}.*repair or remove"):
        SOLVERS.get(name)


def test_others_do_not_suffer() -> None:
    """Beside broken plug-ins all other solvers work."""
    assert solve(_problem(), "greedy").schedule.met == 2


def test_a_built_in_name_cannot_be_taken(caplog: pytest.LogCaptureFixture) -> None:
    """A plug-in of the name of a built-in solver is ignored, with a warning."""
    SOLVERS.refresh()
    with caplog.at_level(logging.WARNING, "edgeflow_opt"):
        names = SOLVERS.names()
    assert names.count("greedy") == 1
    assert "'greedy' of 'edgeflow_else.solvers:IDLE' is ignored" in caplog.text
    assert type(SOLVERS.get("greedy")).__module__.startswith("edgeflow_opt.")


def test_a_plug_in_that_raises_is_a_fault_of_that_solver() -> None:
    """An exception of a plug-in comes out as a SolverFaultError that names the solver."""
    with pytest.raises(SolverFaultError, match="solver 'failing' failed with RuntimeError"):
        solve(_problem(), "failing")


def test_import_and_listing_survive_in_a_fresh_process(plug_in_folder: Path) -> None:
    """With the package on the path, import is silent and the command line lists all solvers."""
    script = (
        f"import sys; sys.path.insert(0, {str(plug_in_folder)!r})\n"
        "import edgeflow_opt\nfrom edgeflow_opt.cli import main\n"
        "assert 'edgeflow_else' not in sys.modules\n"
        "sys.argv = ['edgeflow', 'solvers', '--json']\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert '"idle"' in done.stdout
    assert "Traceback" not in done.stderr
