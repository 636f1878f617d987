"""Solvers, policies and constraints of other packages: usable by name, harmless where broken."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from edgeflow_opt.errors import InstanceError, SolverFaultError, UnsupportedError, UsageError
from edgeflow_opt.policies.registry import POLICIES
from edgeflow_opt.problem import EpochProblem, Grid, problem_from_dict, problem_to_dict
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


def _tied(*documents: object) -> EpochProblem:
    """Return the instance of a document with constraints."""
    return problem_from_dict({**problem_to_dict(_problem()), "constraints": list(documents)})


NOT_BOTH = {"type": "not_both", "jobs": ["a", "b"]}


@pytest.mark.parametrize("solver", ["auto", "cpsat", "highs"])
def test_a_constraint_of_another_package_is_kept(solver: str) -> None:
    """A constraint is found by its type in the document, kept and proven, and written again."""
    problem = _tied(NOT_BOTH)
    assert json.loads(json.dumps(problem_to_dict(problem)))["constraints"] == [NOT_BOTH]
    assert solve(_problem(), solver).schedule.met == 2
    result = solve(problem, solver)
    assert (result.status, result.value, result.schedule.met) == ("optimal", 1.0, 1)


def test_engines_that_cannot_keep_it_say_so() -> None:
    """A solver that knows no foreign rows refuses, and the greedy finds no schedule."""
    with pytest.raises(UnsupportedError, match=r"'price' does not support .*'not_both'"):
        solve(_tied(NOT_BOTH), "price")
    assert solve(_tied(NOT_BOTH), "greedy").status == "no_solution"


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"type": "not_here"}, "'not_here'; install the package that brings it"),
        ({"type": "broken_rule"}, "cannot be loaded.*a_library_that_is_not_there.*repair"),
        ({"type": "other_name"}, "whose 'type' is 'other_name'.*repair or remove"),
        ({"type": "wrong_kind"}, "must be a dataclass derived from Constraint"),
        ({"type": "not_both", "jobs": ["a"]}, r"constraints\[0\] \(not_both\), jobs"),
    ],
)
def test_constraints_that_cannot_be_had(document: object, words: str) -> None:
    """A constraint that is missing, broken or wrong is one error of the instance that names it."""
    with pytest.raises(InstanceError, match=words):
        _tied(document)


def test_a_built_in_constraint_cannot_be_taken() -> None:
    """The built-in type wins over a plug-in of the same name."""
    problem = _tied({"type": "group_quota", "gpus": 1})
    assert type(problem.constraints[0]).__module__.startswith("edgeflow_opt.")


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
