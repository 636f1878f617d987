"""What a MILP engine is asked, and what it answers: one model, one objective."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem.arrays import FloatArray
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.rounding import Rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswer:
    """What an engine found out about one model.

    Parameters
    ----------
    x
        (N,) the best solution; None = none found.
    bound
        Proven upper bound on the objective of the model as rounded; +inf = none.
    proven
        Whether x is optimal within the engine's model, or the model is infeasible.
    infeasible
        Whether the model, as rounded, has no solution.
    statistics
        Numbers for people.
    """

    x: FloatArray | None = None
    bound: float = float("inf")
    proven: bool = False
    infeasible: bool = False
    statistics: dict[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """A MILP solver behind the common formulations."""

    @property
    def name(self) -> str:
        """Name, as in the trace of a solve."""
        ...

    @property
    def bound_slack(self) -> float:
        """Relative error of its bounds: 0 where it computes in whole numbers."""
        ...

    @property
    def columns_per_second(self) -> float:
        """Columns that it takes in a second: larger models are left alone in short solves."""
        ...

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
        """Maximise the objective of `model` for at most `seconds`.

        Parameters
        ----------
        hint
            (N,) a solution to begin from, feasible up to rounding.
        on_incumbent, on_bound
            Called with solutions and bounds while the engine runs, in its thread.
        """
        ...
