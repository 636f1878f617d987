"""Peers on the package's own tight model: CBC, as PuLP ships it, and SCIP, by pyscipopt.

Both read the model from an MPS file. Building, writing and reading it is off their clock where it
can be, which is in their favour. What they find is turned into a schedule and valued by the checker
of the package; their bounds are rounded down to the next attainable value, as those of HiGHS are.
"""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.answers import Answer
from edgeflow_opt.formulations.malleable import build_malleable
from edgeflow_opt.formulations.plans import allocations_of, trim, walk
from edgeflow_opt.problem import Schedule, SolveStatus, check, evaluate
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.bounds import rounded_down

if TYPE_CHECKING:
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import FloatArray

#: Columns beyond which no peer is asked: the file alone would take minutes.
_MOST_COLUMNS = 1_000_000

#: Relative slack on the bound of a solver that works within tolerances, as for HiGHS.
_BOUND_SLACK = 2e-7

#: Seconds beyond its limit after which CBC is ended: its first relaxation knows no limit.
_CBC_GRACE_S = 5.0


class Found(NamedTuple):
    """What a peer found on a model: columns (None = nothing), bound (inf = none), seconds."""

    x: FloatArray | None
    bound: float
    seconds: float


def cbc(problem: EpochProblem, limit_s: float) -> Answer:
    """CBC with two threads; the file is read on its clock."""
    return _answer("pulp", problem, limit_s, _run_cbc)


def scip(problem: EpochProblem, limit_s: float) -> Answer:
    """SCIP with its defaults, on one thread."""
    return _answer("pyscipopt", problem, limit_s, _run_scip)


def _answer(
    package: str,
    problem: EpochProblem,
    limit_s: float,
    run: Callable[[Path, int, float], Found | None],
) -> Answer:
    if importlib.util.find_spec(package) is None:
        return Answer(status="not installed", note="pip install edgeflow-opt[bench]")
    versions = {package: version(package)}
    arrays = arrays_of(problem)
    columns = int(arrays.mode_kept.sum()) * arrays.num_slots
    if columns > _MOST_COLUMNS:
        note = f"a model of about {columns} columns is not given to peers"
        return Answer(status="not tried", note=note, versions=versions)
    begin = time.perf_counter()
    built = build_malleable(arrays)
    model = built.model.with_objective(built.objectives["met"])
    built_s = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mps"
        write_mps(model, path)
        found = run(path, model.num_columns, limit_s)
    if found is None:
        return Answer(status="not installed", note=f"{package} has no solver", versions=versions)
    weights = arrays.weight[arrays.has_deadline]
    bound, value, note = None, None, ""
    if math.isfinite(found.bound):
        bound = rounded_down(found.bound, weights, _BOUND_SLACK)
    if found.x is not None:
        plan = built.decode(found.x)
        plan[~walk(arrays, plan).met] = -1
        allocations = allocations_of(problem, arrays, trim(arrays, plan))
        objective, outcomes = evaluate(problem, allocations)
        schedule = Schedule(
            solver=package,
            status=SolveStatus.FEASIBLE,
            objective=objective,
            allocations=allocations,
            outcomes=outcomes,
        )
        report = check(problem, schedule)
        if report.valid:
            value = objective.level_1
        else:
            note = f"its plan fails the checker: {report.violations[0].message}"
        claimed = float(model.objective @ found.x)
        if value is not None and value < claimed - 1e-6:
            note = f"claims {claimed:g}; by the exact rule it is {value:g}"
    status = "no_solution" if value is None else "feasible"
    if value is not None and bound is not None and bound <= value + 1e-6:
        status = "optimal"
    return Answer(
        status=status,
        value=value,
        bound=bound,
        seconds=found.seconds,
        figures={"build_s": built_s, "num_columns": model.num_columns},
        versions=versions,
        note=note,
    )


