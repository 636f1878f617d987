"""A solver of PuLP behind the common formulations; what it says is not believed unseen.

PuLP calls solves that a time limit stopped optimal (coin-or/pulp#711, #649), leaves values in the
variables although nothing was found (#383), and tells no bound. Here

* a solution counts if its columns are whole and its rows hold, within tolerances; the plan that it
  stands for is checked again by the exact rule before it is taken;
* "optimal" is believed if both of PuLP's statuses say so and the time was not used up; the bound is
  then the objective of that solution. In all other cases there is no bound from PuLP;
* "infeasible" likewise.
"""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.errors import SolverFaultError
from edgeflow_opt.solvers.mip.engine import EngineAnswer
from edgeflow_opt.solvers.mip.rounding import INT_INFINITY, integer_model
from edgeflow_opt.solvers.mip.scaling import scaled_rows
from edgeflow_opt.solvers.pulp.known import make_solver, parameters_of
from edgeflow_opt.solvers.pulp.model import pulp_model, require_pulp
from edgeflow_opt.solvers.pulp.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import FloatArray, IntArray
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.rounding import IntegerModel, Rounding

#: Relative amount by which pessimistic rows are tightened: beyond the tolerances of solvers (1e-6)
#: on rows scaled to 100.
_TIGHTENING = 1e-7

#: How far a column may be from a whole number, and a row from its side.
_WHOLE_TOLERANCE, _ROW_TOLERANCE = 1e-4, 1e-4

#: Solvers that compute in whole numbers, and round what is not: they get a rounded model.
_WHOLE_ONLY = frozenset({"CPSAT"})

#: Share of the time left that a solver is given: writing and reading files takes the rest.
_SHARE = 0.95

#: Share of its limit from which a solver counts as stopped by it, whatever it says.
_USED_UP = 0.98


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a solver claims, after PuLP's two statuses (3.3) or its statistics (4).

    Parameters
    ----------
    optimal, infeasible
        Claimed without any sign of a limit.
    text
        In PuLP's words.
    """

    optimal: bool
    infeasible: bool
    text: str


def verdict_of(pulp: Any, model: Any, outcome: Any) -> Verdict:
    """Return what PuLP says of a solve.

    Parameters
    ----------
    model
        The model that was solved.
    outcome
        What its ``solve`` returned: a status (PuLP 3), or statistics (PuLP 4).
    """
    statistics = getattr(outcome, "status", None)
    if statistics is not None:
        name = getattr(statistics, "name", str(statistics))
        return Verdict(
            optimal=name == "Optimal" and bool(outcome.has_solution),
            infeasible=name == "Infeasible",
            text=name,
        )
    found = model.sol_status
    text = f"{pulp.LpStatus[model.status]}, {pulp.LpSolution[found]}"
    return Verdict(
        optimal=model.status == pulp.LpStatusOptimal and found == pulp.LpSolutionOptimal,
        infeasible=model.status == pulp.LpStatusInfeasible,
        text=text,
    )


class PulpEngine:
    """A solver of PuLP behind the common formulations.

    Parameters
    ----------
    solver
        Its name in PuLP.
    """

    columns_per_second = 20_000.0

    def __init__(self, solver: str) -> None:
        self._solver = solver
        self.bound_slack = 0.0 if solver in _WHOLE_ONLY else 2e-6
        self.name = f"pulp:{solver}"

    def maximise(
        self,
        model: SparseModel,
        *,
        rounding: Rounding,
        hint: FloatArray | None,
        seconds: float,
        options: SolveOptions,
        control: SolveControl,
        on_incumbent: Callable[[FloatArray], None] | None = None,
        on_bound: Callable[[float], None] | None = None,
    ) -> EngineAnswer:
        """See :meth:`edgeflow_opt.solvers.mip.engine.Engine.maximise`."""
        # Solvers differ in which hints they take and what a wrong one does; the incumbent is kept
        # anyway, so none is given.
        pulp = require_pulp(f"solver '{self.name}'")
        begin = time.perf_counter()
        whole = integer_model(model, rounding) if self._solver in _WHOLE_ONLY else None
        if whole is None:
            scaled, objective_scale = scaled_rows(model, rounding, _TIGHTENING), 1.0
        else:
            scaled, objective_scale = _in_whole_numbers(model, whole), whole.objective_scale
        columns = [f"c{number}" for number in range(model.num_columns)]
        rows = [f"r{number}" for number in range(model.num_rows)]
        # Rows without entries are left out: solvers differ in what they make of them.
        filled = np.diff(model.starts) > 0
        if _empty_row_fails(model, filled):
            return EngineAnswer(bound=-math.inf, proven=True, infeasible=True)
        native, variables = pulp_model(
            _only(scaled, filled), columns, rows[: filled.sum()], "edgeflow"
        )
        limit = _SHARE * (seconds - (time.perf_counter() - begin))
        if limit <= 0.0 or control.interrupted:
            return EngineAnswer()
        solver = make_solver(self._solver, self._settings(limit, options))
        programs = Programs(solver)
        failures: list[Exception] = []

        def work() -> Any:
            with programs, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    return native.solve(solver)
                except (pulp.PulpError, OSError) as failure:
                    failures.append(failure)
                    return failure

        begin = time.perf_counter()
        # Those within this process cannot be asked to stop.
        outcome = control.run(work, programs.stop)
        taken = time.perf_counter() - begin
        if outcome is None:
            return EngineAnswer(statistics={"abandoned": f"{self.name} did not stop in time"})
        if failures and "interrupt" not in str(failures[0]).lower():
            if control.stopped or taken > _USED_UP * limit:
                # PuLP fails where a program that was stopped has left no file.
                return EngineAnswer(statistics={"model_status": str(failures[0])})
            raise SolverFaultError(f"{self.name} failed: {failures[0]}") from failures[0]
        verdict = verdict_of(pulp, native, outcome)
        in_time = not control.interrupted and taken <= _USED_UP * limit
        statistics = {"model_status": verdict.text}
        if verdict.infeasible and in_time:
            return EngineAnswer(
                bound=-math.inf, proven=True, infeasible=True, statistics=statistics
            )
        x = _solution(scaled, [variable.varValue for variable in variables])
        proven = verdict.optimal and in_time and x is not None
        bound = math.inf
        if x is not None:
            if proven:
                bound = float(scaled.objective @ x) / objective_scale
            if whole is not None:
                x = x / whole.steps
        return EngineAnswer(x=x, bound=bound, proven=proven, statistics=statistics)

    def _settings(self, limit: float, options: SolveOptions) -> dict[str, Any]:
        """Return the arguments of PuLP's solver, as far as it knows them."""
        wanted: dict[str, Any] = {
            "msg": False,
            "gapRel": 0.0,
            # HiGHS fixes its threads by the first solve of a process, and needs the same always.
            "threads": 1 if self._solver == "HiGHS" else options.workers,
            "randomSeed": options.seed,
        }
        if math.isfinite(limit):
            whole = self._solver.startswith(("GLPK", "PYGLPK", "CHOCO"))
            wanted["timeLimit"] = max(1, int(limit)) if whole else limit
        if options.deterministic and self._solver != "HiGHS":
            wanted["threads"] = 1
        known = parameters_of(self._solver)
        settings = {name: value for name, value in wanted.items() if name in known | {"msg"}}
        if self._solver == "HiGHS":
            settings["random_seed"] = options.seed
        for name, value in options.params.items():
            is_list = name == "options" and isinstance(value, str)
            settings[name] = [part.strip() for part in value.split(";")] if is_list else value
        return settings


