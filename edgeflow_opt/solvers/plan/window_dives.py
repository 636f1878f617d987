"""Window dives: the last job found by dives through some hundred jobs that are close in time.

A plan that prices and ruin and recreate have found lacks a job or two. What it wastes lies scattered
over time, in bits too small for any job, and moves of a few jobs do not bring the bits together; the
linear relaxation over whole plans does. On all jobs it takes too long. So a window is opened in the
plan (large-neighbourhood search: Shaw, 1998): the jobs whose units lie closest to a moment, and the jobs left out that are near their price. The others keep their plans. Plans
of the open jobs are generated at prices of what is left
(:class:`~edgeflow_opt.solvers.plan.quick_pricing.QuickPricing`): most windows are given up at once,
since no prices make room for one job more in them; in the others a dive
(:mod:`edgeflow_opt.solvers.plan.dive`) looks for it.

Between windows ruin and recreate moves what is left about, at equal worth, and a job is put in that does
not fit (:meth:`~edgeflow_opt.solvers.price.search.PriceSearch.put_in_more`).

Measured before there were such attempts, on two idle cores, limit 5 s, jobs short of the bound by `auto` without and with windows (seeds 0
and 1 of loads 0.8, 1.6 and 2.5): 300 jobs and 96 slots 1 2, 2 1, 1 1 and 1 1, 1 1, 1 1; 1000 jobs and
96 slots at load 2.5: 3 3 and 1 1.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.solvers.bounds import attainable_step
from edgeflow_opt.solvers.plan.branch import Branch
from edgeflow_opt.solvers.plan.dive import dive
from edgeflow_opt.solvers.plan.generation import Generation
from edgeflow_opt.solvers.plan.quick_pricing import QuickPricing
from edgeflow_opt.solvers.plan.rest import taken_by
from edgeflow_opt.solvers.price.insertion_kernels import workspace
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.solvers.price.search import INSERTION_BINS, PriceSearch

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, IntArray
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
    from edgeflow_opt.solvers.price.dual import DualResult
    from edgeflow_opt.solvers.price.pricing_data import PricingData

#: Jobs with a plan that are opened at a time.
_SIZE = 60

#: Jobs without a plan are opened if what they are worth falls short of their price by at most this
#: share of it.
_CLOSE = 0.2

#: Noise on the distance of a job from the moment, as a share of the horizon.
_BLUR = 0.1

#: Subgradient steps at the prices of what is left, rounds of pricing in a window, and how often a
#: dive may go back: dives that find the job do so soon.
_STEPS, _ROUNDS, _RETURNS = 5, 40, 1

#: Moves of ruin and recreate between two windows.
_MOVES = 1000

#: Windows where the result must not depend on the clock.
_STEADY_WINDOWS = 30

#: Where no step of the weights is known: what counts as better, as in ``optimal``.
_LEAST_GAIN = 5e-7


def window_dives(work: LevelSolve, control: SolveControl, seed: int) -> None:
    """Look for a better plan on level 1 in windows of the best one, until `control` ends it.

    Does nothing without prices, a plan, or where level 1 is settled. Several may run side by side.

    Parameters
    ----------
    work
        What is known; better plans are offered to its incumbent.
    control
        The part of the clock that this may take; deterministic solves end by themselves.
    seed
        Of all that is random.
    """
    if work.dual is not None and work.incumbent.plan is not None:
        _WindowDives(work, work.dual, control, seed).run()


class _WindowDives:
    """One way through the windows: its plan, and how it is improved."""

    def __init__(
        self, work: LevelSolve, dual: DualResult, control: SolveControl, seed: int
    ) -> None:
        self._work, self._dual, self._control = work, dual, control
        self._data = data = pricing_data(work.arrays)
        self._search = PriceSearch(data, dual, seed)
        self._random = np.random.default_rng(seed)
        self._space = workspace(data, INSERTION_BINS)
        self._adopted: IntArray | None = None
        self._step = attainable_step(work.arrays.weight[work.arrays.has_deadline])
        possible = data.priced & np.isfinite(dual.job_costs)
        self._close = possible & (dual.job_costs <= (1.0 + _CLOSE) * data.weight)

    def run(self) -> None:
        """Open one window after the other."""
        work, search = self._work, self._search
        windows = 0
        while not self._control.stopped and not work.closed:
            if work.options.deterministic and windows == _STEADY_WINDOWS:
                break
            if not self._follow():
                break
            windows += 1
            gained = search.improve(_MOVES) + search.put_in_more(lambda: self._control.stopped)
            if gained > 0.0 or self._dive():
                self._offer()
        statistics = work.statistics
        statistics["windows"] = statistics.get("windows", 0) + windows

    def _follow(self) -> bool:
        """Begin from the best plan if it is another's; tell whether there is anything to do."""
        data, plan = self._data, self._work.incumbent.plan
        if plan is not None and plan is not self._adopted:
            self._adopted = plan
            rows, whole = data.in_kept_modes(plan)
            met = walk(self._work.arrays, plan).met & whole & data.priced
            if data.weight[met].sum() > data.weight[self._search.met].sum() + 1e-9:
                self._search.adopt(rows, met)
        must = data.must_meet & data.priced
        left_out = self._close & ~self._search.met
        return bool(left_out.any() and self._search.met.any() and self._search.met[must].all())

    def _offer(self) -> None:
        plan = self._search.filled_plan(self._work.arrays, left_over=False)
        self._work.incumbent.offer(plan, "windows")

    def _window(self) -> BoolArray:
        """Return (n,) the jobs to open."""
        search, random = self._search, self._random
        left_out = np.flatnonzero(self._close & ~search.met)
        met = np.flatnonzero(search.met)
        # Early moments are more likely: what is scarce is scarce there.
        moment = random.random() * self._data.end[random.choice(met)]
        held = search.plan[met] >= 0
        slots = np.arange(held.shape[1])
        middle = (held * slots).sum(axis=1) / np.maximum(1, held.sum(axis=1))
        distance = np.abs(middle - moment) + _BLUR * len(slots) * random.random(len(met))
        opened = np.zeros(len(search.met), dtype=np.bool_)
        opened[met[np.argsort(distance, kind="stable")[:_SIZE]]] = True
        opened[left_out] = True
        return opened

    def _dive(self) -> bool:
        """Open a window and dive in it; tell whether a better plan was found."""
        search, control = self._search, self._control
        opened = self._window()
        data = _rest(self._data, search.plan, search.met, opened)
        value = float(data.weight[search.met & opened].sum())
        aim = value + (_LEAST_GAIN * max(1.0, value) if self._step is None else self._step)
        part = control.part(math.inf, needless=lambda: generation.rounds > _ROUNDS)
        generation = Generation(data, 1, part, QuickPricing(data, self._space))
        kept = np.flatnonzero(search.met & opened)
        generation.add(kept, search.plan[kept])
        start = dataclasses.replace(self._dual, bound=math.inf)
        root = generation.descend(start, _STEPS, lambda: part.stopped)
        if root.bound < aim:
            return False
        # To the end: dives are short of plans otherwise, and most windows are given up on the way.
        root = generation.node(root, Branch.root(data), aim, to_the_end=True).dual
        if root.bound < aim:
            return False
        generation.rounds = 0
        chosen = dive(generation, root, aim, self._random, _RETURNS)
        if chosen is None:
            return False
        plans = generation.plans()
        plan = search.plan.copy()
        plan[opened] = -1
        plan[plans.job[chosen]] = plans.rows[chosen]
        met = search.met & ~opened
        met[plans.job[chosen]] = True
        search.adopt(plan, met)
        return True


def _rest(data: PricingData, plan: IntArray, met: BoolArray, opened: BoolArray) -> PricingData:
    """Return the instance of the jobs `opened`, within what the plans of the others leave."""
    capacity = data.capacity - taken_by(data, plan[met & ~opened])
    rest = data.with_fates(data.must_meet & opened, data.priced & opened)
    return rest._replace(capacity=capacity, tables=rest.tables._replace(capacity=capacity))
