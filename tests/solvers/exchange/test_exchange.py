"""Models out to other solvers and solutions back in, against brute force and CP-SAT."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

import edgeflow_opt as ef
from edgeflow_opt.errors import SolutionError, UsageError
from edgeflow_opt.problem import EpochProblem, Objective, Weights
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.exchange import export, import_solution
from edgeflow_opt.solvers.exchange.export import MODEL_SCHEMA
from edgeflow_opt.solvers.exchange.solution_files import parse_solution
from tests.effort import examples
from tests.oracle import optimum
from tests.solvers.instances import crowded, small
from tests.strategies import problems

FORMULATIONS = ("malleable", "moldable", "plan")


def by_highs(model: Path, solution: Path) -> str:
    """Solve a file with HiGHS, write its solution, and return its status."""
    import highspy

    native = highspy.Highs()
    native.silent()
    native.setOptionValue("threads", 1)
    native.setOptionValue("mip_rel_gap", 0.0)
    native.readModel(str(model))
    native.run()
    native.writeSolution(str(solution), 0)
    return str(native.modelStatusToString(native.getModelStatus()))


def by_cbc(model: Path, solution: Path) -> str:
    """Solve a file with CBC, by its own command, write its solution, and return its status."""
    pulp = pytest.importorskip("pulp")
    command = getattr(pulp, "PULP_CBC_CMD", pulp.COIN_CMD)(msg=False)
    if not command.available():
        pytest.skip("CBC is not installed")
    maximise = ["-max"] if model.suffix == ".lp" else []
    arguments = [*maximise, "-ratioGap", "0", "-solve", "-solution", str(solution), "-quit"]
    subprocess.run([command.path, str(model), *arguments], capture_output=True, check=True)
    return solution.read_text().split(" - ")[0]


def by_scip(model: Path, solution: Path) -> str:
    """Solve a file with SCIP, write its solution, and return its status."""
    scip = pytest.importorskip("pyscipopt").Model()
    scip.hideOutput()
    scip.readProblem(str(model))
    scip.optimize()
    scip.writeBestSol(str(solution))
    return str(scip.getStatus())


def _solved(problem: EpochProblem, folder: Path, by: Callable[[Path, Path], str], form: str,
            **arguments: Any) -> Any:  # fmt: skip
    model, solution = folder / f"model.{form}", folder / "model.sol"
    export(problem, format=form, output=model, **arguments)
    assert by(model, solution).lower() == "optimal"
    return import_solution(problem, solution)


@pytest.mark.parametrize("form", ["mps", "lp"])
@pytest.mark.parametrize("by", [by_highs, by_cbc, by_scip])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_other_solvers_reach_the_optimum(
    tmp_path: Path, by: Callable[[Path, Path], str], form: str, formulation: str
) -> None:
    """Each format of each formulation gives the proven optimum in each solver, checked."""
    problem = small()
    imported = _solved(problem, tmp_path, by, form, formulation=formulation)
    proven = optimum(problem if formulation != "moldable" else problem.as_moldable())
    assert proven is not None
    assert imported.report.valid
    assert imported.schedule.objective.met_weight == proven.value.met_weight
    assert abs(imported.solution.objective or 0.0) == pytest.approx(proven.value.met_weight)


@pytest.mark.parametrize("level", [2, 3, 4, 5])
def test_levels_in_turn_give_the_lexicographic_optimum(tmp_path: Path, level: int) -> None:
    """The model of a later level, with the values of those before, reaches its optimum."""
    problem = small()
    best = optimum(problem)
    assert best is not None
    imported = _solved(problem, tmp_path, by_highs, "mps", level=level, keep=best.value)
    found, wanted = imported.schedule.objective.key(), best.value.key()
    assert found[: level - 1] == pytest.approx(wanted[: level - 1], abs=1e-6)
    assert found[level - 1] == pytest.approx(wanted[level - 1], abs=1e-6)


@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problem=problems(max_jobs=3, max_slots=3, must_meet=False))
def test_random_instances_come_back_as_the_optimum(tmp_path: Path, problem: EpochProblem) -> None:
    """Whatever the rules in play, MPS and plan master give brute force's met weight, checked."""
    best = optimum(problem)
    assert best is not None
    for formulation in ("malleable", "plan"):
        imported = _solved(problem, tmp_path, by_highs, "mps", formulation=formulation)
        assert imported.report.valid
        assert imported.schedule.objective.met_weight == pytest.approx(best.value.met_weight)


