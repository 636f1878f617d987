"""Improving the levels below the first: a few jobs at a time, in the capacity the others leave.

The met jobs stay met and the levels only ever rise in their lexicographic order. Two kinds of moves:

* a *sweep* plans one job after the other anew, exactly up to the bins of its labels;
* a *shake* takes a few jobs that compete out of the plan and plans them anew in random order, some
  under random prices: large-neighbourhood search (Shaw, 1998) by ruin and recreate (Schrimpf et
  al., 2000).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plans import trim, walk
from edgeflow_opt.solvers.polish.data import Space, costly_first, polish_data, work_arrays
from edgeflow_opt.solvers.polish.kernels import improve

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem.arrays import FloatArray, IntArray, ProblemArrays
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
    from edgeflow_opt.solvers.polish.data import PolishData

#: Wall seconds of one call of a kernel, about.
_CALL_S = 0.02

#: Moves of one call where the result must not depend on the clock.
_STEADY_MOVES = 32

#: Moves in a row without gain after which the plan counts as polished: per job, and at least.
_PATIENCE, _LEAST_PATIENCE = 250, 1000

#: Moves where the result must not depend on the clock, per job.
_STEADY_MOVES_PER_JOB = 100

#: Wall seconds kept back for checking the plan, per job.
_RESERVE_PER_JOB_S = 2e-4

#: A gain below this, relative to the level as a whole, does not count (as in ObjectiveValue).
_LEAST_GAINS = (1e-9, 1e-7, 1e-7, 1e-7, 1e-7)


class Polisher:
    """A plan under improvement.

    Parameters
    ----------
    arrays
        The instance.
    plan
        (n, T) a plan that obeys the capacities and meets what must be met.
    seed
        Of the shakes.
    """

    def __init__(self, arrays: ProblemArrays, plan: IntArray, seed: int) -> None:
        self.plan = np.ascontiguousarray(trim(arrays, plan), dtype=np.int64)
        """The plan as it is now."""
        self._arrays = arrays
        self._data = _data_of(arrays)
        self._space = _space_of(arrays, self.plan, seed)

    def sweep(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Plan every job anew once, unless `stopped` says so before; return the gains."""
        order = costly_first(self._arrays, self.plan)
        step = max(1, len(order) // 100)
        gains = 0
        for begin in range(0, len(order), step):
            if stopped():
                break
            part = order[begin : begin + step]
            gains += improve(self._data, self.plan, self._space, part, 0)
        return gains

    def shake(self, moves: int) -> int:
        """Try so many moves of a few jobs together; return the gains."""
        arrays = self._arrays
        done = walk(arrays, self.plan)
        lacking = ~done.met & (arrays.weight > 0) & (arrays.first_slot < arrays.num_slots)
        lacking &= done.credit_by_horizon < arrays.required
        late = ~done.met & arrays.has_deadline & (arrays.end_slot > arrays.first_slot)
        wanted = np.nonzero(lacking | (late & (arrays.weight > 0)))[0]
        return int(improve(self._data, self.plan, self._space, wanted, moves))


def polish(work: LevelSolve, seconds: float) -> None:
    """Improve the plan of `work` below level 1 for at most `seconds`.

    Does nothing without a plan, where level 1 alone is wanted, for a weighted sum, and where there are
    constraints. Ctrl-C ends
    it and is noted; what was gained is kept.
    """
    arrays, incumbent = work.arrays, work.incumbent
    if incumbent.plan is None or arrays.num_jobs == 0 or work.options.levels < 2:
        return
    if work.problem.objective.weights is not None or arrays.rows.num_rows:
        # The moves know capacities only.
        return
    # What follows, turning the plan into a checked schedule, takes time in plain Python.
    reserve_s = 0.02 + _RESERVE_PER_JOB_S * arrays.num_jobs
    control = work.control.part(work.control.left_s - reserve_s).counted_part(seconds)
    if control.stopped:
        return
    polisher = Polisher(arrays, incumbent.plan, work.options.seed)
    begin = control.elapsed_s
    gains = moves = 0
    with control.interruptible():
        while found := polisher.sweep(lambda: control.stopped):
            gains += found
        shaken, moves = _shakes(polisher, control, steady=work.options.deterministic)
        gains += shaken
    # The kernels judge their moves by the exact rule, so that one look at the end is enough.
    incumbent.offer(polisher.plan, "polish")
    statistics = work.statistics
    statistics["polish_s"] = statistics.get("polish_s", 0.0) + control.elapsed_s - begin
    statistics["polish_moves"] = statistics.get("polish_moves", 0) + moves
    statistics["polish_gains"] = statistics.get("polish_gains", 0) + gains


def _shakes(polisher: Polisher, control: SolveControl, *, steady: bool) -> tuple[int, int]:
    """Shake until time is up or patience is at an end; return gains and moves.

    `steady` = calls of one size, so that the moves do not depend on the clock.
    """
    gains = moves = idle = 0
    num_jobs = len(polisher.plan)
    patience = max(_LEAST_PATIENCE, _PATIENCE * num_jobs)
    batch = _STEADY_MOVES if steady else 4
    while not control.stopped and idle < patience:
        if steady and moves >= _STEADY_MOVES_PER_JOB * num_jobs:
            break
        begin = control.elapsed_s
        found = polisher.shake(batch)
        taken = control.elapsed_s - begin
        moves += batch
        gains += found
        idle = 0 if found else idle + batch
        if steady:
            continue
        if taken < 0.5 * _CALL_S:
            batch *= 2
        elif taken > 2.0 * _CALL_S:
            batch = max(1, batch // 2)
    return gains, moves


def _data_of(arrays: ProblemArrays) -> PolishData:
    least = arrays.mode_cost[arrays.mode_cost > 0]
    tie = 1e-4 * float(least.min() * arrays.lengths.min()) if len(least) else 1.0
    return polish_data(arrays, arrays.mode_cost, tie)


def _space_of(arrays: ProblemArrays, plan: IntArray, seed: int) -> Space:
    common = work_arrays(arrays, plan, seed, num_ahead=3)
    progress = np.zeros_like(common["work"])
    return Space(**common, progress=progress, tolerance=_least_gains(arrays, plan))


def _least_gains(arrays: ProblemArrays, plan: IntArray) -> FloatArray:
    """Return (5,) the least change of each level that counts."""
    total = float(arrays.weight.sum())
    cost = np.where(plan >= 0, arrays.mode_cost[plan] * arrays.lengths, 0.0).sum()
    scales = (total, total, total, float(cost), float(plan.size))
    return np.array(
        [least * max(1.0, scale) for least, scale in zip(_LEAST_GAINS, scales, strict=True)]
    )


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
    from edgeflow_opt.problem.arrays import arrays_of

    modes = (Mode(site="cloud", gpus=1, rate=1.0),)
    job = Job(id="j", deadline=2.0, work=1.0, modes=modes)
    site = Site(name="cloud", kind="cloud", capacity=((0.0, 1),))
    arrays = arrays_of(EpochProblem(grid=Grid((0.0, 1.0, 2.0)), sites=(site,), jobs=(job,)))
    polisher = Polisher(arrays, np.full((1, 2), -1, dtype=np.int64), 0)
    polisher.sweep()
    polisher.shake(1)
