"""What is claimed of a problem from what an engine says of a model."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from edgeflow_opt import solve
from edgeflow_opt.formulations.malleable import build_malleable
from edgeflow_opt.formulations.objectives import LEVELS, Level
from edgeflow_opt.formulations.plans import plan_of
from edgeflow_opt.problem import EpochProblem
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import price
from edgeflow_opt.solvers.base import Draft, SolveOptions
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
from edgeflow_opt.solvers.mip.engine import Engine, EngineAnswer
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.workloads import generate_problem
from tests.solvers.instances import small


class Scripted:
    """An engine that finds nothing and claims what it is told to.

    Parameters
    ----------
    bound
        The bound that it claims to have proven for every model.
    slack
        Relative error of its bounds.
    """

    name = "scripted"
    columns_per_second = 1e9

    def __init__(self, bound: float, slack: float = 0.0) -> None:
        self.bound, self.bound_slack = bound, slack

    def maximise(self, model: Any, **_: Any) -> EngineAnswer:
        """Return the bound."""
        return EngineAnswer(bound=self.bound, proven=True)


def _work(problem: EpochProblem, engine: Engine) -> LevelSolve:
    return LevelSolve(problem, arrays_of(problem), SolveOptions(), SolveControl(30.0), engine)


@pytest.mark.parametrize(
    ("bound", "slack", "claimed"),
    [(3.0, 0.0, 3.0), (3.9, 0.0, 3.0), (2.9999995, 0.0, 2.0), (2.9999995, 1e-6, 3.0)],
)
def test_a_bound_is_rounded_down_with_the_slack_of_its_engine(
    bound: float, slack: float, claimed: float
) -> None:
    """What an engine of floating point puts just below a whole number is no less than that."""
    work = _work(small(), Scripted(bound, slack))
    work.first_level()
    assert work.bound == claimed


@pytest.mark.parametrize(("bound", "optimal"), [(math.inf, False), (-1e9, True)])
def test_a_level_is_proven_where_the_plan_reaches_what_is_proven(
    bound: float, optimal: bool
) -> None:
    """That the engine has proven its own best is no proof for a plan that falls short of it."""
    work = _work(small(), Scripted(bound))
    work.offer_starts()
    work.levels_below()
    levels = {report.level: report.optimal for report in work.draft().levels}
    assert levels["progress"] is optimal
    assert levels["cost"] is optimal


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_next_better_value_is_not_cut_off(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a plan with one job less than can be met, with jobs fixed by prices, that one is found."""
    problem = generate_problem(10, 8, seed, load=1.6)
    best = solve(problem, "auto", levels=1, time_limit_s=20.0)
    assert best.gap == 0.0
    assert best.value is not None
    arrays = arrays_of(problem)
    plan = plan_of(problem, arrays, best.schedule)
    plan[np.flatnonzero([outcome.met is True for outcome in best.schedule.outcomes])[0]] = -1
    honest = price.SOLVER

    class Silent:
        """The price engine, of whose findings only the prices are told."""

        def solve(self, *given: Any) -> Draft:
            return dataclasses.replace(honest.solve(*given), plan=None, bound=None)

    monkeypatch.setattr(price, "SOLVER", Silent())
    work = _work(problem, HighsEngine())
    work.incumbent.offer(plan, "by hand")
    assert work.incumbent.level_1 == best.value - 1.0
    work.use_prices(5.0)
    work.first_level()
    assert work.statistics["fixed_jobs"] >= 1
    assert (work.incumbent.level_1, work.bound) == (best.value, best.value)


@pytest.mark.parametrize("losses", [{}, {"restart_s": 30.0, "migration_s": 180.0}])
@pytest.mark.parametrize("levels", [("met",), LEVELS[:4], LEVELS])
def test_a_model_fits_where_its_columns_do(
    levels: tuple[Level, ...], losses: dict[str, float]
) -> None:
    """The size by which models are refused is that of the model, states of runs included."""
    problem = generate_problem(60, 24, load=1.6, seed=1, **losses)  # type: ignore[arg-type]
    work = _work(problem, HighsEngine())
    columns = build_malleable(arrays_of(problem), levels).model.num_columns
    seconds = columns / (0.5 * HighsEngine.columns_per_second)
    assert work.fits(1.5 * seconds, levels)
    assert not work.fits(seconds / 1.5, levels)