def test_an_impossible_must_meet_stays_infeasible(tmp_path: Path) -> None:
    """The model of an instance whose hard deadline cannot be met is infeasible for others too."""
    problem = small()
    jobs = (dataclasses.replace(problem.jobs[0], work=1e6, must_meet=True), *problem.jobs[1:])
    for formulation in FORMULATIONS:
        path = tmp_path / "model.lp"
        export(problem.replace(jobs=jobs), formulation, "lp", output=path)
        assert by_highs(path, tmp_path / "x.sol") == "Infeasible"


def test_the_weighted_sum_is_exported_as_one_level(tmp_path: Path) -> None:
    """Where the objective is a weighted sum, level 1 of the export is that sum."""
    weights = Weights(met=1.0, progress=0.5, cost=0.001)
    problem = small(objective=Objective(mode="weighted", weights=weights))
    imported = _solved(problem, tmp_path, by_highs, "lp")
    best = optimum(problem)
    assert best is not None
    assert imported.schedule.objective.weighted == pytest.approx(best.value.weighted)
    with pytest.raises(UsageError, match="weighted sum, which only level 1"):
        export(problem, level=2, keep={"met": 1.0})


def test_the_protobuf_text_is_a_model_of_cp_sat(tmp_path: Path) -> None:
    """CP-SAT reads the text; its optimum by name is the package's, as a checked schedule."""
    from google.protobuf import text_format
    from ortools.sat import cp_model_pb2
    from ortools.sat.python import cp_model

    problem = small()
    text = export(problem, format="cpsat")
    proto = text_format.Parse(text, cp_model_pb2.CpModelProto())
    native = cp_model.CpModel()
    native.proto.parse_text_format(text)
    solver = cp_model.CpSolver()
    assert solver.solve(native) == cp_model.OPTIMAL
    names = [variable.name for variable in proto.variables]
    values = dict(zip(names, solver.response_proto.solution, strict=True))
    imported = import_solution(problem, values)
    assert imported.report.valid
    assert imported.schedule.met == 2


def test_json_obeys_its_schema() -> None:
    """The JSON document obeys the published schema, and its arrays have the sizes it says."""
    document = json.loads(export(small(), format="json", level=2, keep={"met": 2}))
    jsonschema.validate(document, MODEL_SCHEMA)
    assert len(document["matrix"]["starts"]) == len(document["rows"]["name"]) + 1
    assert document["matrix"]["starts"][-1] == len(document["matrix"]["values"])
    assert document["objective"] == "progress"


def test_a_plan_master_of_many_plans_has_those_of_column_generation(tmp_path: Path) -> None:
    """Where plans cannot be enumerated, the master of the plans generated gives a schedule near by.

    It says that it is not exact, and its relaxation bounds the optimum.
    """
    import highspy

    problem = crowded(12, 12)
    document = json.loads(export(problem, "plan", "json"))
    assert document["exact"] is False
    imported = _solved(problem, tmp_path, by_highs, "mps", formulation="plan")
    assert imported.report.valid
    native = highspy.Highs()
    native.silent()
    native.setOptionValue("threads", 1)
    native.setOptionValue("solve_relaxation", True)
    native.readModel(str(tmp_path / "model.mps"))
    native.run()
    relaxed = -native.getObjectiveValue()
    best = solve(problem, "auto", levels=1, time_limit_s=2.0).value
    assert best is not None
    assert relaxed >= best - 1e-6
    assert imported.schedule.objective.met_weight >= 0.9 * best


