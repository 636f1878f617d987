"""CP-SAT: the constraint solver of OR-Tools, on whole numbers.

The model is rounded twice (:mod:`edgeflow_opt.solvers.mip.rounding`): optimistically for bounds,
pessimistically for schedules; ``optimal`` is said only where both meet.
"""

from __future__ import annotations

import importlib
import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.errors import SolverFaultError, UsageError
from edgeflow_opt.problem.values import shown
from edgeflow_opt.solvers.mip.engine import EngineAnswer
from edgeflow_opt.solvers.mip.rounding import INT_INFINITY, integer_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import FloatArray
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.rounding import IntegerModel, Rounding

#: Whether the library has been imported; while it is, another import of it would wait.
_loaded = threading.Event()

#: Deterministic seconds granted per second of the time limit in deterministic mode.
_DETERMINISTIC_RATE = 0.5


class CpSatEngine:
    """CP-SAT behind the common formulations."""

    name = "cpsat"
    bound_slack = 0.0
    columns_per_second = 100_000.0

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
        # Loading the library takes half a second of its own, and seconds on a busy machine.
        if not _loaded.is_set() and control.run(_load, lambda: None) is None:
            return EngineAnswer(statistics={"abandoned": "cpsat could not be loaded in time"})
        from ortools.sat.python import cp_model

        whole = integer_model(model, rounding, hint)
        native = native_model(model, whole)
        solver = cp_model.CpSolver()
        _set_parameters(solver.parameters, seconds, options)
        scale = whole.objective_scale
        callback = None
        if on_incumbent is not None:
            callback = _make_callback(on_incumbent, whole)
        # A search that has hardly begun reports a bound of 0: only bounds that it announces count.
        announced = [math.inf]

        def take_bound(bound: float) -> None:
            announced.append(bound)
            if on_bound is not None:
                on_bound(bound / scale)

        solver.best_bound_callback = take_bound
        if control.interrupted:
            return EngineAnswer()
        status = control.run(lambda: solver.solve(native, callback), solver.stop_search)
        if status is None:
            return EngineAnswer(statistics={"abandoned": "cpsat did not stop in time"})
        statistics = {
            "branches": solver.num_branches,
            "conflicts": solver.num_conflicts,
            "deterministic_time": solver.response_proto.deterministic_time,
        }
        if status == cp_model.MODEL_INVALID:
            raise SolverFaultError(f"cpsat refuses the model as invalid: {native.validate()}")
        if status == cp_model.INFEASIBLE:
            return EngineAnswer(
                bound=-math.inf, proven=True, infeasible=True, statistics=statistics
            )
        best_bound = min(announced)
        if status == cp_model.OPTIMAL and not control.stopped:
            best_bound = min(best_bound, solver.best_objective_bound)
        x = None
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            x = np.array(solver.response_proto.solution, dtype=np.float64) / whole.steps
        # An early stop has been reported as OPTIMAL: only a bound that is reached is believed.
        proven = False
        if x is not None:
            reached = int(np.dot(whole.objective, np.rint(x * whole.steps).astype(np.int64)))
            proven = best_bound <= reached + 0.5
        return EngineAnswer(x=x, bound=best_bound / scale, proven=proven, statistics=statistics)


def _load() -> bool:
    importlib.import_module("ortools.sat.python.cp_model")
    _loaded.set()
    return True


def refuse_wrong_parameters(options: SolveOptions) -> None:
    """Refuse what CP-SAT does not take, before it is known whether it will be asked.

    Raises
    ------
    UsageError
        With the parameter and its value.
    """
    if options.params.keys() - {"prices"}:
        from ortools.sat.python import cp_model

        _set_parameters(cp_model.CpSolver().parameters, math.inf, options)


def native_model(model: SparseModel, whole: IntegerModel) -> Any:
    """Return the model as CP-SAT takes it, filled in directly: fast for large models."""
    from ortools.sat.python import cp_model

    native = cp_model.CpModel()
    proto = native.proto
    for low, high in zip(whole.col_lower.tolist(), whole.col_upper.tolist(), strict=True):
        proto.variables.add().domain.extend((low, high))
    indices, values = model.indices.tolist(), whole.values.tolist()
    starts = model.starts.tolist()
    lower, upper = whole.row_lower.tolist(), whole.row_upper.tolist()
    for row in range(model.num_rows):
        begin, end = starts[row], starts[row + 1]
        linear = proto.constraints.add().linear
        linear.vars.extend(indices[begin:end])
        linear.coeffs.extend(values[begin:end])
        linear.domain.extend((max(lower[row], -INT_INFINITY), min(upper[row], INT_INFINITY)))
    # CP-SAT minimises: the objective goes in negated, with a scale that turns it back.
    used = np.nonzero(whole.objective)[0]
    proto.objective.vars.extend(used.tolist())
    proto.objective.coeffs.extend((-whole.objective[used]).tolist())
    proto.objective.scaling_factor = -1.0
    if whole.hint is not None:
        proto.solution_hint.vars.extend(range(model.num_columns))
        proto.solution_hint.values.extend(whole.hint.tolist())
    return native


def _set_parameters(parameters: Any, seconds: float, options: SolveOptions) -> None:
    # The default SIGINT handler swallows Ctrl-C and leaves the process without one.
    parameters.catch_sigint_signal = False
    parameters.random_seed = options.seed
    parameters.linearization_level = 2
    parameters.num_workers = 1 if options.deterministic else options.workers
    if parameters.num_workers == 2:
        # With two workers, the default pair has no linear relaxation and never gets a bound.
        parameters.subsolvers.extend(["max_lp", "reduced_costs"])
    if math.isfinite(seconds):
        if options.deterministic:
            # A share of the clock would end it sooner or later by the speed of the machine; the
            # limit of the whole solve stands, as the control asks it to stop then.
            parameters.max_deterministic_time = seconds * _DETERMINISTIC_RATE
        else:
            parameters.max_time_in_seconds = seconds
    for name, value in options.params.items():
        if name == "prices":
            continue
        try:
            setattr(parameters, name, value)
        except (TypeError, ValueError, AttributeError) as problem:
            raise UsageError(
                f"parameter {name!r} of solver 'cpsat': cannot be {shown(value)}"
            ) from problem


def _make_callback(on_incumbent: Callable[[FloatArray], None], whole: IntegerModel) -> Any:
    from ortools.sat.python import cp_model

    class Callback(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            solution = np.array(self.response_proto.solution, dtype=np.float64)
            on_incumbent(solution / whole.steps)

    return Callback()
