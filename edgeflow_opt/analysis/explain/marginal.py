"""What one more unit is worth: by the prices of the dual, and by re-solving.

The capacity prices are the dual values of the capacity rows in the relaxation (the plan model's):
summed over a span they are the rate at which its bound rises with capacity there, at the margin; a
whole unit may bring less than that rate, and whole jobs make steps of it. The worth in whole jobs is
what re-solving tells, between the best values and bounds with and without the unit. So the two may
order sites differently.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.analysis.explain.data import Marginal, with_more
from edgeflow_opt.analysis.explain.room import ask
from edgeflow_opt.solvers.bounds import FLOAT_SLACK, rounded_down
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.price import dual_bound

if TYPE_CHECKING:
    from edgeflow_opt.analysis.explain.room import Clock
    from edgeflow_opt.problem import EpochProblem, Schedule
    from edgeflow_opt.problem.arrays import ProblemArrays

#: Evaluations of the exact dual, whose prices are sharper than those of the hull.
_EXACT_ITERATIONS = 30

#: Spans of a site that are told, beside the whole horizon.
_SPANS = 3

#: Share of the time for re-solving; the rest is for the prices. Less than so many seconds begin none.
_RE_SOLVE_SHARE, _LEAST_S = 0.75, 0.05

#: Price of a slot, relative to the highest of the site, from which it belongs to a span.
_NOTABLE = 0.05


def marginals_of(
    problem: EpochProblem, arrays: ProblemArrays, schedule: Schedule, clock: Clock, seconds: float
) -> tuple[Marginal, ...]:
    """Return the worth of one more unit of each site, over the horizon and in its dearest spans.

    Parameters
    ----------
    schedule
        The best known schedule with its bound.
    seconds
        How long it may take.

    Returns
    -------
    marginals
        Most worth first: by the verified gain, then by what the gain may be, then by the price.
        None for a weighted objective, to which the prices do not belong.
    """
    if problem.objective.weights is not None or not problem.jobs or clock.up:
        return ()
    control = SolveControl(min((1 - _RE_SOLVE_SHARE) * seconds, clock.left_s))
    dual = dual_bound(arrays, control=control, exact_iterations=_EXACT_ITERATIONS)
    found = []
    for k, site in enumerate(problem.sites):
        prices = dual.prices[k]
        spans = [(0, arrays.num_slots)]
        notable = np.nonzero(prices > _NOTABLE * max(1e-12, float(prices.max())))[0]
        groups = [g for g in np.split(notable, np.nonzero(np.diff(notable) > 1)[0] + 1) if len(g)]
        groups.sort(key=lambda group: -float(prices[group].sum()))
        spans += [(int(g[0]), int(g[-1]) + 1) for g in groups[:_SPANS]]
        for a, b in dict.fromkeys(spans):
            found.append(
                Marginal(
                    site=site.name, start=float(arrays.boundaries[a]),
                    end=float(arrays.boundaries[b]), price=float(prices[a:b].sum()),
                )
            )  # fmt: skip
    found.sort(key=lambda marginal: -marginal.price)
    if schedule.objective is None:
        return tuple(found)
    re_solver = _ReSolver(problem, arrays, schedule, clock, seconds)
    # The whole horizon first: what bounds the worth there bounds it in a span.
    ends = (float(arrays.boundaries[0]), float(arrays.boundaries[-1]))
    found.sort(key=lambda marginal: (marginal.start, marginal.end) != ends)
    checked: list[Marginal] = []
    for marginal in found:
        # The same prices bound the richer instance too: L(p) rises by what they say.
        checked.append(re_solver.gain_of(marginal, dual.bound + marginal.price, checked))
    checked.sort(key=_worth, reverse=True)
    return tuple(checked)


def _worth(marginal: Marginal) -> tuple[float, float, float]:
    """Return the key of the order: the verified gain first, then what it may be, then the price."""
    least, most = marginal.gain_at_least, marginal.gain_at_most
    return (
        -1.0 if least is None else least,
        -1.0 if most is None else most,
        marginal.price,
    )


class _ReSolver:
    """Re-solves an instance with one more unit: few rows to their end, not all of them halfway.

    Parameters
    ----------
    problem, arrays, schedule
        The instance and its best known schedule, from which all solves begin.
    clock
        The time of the explanation.
    seconds
        What the worth of capacity may take of it, the prices included.
    """

    def __init__(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        schedule: Schedule,
        clock: Clock,
        seconds: float,
    ) -> None:
        assert schedule.objective is not None
        self._problem, self._schedule, self._clock = problem, schedule, clock
        self._weights = arrays.weight[arrays.has_deadline]
        self._until = clock.elapsed_s + _RE_SOLVE_SHARE * seconds
        self._value = schedule.objective.met_weight
        bound = float(self._weights.sum())
        self._bound = bound if schedule.bound is None else min(bound, schedule.bound)
        # No gain is known better than the instance itself.
        if self._bound > self._value and self._left_s > _LEAST_S:
            result = ask(problem, clock, self._left_s / 2, warm_start=schedule)
            if result.objective is not None and result.objective.met_weight > self._value:
                self._value, self._schedule = result.objective.met_weight, result.schedule
            if result.bound is not None:
                self._bound = min(self._bound, result.bound)

    @property
    def _left_s(self) -> float:
        return min(self._until - self._clock.elapsed_s, self._clock.left_s)

    def gain_of(self, marginal: Marginal, bound: float, others: list[Marginal]) -> Marginal:
        """Return `marginal` with the gain that re-solving shows, as it was if there is no time.

        Parameters
        ----------
        marginal
            A site and a span.
        bound
            On the met weight with the unit.
        others
            Those known by now; in a span that holds this one a unit is worth at least as much.
        """
        left = self._left_s
        if left <= _LEAST_S:
            return marginal
        changed = with_more(self._problem, marginal.site, marginal.start, marginal.end, 1)
        result = ask(changed, self._clock, left / 2, warm_start=self._schedule)
        # What is met without the unit is met with it.
        value = max(self._value, result.objective.met_weight if result.objective else 0.0)
        bound = rounded_down(bound, self._weights, FLOAT_SLACK)
        if result.bound is not None:
            bound = min(bound, result.bound)
        most = bound - self._value
        for other in others:
            holds = other.start <= marginal.start and marginal.end <= other.end
            if other.site == marginal.site and holds and other.gain_at_most is not None:
                most = min(most, other.gain_at_most)
        least = max(0.0, value - self._bound)
        return dataclasses.replace(marginal, gain_at_least=least, gain_at_most=max(least, most))
