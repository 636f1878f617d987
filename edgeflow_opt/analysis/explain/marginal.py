"""What one more unit is worth: by the prices of the dual, and by re-solving.

The capacity prices are the dual values of the capacity rows in the relaxation (the plan model's):
summed over a span they estimate the worth of one more unit there. The worth in whole jobs is what
re-solving tells, between the best values and bounds with and without the unit.
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
        Dearest first. None for a weighted objective, to which the prices do not belong.
    """
    if problem.objective.weights is not None or not problem.jobs or clock.up:
        return ()
    control = SolveControl(min(0.4 * seconds, clock.left_s))
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
    value = schedule.objective
    if value is None:
        return tuple(found)
    weights = arrays.weight[arrays.has_deadline]
    until = clock.elapsed_s + 0.6 * seconds
    checked = []
    for place, marginal in enumerate(found):
        left = min(until - clock.elapsed_s, clock.left_s)
        if left > 0.05:
            limit = max(0.05, left / (len(found) - place))
            # The same prices bound the richer instance too: L(p) rises by what they say.
            most = rounded_down(dual.bound + marginal.price, weights, FLOAT_SLACK)
            marginal = _resolved(problem, schedule, marginal, most, clock, min(limit, left))
        checked.append(marginal)
    return tuple(checked)


def _resolved(
    problem: EpochProblem,
    schedule: Schedule,
    marginal: Marginal,
    bound_with: float,
    clock: Clock,
    seconds: float,
) -> Marginal:
    """Return `marginal` with the gain that re-solving shows.

    `bound_with` is a bound with the unit.
    """
    changed = with_more(problem, marginal.site, marginal.start, marginal.end, 1)
    result = ask(changed, clock, seconds)
    old = schedule.objective
    assert old is not None
    value, bound = old.met_weight, schedule.bound
    # What is met without the unit is met with it.
    new = max(value, result.objective.met_weight if result.objective else value)
    least = 0.0 if bound is None else max(0.0, new - bound)
    if result.bound is not None:
        bound_with = min(bound_with, result.bound)
    most = max(0.0, bound_with - value)
    return dataclasses.replace(marginal, gain_at_least=least, gain_at_most=most)
