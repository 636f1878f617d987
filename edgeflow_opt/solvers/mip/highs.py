"""HiGHS: the open MILP solver, on the same arrays as CP-SAT, in floating point.

HiGHS obeys rows within a tolerance. Real rows are therefore scaled so that the tolerance is far
below that of the work, and in pessimistic models they are tightened by more than it. Its bounds are
given a slack before they are rounded down.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.errors import SolverFaultError, UsageError
from edgeflow_opt.solvers.mip.engine import EngineAnswer
from edgeflow_opt.solvers.mip.scaling import scaled_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import FloatArray
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.rounding import Rounding

#: Feasibility tolerance given to HiGHS: relative to a scaled row 1e-9.
_TOLERANCE = 1e-7

#: Relative amount by which pessimistic rows are tightened: ten times the tolerance on the row.
_TIGHTENING = 1e-8


class HighsEngine:
    """HiGHS behind the common formulations."""

    name = "highs"
    bound_slack = 2e-7
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
        import highspy

        native = quiet_highs()
        _set_options(native, seconds, options)
        status = native.passModel(_native_model(model, rounding))
        if status == highspy.HighsStatus.kError:
            raise SolverFaultError("highs refuses the model as invalid")
        # The hint is not passed on: with a start solution and presolve, HiGHS 1.16 has been seen to
        # stop at once with status optimal and a dual bound far off. The incumbent is kept anyway.
        native.HandleUserInterrupt = True
        failures: list[BaseException] = []

        def subscribe(event: Any, take: Callable[[Any], None]) -> None:
            """Call `take` at `event`; HiGHS would swallow what it raises, and give up."""

            def guarded(message: Any) -> None:
                try:
                    take(message.data_out)
                except BaseException as failure:
                    failures.append(failure)
                    native.cancelSolve()

            event.subscribe(guarded)

        if on_incumbent is not None:
            subscribe(
                native.cbMipImprovingSolution,
                lambda found: on_incumbent(np.array(found.mip_solution)),
            )
        if on_bound is not None:
            # Some twenty times a second; the log, which would tell bounds too, is silent.
            subscribe(native.cbMipInterrupt, lambda found: on_bound(found.mip_dual_bound))
        if control.interrupted:
            return EngineAnswer()
        if control.run(native.run, native.cancelSolve) is None:
            return EngineAnswer(statistics={"abandoned": "highs did not stop in time"})
        if failures:
            raise failures[0]
        return _answer(native, model)


def quiet_highs() -> Any:
    """Return a HiGHS that prints nothing: its banner comes with the callbacks, before any option."""
    import highspy

    class QuietHighs(highspy.Highs):
        def enableCallbacks(self) -> None:  # noqa: N802
            self.silent()
            super().enableCallbacks()

    return QuietHighs()


def _native_model(model: SparseModel, rounding: Rounding) -> Any:
    import highspy

    scaled = scaled_rows(model, rounding, _TIGHTENING)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = model.num_columns, model.num_rows
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = model.objective
    lp.col_lower_, lp.col_upper_ = model.col_lower, model.col_upper
    lp.row_lower_, lp.row_upper_ = scaled.row_lower, scaled.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = model.num_columns, model.num_rows
    lp.a_matrix_.start_ = model.starts.astype(np.int32)
    lp.a_matrix_.index_ = model.indices.astype(np.int32)
    lp.a_matrix_.value_ = scaled.values
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(flag)] for flag in model.integer]
    return lp


def _set_options(native: Any, seconds: float, options: SolveOptions) -> None:
    settings: dict[str, Any] = {
        "output_flag": False,
        # More threads spin in presolve on a busy host, and the first solve of a process fixes them.
        "threads": 1,
        "random_seed": options.seed,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-7,
        "mip_feasibility_tolerance": _TOLERANCE,
        "primal_feasibility_tolerance": _TOLERANCE,
        **{name: value for name, value in options.params.items() if name != "prices"},
    }
    if math.isfinite(seconds):
        settings["time_limit"] = seconds
    import highspy

    for name, value in settings.items():
        if native.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise UsageError(f"parameter {name!r} of solver 'highs': cannot be {value!r}")


def refuse_wrong_parameters(options: SolveOptions) -> None:
    """Refuse what HiGHS does not take, before it is known whether it will be asked.

    Raises
    ------
    UsageError
        With the parameter and its value.
    """
    if options.params.keys() - {"prices"}:
        _set_options(quiet_highs(), math.inf, options)


def _answer(native: Any, model: SparseModel) -> EngineAnswer:
    """Read the answer; the status alone is never believed."""
    import highspy

    status = native.getModelStatus()
    info = native.getInfo()
    statistics = {
        "nodes": max(0, int(info.mip_node_count)),
        "simplex_iterations": max(0, int(info.simplex_iteration_count)),
        "model_status": native.modelStatusToString(status),
    }
    if status == highspy.HighsModelStatus.kNotset:
        raise SolverFaultError("highs did not run: its thread count was fixed by an earlier solve")
    if status == highspy.HighsModelStatus.kInfeasible:
        return EngineAnswer(bound=-math.inf, proven=True, infeasible=True, statistics=statistics)
    if not info.valid:
        # After an error the numbers of HiGHS are all 0, the bound too.
        return EngineAnswer(statistics=statistics)
    bound = float(info.mip_dual_bound)
    x = None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        x = np.clip(np.array(native.getSolution().col_value), model.col_lower, model.col_upper)
        x = np.where(model.integer, np.rint(x), x)
    proven = status == highspy.HighsModelStatus.kOptimal
    if not math.isfinite(bound):
        bound = float("inf")
    return EngineAnswer(x=x, bound=bound, proven=proven, statistics=statistics)