def write_mps(model: SparseModel, path: Path) -> None:
    """Write the model as a minimisation, its columns named ``c0``, ``c1``, ... in their order."""
    import highspy

    class QuietHighs(highspy.Highs):
        """Without the banner, which comes before any option can be set."""

        def enableCallbacks(self) -> None:  # noqa: N802
            self.silent()
            super().enableCallbacks()

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = model.num_columns, model.num_rows
    # Readers differ in what they make of the section OBJSENSE: there is none.
    lp.col_cost_ = -model.objective
    lp.col_lower_, lp.col_upper_ = model.col_lower, model.col_upper
    lp.row_lower_, lp.row_upper_ = model.row_lower, model.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = model.num_columns, model.num_rows
    lp.a_matrix_.start_ = model.starts.astype(np.int32)
    lp.a_matrix_.index_ = model.indices.astype(np.int32)
    lp.a_matrix_.value_ = model.values
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(flag)] for flag in model.integer]
    lp.col_names_ = [f"c{column}" for column in range(model.num_columns)]
    lp.row_names_ = [f"r{row}" for row in range(model.num_rows)]
    native = QuietHighs()
    native.passModel(lp)
    if native.writeModel(str(path)) == highspy.HighsStatus.kError:
        raise RuntimeError(f"highspy could not write {path}")


def _run_cbc(path: Path, num_columns: int, limit_s: float) -> Found | None:
    import pulp

    # PuLP 4 no longer ships CBC, but finds one that is installed.
    command = getattr(pulp, "PULP_CBC_CMD", pulp.COIN_CMD)(msg=False)
    if not command.available():
        return None
    solution = path.with_suffix(".sol")
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            [command.path, str(path), "-threads", "2", "-timeMode", "elapsed", "-sec", str(limit_s),
             "-ratioGap", "0", "-solve", "-solution", str(solution), "-quit"],
            capture_output=True, text=True, check=False, timeout=limit_s + _CBC_GRACE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Found(None, math.inf, time.perf_counter() - begin)
    seconds = time.perf_counter() - begin
    x = _read_cbc_solution(solution, num_columns)
    # The summary at the end has a lower bound where the search was stopped.
    bounds = re.findall(r"^Lower bound:\s*(\S+)", done.stdout, re.MULTILINE)
    bound = -float(bounds[-1]) if bounds else math.inf
    if not bounds and "Result - Optimal solution found" in done.stdout:
        bound = -float(re.findall(r"^Objective value:\s*(\S+)", done.stdout, re.MULTILINE)[-1])
    return Found(x, bound, seconds)


def _read_cbc_solution(path: Path, num_columns: int) -> FloatArray | None:
    """Read the columns that are not 0; None where CBC has no whole solution."""
    if not path.exists():
        return None
    head, *lines = path.read_text().splitlines()
    if "no integer solution" in head or head.startswith(("Infeasible", "Integer infeasible")):
        return None
    x = np.zeros(num_columns)
    for line in lines:
        # A line in doubt is marked by two asterisks: the checker will tell.
        parts = line.replace("**", " ").split()
        x[int(parts[1].removeprefix("c"))] = float(parts[2])
    # What a stopped relaxation leaves behind is no solution.
    return np.rint(x) if np.abs(x - np.rint(x)).max(initial=0.0) < 1e-4 else None


def _run_scip(path: Path, num_columns: int, limit_s: float) -> Found:
    from pyscipopt import Model

    model = Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.setParam("limits/time", limit_s)
    model.setParam("limits/gap", 0.0)
    begin = time.perf_counter()
    model.optimize()
    seconds = time.perf_counter() - begin
    x = None
    if model.getNSols() > 0:
        best = model.getBestSol()
        x = np.zeros(num_columns)
        for variable in model.getVars():
            x[int(variable.name.removeprefix("c"))] = round(best[variable])
    bound = -float(model.getDualbound())
    return Found(x, bound if abs(bound) < model.infinity() else math.inf, seconds)