def _in_whole_numbers(model: SparseModel, whole: IntegerModel) -> SparseModel:
    """Return the rounded model with its continuous columns counted in steps."""

    def side(values: IntArray) -> FloatArray:
        far = np.abs(values) >= INT_INFINITY
        return np.where(far, np.sign(values) * np.inf, values.astype(np.float64))

    return dataclasses.replace(
        model,
        objective=whole.objective.astype(np.float64),
        col_lower=whole.col_lower.astype(np.float64),
        col_upper=whole.col_upper.astype(np.float64),
        integer=np.ones(model.num_columns, dtype=np.bool_),
        row_lower=side(whole.row_lower),
        row_upper=side(whole.row_upper),
        values=whole.values.astype(np.float64),
    )


def _only(model: SparseModel, rows: Any) -> SparseModel:
    """Return `model` with the given rows only, of which the others have no entries."""
    counts = np.diff(model.starts)[rows]
    return dataclasses.replace(
        model,
        row_lower=model.row_lower[rows],
        row_upper=model.row_upper[rows],
        row_soft=model.row_soft[rows],
        starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def _empty_row_fails(model: SparseModel, filled: Any) -> bool:
    """Whether a row without entries cannot hold."""
    return bool((~filled & ((model.row_lower > 0.0) | (model.row_upper < 0.0))).any())


def _solution(model: SparseModel, values: list[float | None]) -> FloatArray | None:
    """Return the values of the columns, whole where they must be; None where they break a rule."""
    if any(value is None for value in values):
        return None
    x = np.array(values, dtype=np.float64)
    if not np.isfinite(x).all():
        return None
    whole = np.rint(x)
    if (np.abs(x - whole)[model.integer] > _WHOLE_TOLERANCE).any():
        return None
    x = np.clip(np.where(model.integer, whole, x), model.col_lower, model.col_upper)
    activity = model.row_activity(x)
    low = activity < model.row_lower - _ROW_TOLERANCE * np.maximum(1.0, np.abs(model.row_lower))
    high = activity > model.row_upper + _ROW_TOLERANCE * np.maximum(1.0, np.abs(model.row_upper))
    return None if (low | high).any() else x
