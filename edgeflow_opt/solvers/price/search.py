"""The primal side: a plan that is built by prices and improved by ruin and recreate.

Ruin and recreate (Schrimpf et al., 2000) takes out a few jobs that share a window of time and puts
them and some rejected ones back in another order, each by its cheapest plan at (almost) the dual
prices in what is left. A move is judged by the worth of the jobs met, then by the priced worth of
the capacity that stays free.

Where that finds nothing more, a job is put in though it does not fit, and what is too much is shifted
away (:mod:`edgeflow_opt.solvers.price.overfill_kernels`). Moves of a few jobs cannot bring bits of
free capacity together that lie scattered over time; chains of jobs that give way to each other do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.price.insertion_kernels import workspace
from edgeflow_opt.solvers.price.overfill_kernels import overfill, shift
from edgeflow_opt.solvers.price.search_kernels import (
    fill_left_over,
    search,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays
    from edgeflow_opt.solvers.price.dual import DualResult
    from edgeflow_opt.solvers.price.pricing_data import PricingData

#: Bins of work per job when a plan is looked for.
INSERTION_BINS = 1280
_NOISE = 0.15
_TEMPERATURE = 0.001
#: Share of the mean price that is added to all prices, so that units without a price are not wasted.
_LEAST_PRICE = 0.02
#: Price of a unit beyond the capacity and its rise in each step, in mean prices; steps after which an
#: attempt to put a job in is given up, and steps between two looks at the clock.
_BEYOND, _RISE, _STEPS, _STEPS_OF_A_CALL = 1.0, 0.1, 3000, 250
#: Priced cost over worth below which a job that is not met is promising, and steps of its attempt: at
#: 1000 jobs and 96 slots, 4000 to 20,000 put in what four attempts of 6000 do not.
_PROMISING, _LONG_STEPS = 0.9, 20_000


class PriceSearch:
    """A plan under construction, with the prices that guide it.

    Parameters
    ----------
    data
        The instance.
    dual
        Prices, job costs and multipliers.
    seed
        Of everything random, at least 0.
    """

    def __init__(self, data: PricingData, dual: DualResult, seed: int) -> None:
        n, num_slots = len(data.weight), data.capacity.shape[1]
        self.data = data
        self._space = workspace(data, INSERTION_BINS)
        # Any odd multiple of a large odd number is not 0 and spreads small seeds over all bits.
        state = (2 * seed + 1) * 0x9E3779B97F4A7C15 % 2**64
        self._random = np.array([state], dtype=np.uint64)
        self.plan: IntArray = np.full((n, num_slots), -1, dtype=np.int64)
        self.available: IntArray = data.capacity.copy()
        self.met = np.zeros(n, dtype=np.bool_)
        self.moves = 0
        """Moves made so far."""
        self.attempts = 0
        """Attempts so far to put in a job that does not fit."""
        self.attempted_at = 0
        """Moves that had been made when the last of them failed."""
        self._plan_cost = np.zeros(n)
        # A job that must be met counts more than all others together.
        must = data.priced & data.must_meet
        total = float(data.weight[data.priced].sum())
        self.worth: FloatArray = data.weight + np.where(must, total + 1.0, 0.0)
        self.guide_by(dual)

    def guide_by(self, dual: DualResult) -> None:
        """Let `dual` guide the search from now on."""
        self._dual = dual
        self._guided_at = self.moves
        data = self.data
        lengths = np.diff(data.boundaries)
        self._prices = np.ascontiguousarray(dual.prices)
        supply = float((data.capacity * lengths).sum())
        mean = float((data.capacity * dual.prices).sum()) / supply if supply > 0 else 0.0
        self._guide = self._prices + max(_LEAST_PRICE * mean, 1e-12) * lengths
        possible = data.priced & np.isfinite(dual.job_costs)
        self._candidates = np.flatnonzero(possible)
        self._movable = np.flatnonzero(possible & data.malleable & ~data.lossy)
        ratio = np.full(len(data.weight), np.inf)
        ratio[possible] = dual.job_costs[possible] / self.worth[possible]
        self._ratio = ratio
        self._temperature = (
            _TEMPERATURE * float(data.weight[possible].mean()) if any(possible) else 0.0
        )
        self._price_plan()

    @property
    def value(self) -> float:
        """Worth of the jobs met; jobs that must be met count more than their weight."""
        return float(self.worth[self.met].sum())

    def construct(self) -> None:
        """Insert all jobs that are not met, the cheapest per weight first."""
        order = self._candidates[np.argsort(self._ratio[self._candidates], kind="stable")]
        self._run(order, 0)

    def adopt(self, plan: IntArray, met: BoolArray) -> None:
        """Begin from `plan`, of kept modes: the jobs that it meets stay, all others are idle."""
        data = self.data
        self.plan[:] = np.where(met[:, None], plan, -1)
        slots = np.arange(self.plan.shape[1])
        self.plan[slots[None, :] >= data.end[:, None]] = -1
        self.met[:] = met
        job, slot = np.nonzero(self.plan >= 0)
        mode = self.plan[job, slot]
        self.available[:] = data.capacity
        np.subtract.at(self.available, (data.site[mode], slot), data.units[mode])
        self._price_plan()

    def _price_plan(self) -> None:
        """Value the plan of each job at the dual prices."""
        data = self.data
        job, slot = np.nonzero(self.plan >= 0)
        mode = self.plan[job, slot]
        cost = self._prices[data.site[mode], slot] * data.units[mode]
        self._plan_cost[:] = np.bincount(job, weights=cost, minlength=len(data.weight))

    def follow(self, dual: DualResult) -> None:
        """Let `dual` guide the search if it is new, and not too soon after the last change."""
        if dual is not self._dual and self.moves >= 1.5 * self._guided_at:
            self.guide_by(dual)

    def improve(self, moves: int) -> float:
        """Make `moves` moves and return the rise of :attr:`value`."""
        self.moves += moves
        return self._run(self._candidates[:0], moves)

    def put_in_promising(self, stopped: Callable[[], bool]) -> float:
        """Put in jobs that are not met though they cost far less than they are worth.

        After an arrival the new job is such a one. The cheapest comes first, each has one attempt, a
        long one, and the first that fails is the last; return the rise of :attr:`value`.
        """
        outside = self._movable[~self.met[self._movable]]
        outside = outside[self._ratio[outside] < _PROMISING]
        gained = 0.0
        for job in outside[np.argsort(self._ratio[outside], kind="stable")]:
            # The attempts before may have put it in.
            if self.met[job]:
                continue
            more = self._attempt(np.array([job]), _LONG_STEPS, stopped)
            gained += more
            if more <= 0.0:
                break
        return gained

    def put_in_more(self, stopped: Callable[[], bool]) -> float:
        """Put in a job that does not fit and shift what is too much; return the rise of :attr:`value`.

        Where that fails, or is `stopped`, the plan is what it was. Jobs with losses and moldable jobs
        are left as they are.
        """
        outside = self._movable[~self.met[self._movable]]
        return self._attempt(outside, _STEPS, stopped) if len(outside) else 0.0

    def _attempt(self, outside: IntArray, most_steps: int, stopped: Callable[[], bool]) -> float:
        """Put in one of the jobs `outside` and shift for at most so many steps; return the rise."""
        self.attempts += 1
        state = (self.plan, self.available, self._plan_cost, self.met)
        before, kept = self.value, [array.copy() for array in state]
        beyond = self._price_beyond()
        chosen = overfill(
            self.data.tables, self._guide, beyond, self._ratio, outside, self._random, self.plan,
            self.available, self.met, self._space,
        )  # fmt: skip
        if chosen >= 0 and self._shift_until_it_fits(beyond, most_steps, stopped):
            return self.value - before
        for array, old in zip(state, kept, strict=True):
            array[:] = old
        self.attempted_at = self.moves
        return 0.0

    def make_fit(self, steps: int, stopped: Callable[[], bool]) -> bool:
        """Shift away what is too much of an adopted plan; tell whether that went well.

        Otherwise, after so many `steps` or where it is `stopped`, the plan is none.
        """
        return self._shift_until_it_fits(self._price_beyond(), steps, stopped)

    def _price_beyond(self) -> FloatArray:
        """Return the first price of a unit beyond the capacity."""
        return np.full_like(self._guide, _BEYOND * float(self._guide.mean()))

    def _shift_until_it_fits(
        self, beyond: FloatArray, steps: int, stopped: Callable[[], bool]
    ) -> bool:
        rise = _RISE * float(self._guide.mean())
        taken = 0
        while taken < steps and not stopped():
            taken += _STEPS_OF_A_CALL
            excess = shift(
                self.data.tables, self._prices, self._guide, beyond, rise, _NOISE, self.worth,
                self._ratio, self._movable, _STEPS_OF_A_CALL, self._random, self.plan, self.available,
                self._plan_cost, self.met, self._space,
            )  # fmt: skip
            if excess == 0:
                self._price_plan()
                return True
        return False

    def _run(self, order: IntArray, moves: int) -> float:
        return float(
            search(
                self.data.tables, self._prices, self._guide, self.worth, self._ratio,
                self._candidates, order, moves, _NOISE, self._temperature, self._random,
                self.plan, self.available, self._plan_cost, self.met, self._space,
            )
        )  # fmt: skip

    def filled_plan(self, arrays: ProblemArrays, left_over: bool) -> IntArray:
        """Return the plan in the modes of `arrays`.

        Parameters
        ----------
        left_over
            Whether jobs that are not met, and best-effort jobs, get the units that are left.
        """
        plan = self.plan.copy()
        if left_over:
            available = self.available.copy()
            need = arrays.work.copy()
            density = arrays.weight / arrays.work
            order = np.argsort(-density, kind="stable")
            late = order[arrays.has_deadline[order]]
            fill_left_over(self.data.tables, late, True, plan, available, self.met, need)
            fill_left_over(self.data.tables, order, False, plan, available, self.met, need)
        result = np.full_like(plan, -1)
        held = plan >= 0
        result[held] = self.data.mode_id[plan[held]]
        return result
