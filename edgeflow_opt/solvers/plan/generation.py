"""Column generation on the plan master: relaxation and pricing in turn, at any node of the tree.

The prices at which jobs are priced are a mix of those of the relaxation and of those with the best
Lagrangian bound so far (Wentges, 1997; Pessoa et al., 2018), since the former swing wildly at first.
Where the mix finds nothing new, the prices of the relaxation alone decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.plan.branch import Branch
from edgeflow_opt.solvers.plan.known_plans import KnownPlans
from edgeflow_opt.solvers.plan.pricing import PlanPricing
from edgeflow_opt.solvers.plan.relaxation import Relaxation, Relaxed
from edgeflow_opt.solvers.price.dual import PriceStepper, start_prices

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.formulations.plan_columns import JobPlans
    from edgeflow_opt.problem.arrays import IntArray
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.plan.rest import Rest
    from edgeflow_opt.solvers.price.dual import DualResult
    from edgeflow_opt.solvers.price.pricing_data import PricingData

#: Share of the best prices in those at which jobs are priced.
_SMOOTHING = 0.5

#: First step of the descent, of the mean price, and its decay: those of the exact dual.
_STEP, _DECAY = 0.03, 0.955

#: Reduced costs below this, of the largest weight, are taken for rounding.
_LEAST_GAIN = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class NodeAnswer:
    """What is known of a node.

    Parameters
    ----------
    dual
        Best Lagrangian bound on schedules of the node, with its prices and job costs.
    relaxed
        The last relaxation; None where none was solved.
    converged
        Whether no plan is left that would improve the relaxation.
    """

    dual: DualResult
    relaxed: Relaxed | None
    converged: bool


class Generation:
    """The plans known so far, their relaxation, and the way to more.

    Parameters
    ----------
    data
        The instance.
    workers
        Threads of the pricing.
    control
        The clock.
    """

    def __init__(
        self,
        data: PricingData,
        workers: int,
        control: SolveControl,
    ) -> None:
        self.data = data
        self.relaxation = Relaxation(data, control)
        self.rounds = 0
        """Rounds of pricing so far."""
        self._control = control
        self._pricing = PlanPricing(data, workers, lambda: control.stopped)
        self._known = KnownPlans(data.capacity.shape[1])
        largest = float(data.weight[data.priced].max(initial=0.0))
        self._least_gain = _LEAST_GAIN * max(largest, 1e-300)

    @property
    def num_plans(self) -> int:
        """Number of plans known."""
        return len(self._known)

    def plans(self) -> JobPlans:
        """Return all plans, in the order of the relaxation, in kept modes of the pricing data."""
        return self._known.all()

    def add(self, job: IntArray, rows: IntArray) -> int:
        """Add those plans that are new; return how many."""
        new = self._known.add(job, rows)
        self.relaxation.add(new.job, new.rows)
        return len(new.job)

    def descend(self, start: DualResult, steps: int, stopped: Callable[[], bool]) -> DualResult:
        """Take so many subgradient steps from `start`; keep the plans met on the way.

        They are the start columns: near the best prices, where they will be wanted.
        """
        root = Branch.root(self.data)
        step = _STEP * np.maximum(start_prices(self.data), 1e-300) / 0.6
        stepper = PriceStepper(start.prices, step, _DECAY)
        best = start
        for _ in range(steps):
            if stopped():
                break
            priced = self._pricing.price(stepper.prices, root)
            self.rounds += 1
            self.add(priced.job, priced.rows)
            best = min(best, priced.dual, key=lambda dual: dual.bound)
            if not priced.complete:
                break
            stepper.advance(self.data.capacity - priced.usage)
        return best

    def node(
        self,
        start: DualResult,
        branch: Branch,
        aim: float,
        *,
        to_the_end: bool = False,
        rest: Rest | None = None,
    ) -> NodeAnswer:
        """Bound the schedules of `branch`.

        It ends once the bound falls below `aim`: the node is empty; or once the relaxation reaches
        it: the node is open. With `to_the_end` only when no plan improves the relaxation.

        Parameters
        ----------
        start
            Prices to begin from; its bound is one on this node too.
        rest
            Where some plans are given: what is left. Bounds count what the given plans are worth.
        """
        plans = self.plans()
        admitted = branch.admits(plans.job, plans.rows)
        if rest is None:
            self.relaxation.restrict(branch, admitted)
        else:
            self.relaxation.restrict(branch, admitted & rest.admits(plans), rest.chosen)
        best, relaxed = start, None
        smoothing = _SMOOTHING
        while not self._control.stopped:
            relaxed = self.relaxation.solve()
            if relaxed is None:
                break
            reached = relaxed.lacking < 1e-7 and relaxed.value >= aim - 1e-7 * max(1.0, abs(aim))
            if reached and not to_the_end:
                return NodeAnswer(best, relaxed, False)
            prices = smoothing * best.prices + (1.0 - smoothing) * relaxed.prices
            priced = self._pricing.price(prices, branch, rest)
            self.rounds += 1
            if priced.dual.bound < best.bound:
                best = priced.dual
            if best.bound < aim:
                return NodeAnswer(best, relaxed, False)
            new = self.add(*self._improving(priced.job, priced.rows, relaxed))
            if new or not priced.complete:
                continue
            if smoothing > 0.0:
                smoothing = 0.0
                continue
            return NodeAnswer(best, relaxed, True)
        return NodeAnswer(best, relaxed, False)

    def _improving(
        self, job: IntArray, rows: IntArray, relaxed: Relaxed
    ) -> tuple[IntArray, IntArray]:
        """Return the plans whose reduced cost in the relaxation is positive."""
        data = self.data
        plan, slot = np.nonzero(rows >= 0)
        mode = rows[plan, slot]
        price = relaxed.prices[data.site[mode], slot] * data.units[mode]
        cost = np.bincount(plan, weights=price, minlength=len(job))
        gain = data.weight[job] - cost - relaxed.worth[job]
        better = gain > self._least_gain
        return job[better], rows[better]