def test_unknown_formats_are_refused() -> None:
    """A format that does not exist is a usage error that lists those that do."""
    with pytest.raises(UsageError, match="format 'xls' is not known; known are mps, lp"):
        export(small(), format="xls")
    with pytest.raises(UsageError, match="rounding: must be pessimistic or optimistic"):
        export(small(), format="cpsat", rounding="up")  # type: ignore[arg-type]


RUNS = "z(j0) {0}\nx(j0,cloud,1,0) {0}\nx(j0,cloud,1,1) {0}\n"
FILES = {
    "plain": RUNS.format("1"),
    "gurobi": "# Solution for model m\n# Objective value = 1\n" + RUNS.format("0.9999999"),
    "highs": "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n"
    "# Columns 3\n" + RUNS.format("1.0000001") + "# Rows 1\nwork(j0) 0\n",
    "cbc": "Optimal - objective value -1.00000000\n      0 z(j0)  1  0\n"
    "**    1 x(j0,cloud,1,0)   1   0\n      2 x(j0,cloud,1,1)  0.99999999  0\n",
    "scip": "solution status: optimal solution found\nobjective value:      -1\n"
    "z(j0)     1 \t(obj:-1)\nx(j0,cloud,1,0)   1 \t(obj:0)\nx(j0,cloud,1,1)  1 \t(obj:0)\n",
    "json": '{"objective": 1, "values": {"z(j0)": 1, "x(j0,cloud,1,0)": 1, "x(j0,cloud,1,1)": 1}}',
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_is_read(name: str) -> None:
    """Each kind of solution file is known by its content and gives the same schedule."""
    found = parse_solution(FILES[name].encode())
    assert found.format == name
    imported = import_solution(small(), found)
    assert imported.report.valid
    assert [(a.job, a.start, a.end) for a in imported.schedule.allocations] == [("j0", 0.0, 20.0)]
    assert imported.schedule.bound is None
    assert imported.schedule.status == "feasible"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("x(j0,cloud,1,0)\n", "line 1: must be 'name value', got 'x(j0,cloud,1,0)'"),
        ("x(j0,cloud,1,0) one\n", "must be a finite number, got one"),
        ("x(j0,cloud,1,0) 1\nx(j0,cloud,1,0) 0\n", "is given twice"),
        ("x(j9,cloud,1,0) 1\n", "column 'x(j9,cloud,1,0)': is not of a model of this instance"),
        ("x(j0,cloud,1,0) 0.5\n", "must be 0 or 1, got 0.5; solve the model with its columns"),
        ("x(j0,cloud,1,0) 1\nx(j0,cloud,2,0) 1\n", "job 'j0', slot 0: must hold one mode at most"),
        ("plan(j0,999) 1\n", "column 'plan(j0,999)': is not of a model"),
        ("Infeasible - objective value 0\n", "has no solution"),
        ("Stopped on time (no integer solution - continuous used) - objective value 3\n",
         "no whole solution"),
        ("Model status\nInfeasible\n\n# Primal solution values\nNone\n# Columns 0\n",
         "has no primal solution"),
        ("Columns\n    Index Status        Lower        Upper       Primal         Dual  Type  Name\n",
         "let HiGHS write the raw style"),
        ("solution status: infeasible\nno solution available\n", "has no solution"),
        ('{"x(j0,cloud,1,0)": true}', "must be a finite number"),
        ("[1]", "must be an object of names and values"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_clearly(text: str, message: str) -> None:
    """A file without a solution, or one of another instance, says what is wrong and where."""
    with pytest.raises(SolutionError, match=re.escape(message)):
        import_solution(small(), parse_solution(text.encode()))


def test_a_schedule_over_capacity_is_reported() -> None:
    """What a solver with a wrong model returns is read, and found invalid by the checker."""
    values = {f"x(j{job},cloud,1,0)": 1 for job in range(3)}
    imported = import_solution(small(), values)
    assert not imported.report.valid
    assert imported.report.violations[0].kind == "capacity"


def test_the_face_of_the_package_has_both_ways() -> None:
    """``edgeflow_opt.export`` and ``import_solution`` are public names."""
    assert ef.export(small(), format="lp").startswith("\\ edgeflow-opt")
    assert ef.import_solution(small(), {}).schedule.met == 0
