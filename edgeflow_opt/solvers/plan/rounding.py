"""Rounding: the last job found by making a rounded relaxation fit.

What a plan of prices and ruin and recreate wastes lies scattered over time, and a job that is put in
at one place finds no room. The linear relaxation over whole plans wastes nothing, and leaves no more
jobs undecided than there are capacities that bind: most of its plans are whole. So as many jobs as a
better plan must meet, those of the largest shares, take their plan of the largest share; that is too
much here and there, by a few units in a hundred, and is shifted away
(:mod:`edgeflow_opt.solvers.price.overfill_kernels`).

The relaxation is not solved to the end: it is kept near the prices of the exact dual
(:mod:`edgeflow_opt.solvers.plan.boxed_relaxation`), and rounded anew whenever plans have come to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.solvers.bounds import attainable_step, rounded_down
from edgeflow_opt.solvers.plan.boxed_relaxation import BoxedRelaxation
from edgeflow_opt.solvers.plan.known_plans import KnownPlans
from edgeflow_opt.solvers.plan.quick_pricing import QuickPricing
from edgeflow_opt.solvers.price.dual import HullDual, start_prices
from edgeflow_opt.solvers.price.exact_dual import BINS
from edgeflow_opt.solvers.price.insertion_kernels import workspace
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.solvers.price.search import PriceSearch

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import FloatArray, IntArray
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve
    from edgeflow_opt.solvers.plan.boxed_relaxation import BoxRelaxed
    from edgeflow_opt.solvers.price.dual import DualResult

#: Bins of work per job in the pricing: with fewer the plans are too dear to fill the relaxation.
_BINS = 6400
#: First reach of the box, in mean prices, and its factor where the bound falls by more than half of what
#: the relaxation promised. It is never narrowed: units beyond the capacity would cost next to nothing
#: more then, and the relaxation would take far too many.
_REACH, _WIDER = 0.01, 1.5
#: Share of the bound by which it must have fallen for another proof.
_FALLEN = 2e-5
#: Steps of shifting of one attempt.
_STEPS = 3000
#: Noise on shares in each attempt after the first.
_NOISE = 0.3
#: Attempts where the result must not depend on the clock.
_STEADY_ATTEMPTS = 30
#: Where no step of the weights is known: what counts as better, as in ``optimal``.
_LEAST_GAIN = 5e-7


def round_relaxations(work: LevelSolve, control: SolveControl, seed: int) -> None:
    """Look for a better plan on level 1 by rounding, until `control` ends it.

    Does nothing without prices, a plan, or where level 1 is settled.

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
        _Rounding(work, work.dual, work.incumbent.plan, control, seed).run()


class _Rounding:
    """A relaxation that gets better, and the attempts to round it."""

    def __init__(
        self,
        work: LevelSolve,
        dual: DualResult,
        plan: IntArray,
        control: SolveControl,
        seed: int,
    ) -> None:
        self._work, self._control = work, control
        self._data = data = pricing_data(work.arrays)
        self._search = PriceSearch(data, dual, seed)
        self._random = np.random.default_rng(seed)
        self._step = attainable_step(work.arrays.weight[work.arrays.has_deadline])
        self._pricing = QuickPricing(data, workspace(data, _BINS))
        self._plans = KnownPlans(data.capacity.shape[1])
        self._relaxation = BoxedRelaxation(data, control)
        self._prices = dual.prices
        self._attempts = 0
        rows, whole = data.in_kept_modes(plan)
        met = np.flatnonzero(walk(work.arrays, plan).met & whole & data.priced)
        self._add(met, rows[met])

    def run(self) -> None:
        """Better the relaxation and round it, in turn."""
        reach = _REACH * float(start_prices(self._data).mean()) / 0.6
        best = self._price(self._prices).bound
        # These prices were proven before.
        tried = best
        while not self._ended():
            relaxed = self._relaxation.solve(self._prices, reach)
            if relaxed is None:
                break
            found = self._price(relaxed.prices)
            value = found.bound
            promised = best - relaxed.value
            if value < best:
                if best - value > 0.5 * promised:
                    reach *= _WIDER
                best, self._prices = value, relaxed.prices
                self._search.guide_by(found)
            if best < self._work.bound and best < tried - _FALLEN * self._work.bound:
                tried = best
                self._prove()
            while not self._ended() and self._round(relaxed):
                pass
        self._work.statistics["roundings"] = self._attempts

    def _prove(self) -> None:
        """Prove what is hoped of the prices by the exact dual."""
        hull = HullDual(self._data)
        found, _ = hull.evaluate_exactly(self._prices, BINS, lambda: self._control.stopped)
        weights = self._work.arrays.weight[self._work.arrays.has_deadline]
        self._work.tighten(rounded_down(found.bound, weights), "rounding")

    def _ended(self) -> bool:
        if self._work.options.deterministic and self._attempts >= _STEADY_ATTEMPTS:
            return True
        return self._control.stopped or self._work.closed

    def _add(self, job: IntArray, rows: IntArray) -> None:
        new = self._plans.add(job, rows)
        self._relaxation.add(new.job, new.rows)

    def _price(self, prices: FloatArray) -> DualResult:
        """Add the plans that are cheap at `prices`; return about the bound there."""
        priced = self._pricing.price(prices)
        self._add(priced.job, priced.rows)
        return priced.dual

    def _aim(self) -> float:
        """Return the least worth that is better than the incumbent's."""
        value = self._work.incumbent.level_1 or 0.0
        return value + (_LEAST_GAIN * max(1.0, value) if self._step is None else self._step)

    def _round(self, relaxed: BoxRelaxed) -> bool:
        """Try to make a rounded relaxation fit; tell whether that gave a better plan."""
        data, search = self._data, self._search
        plans, noise = self._plans.all(), _NOISE if self._attempts else 0.0
        self._attempts += 1
        known = len(relaxed.share)
        job, rows = plans.job[:known], plans.rows[:known]
        share = relaxed.share + noise * self._random.random(known) * (relaxed.share > 0.0)
        # By job, the plan of the largest share last.
        order = np.lexsort((share, job))
        order = order[relaxed.share[order] > 0.0]
        last = order[np.append(job[order][1:] != job[order][:-1], True)] if len(order) else order
        met = relaxed.met + noise * self._random.random(len(relaxed.met))
        must = data.must_meet & data.priced
        chosen = last[np.lexsort((-met[job[last]], ~must[job[last]]))]
        worth = np.cumsum(data.weight[job[chosen]])
        count = int(np.searchsorted(worth, self._aim() - 1e-9)) + 1
        if count > len(chosen):
            return False
        chosen = chosen[:count]
        plan = np.full(search.plan.shape, -1, dtype=np.int64)
        plan[job[chosen]] = rows[chosen]
        here = np.zeros(len(data.weight), dtype=np.bool_)
        here[job[chosen]] = True
        search.adopt(plan, here)
        if not search.make_fit(_STEPS, self._ended):
            return False
        search.construct()
        return self._work.incumbent.offer(
            search.filled_plan(self._work.arrays, left_over=False), "rounding"
        )
