"""The way of single-slot problems through the levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.formulations.plans import empty_plan
from edgeflow_opt.solvers.bounds import FLOAT_SLACK, rounded_down
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.solvers.single_slot.choices import choices_of
from edgeflow_opt.solvers.single_slot.knapsack import Knapsack, select

if TYPE_CHECKING:
    from edgeflow_opt.formulations.objectives import Level
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays
    from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
    from edgeflow_opt.solvers.single_slot.choices import Choices
    from edgeflow_opt.solvers.single_slot.knapsack import Selection

#: Relative amount by which a kept level may fall in a model, for rounding.
_KEEP_SLACK = 5e-8

#: Relative amount added to the width within which choices stay alive for the levels below.
_ALIVE_SLACK = 1e-6


def settle_single_slot(work: LevelSolve) -> bool:
    """Solve a problem of one slot level by level, or its weighted sum.

    Every level is a knapsack (:mod:`edgeflow_opt.solvers.single_slot.knapsack`) with one row for
    each site and one for each level before it; choices that no optimum of a level before it can
    hold are left out. Plans are offered to the incumbent of `work`, bounds and proofs noted there.

    Returns
    -------
    settled
        Whether nothing is left to do, be it for time or for a proof on every level.
    """
    arrays = work.arrays
    choices = choices_of(arrays)
    if choices.impossible:
        work.note_infeasible()
        return True
    if not len(choices.job):
        return False
    weights = work.problem.objective.weights
    if weights is not None:
        value = np.zeros(len(choices.job))
        for level in LEVELS:
            value = value + getattr(weights, level) * choices.values[level]
        found = _solve(work, choices, value, _everything(choices), [], weighted=True)
        return found is not None
    alive = _everything(choices)
    floors: list[tuple[Level, float]] = []
    for level in LEVELS[: work.options.levels]:
        value = choices.values[level]
        if not value[alive].any():
            work.note_proven(level)
            if level == "met":
                work.tighten(0.0)
            continue
        found = _solve(work, choices, value, alive, floors)
        if found is None:
            return work.closed and work.control.stopped
        reached = found.value
        if found.bound > reached + 1e-9 * max(1.0, abs(reached)):
            return work.control.stopped
        work.note_proven(level)
        spare = found.dual_bound - reached + _ALIVE_SLACK * max(1.0, abs(reached))
        still = alive.copy()
        still[alive] = found.regret <= spare
        alive = still
        floors.append((level, reached))
    return True


def _everything(choices: Choices) -> BoolArray:
    return np.ones(len(choices.job), dtype=np.bool_)


def _solve(
    work: LevelSolve,
    choices: Choices,
    value: FloatArray,
    alive: BoolArray,
    floors: list[tuple[Level, float]],
    *,
    weighted: bool = False,
) -> Selection | None:
    """Maximise `value` over the choices `alive`, the levels in `floors` kept; offer what is found.

    Returns None where nothing came of it.
    """
    arrays, control = work.arrays, work.control
    first_level = not floors and (weighted or value is choices.values["met"])
    places = np.nonzero(alive)[0]
    job = choices.job[places]
    rows = np.zeros((arrays.num_sites + len(floors), len(places)))
    rows[choices.site[places], np.arange(len(places))] = choices.units[places]
    limits = np.concatenate([arrays.capacity[:, 0], np.zeros(len(floors))]).astype(np.float64)
    for row, (level, reached) in enumerate(floors, start=arrays.num_sites):
        rows[row] = -choices.values[level][places]
        limits[row] = -(reached - _KEEP_SLACK * max(1.0, abs(reached)))
    knapsack = Knapsack(
        first=np.nonzero(np.diff(job, prepend=-1))[0],
        value=value[places],
        rows=rows,
        limits=limits,
        num_floors=len(floors),
    )
    jobs_weights = arrays.weight[arrays.has_deadline]

    def rounded(bound: float) -> float:
        return rounded_down(bound, jobs_weights, FLOAT_SLACK) if first_level else bound

    found = select(
        knapsack,
        HighsEngine(),
        work.options,
        control,
        rounded=rounded if not weighted else lambda bound: bound,
    )
    work.statistics["core"] = work.statistics.get("core", 0) + found.num_core
    if found.infeasible and not floors:
        work.note_infeasible()
        return None
    if first_level and math.isfinite(found.bound):
        slack = FLOAT_SLACK * max(1.0, abs(found.bound)) if weighted else 0.0
        work.tighten(found.bound + slack)
    if found.chosen is None:
        return None
    work.incumbent.offer(_plan(arrays, choices, places[found.chosen]), "single slot")
    return found


def _plan(arrays: ProblemArrays, choices: Choices, chosen: IntArray) -> IntArray:
    """Return the plan matrix of one choice of each job."""
    plan = empty_plan(arrays)
    plan[choices.job[chosen], 0] = choices.mode[chosen]
    return plan
