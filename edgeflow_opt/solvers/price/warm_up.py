"""Compilation ahead of time, so that it never eats a caller's time limit."""

from __future__ import annotations

import numpy as np

from edgeflow_opt.formulations.plans import empty_plan, walk
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
from edgeflow_opt.problem.arrays import arrays_of


def warm_up() -> None:
    """Compile (or load from the cache on disk) every kernel of the engine on a tiny instance.

    Takes most of a minute after installation and a fraction of a second later.
    """
    from edgeflow_opt.solvers.price.dual import HullDual, minimise
    from edgeflow_opt.solvers.price.exact_dual import ExactDual
    from edgeflow_opt.solvers.price.insertion_kernels import workspace
    from edgeflow_opt.solvers.price.plan_kernels import cheapest_plans
    from edgeflow_opt.solvers.price.pricing_data import pricing_data
    from edgeflow_opt.solvers.price.search import INSERTION_BINS, PriceSearch

    arrays = arrays_of(_tiny())
    walk(arrays, empty_plan(arrays))
    data = pricing_data(arrays)
    dual = HullDual(data)
    exact = ExactDual(dual, minimise(dual, None, 2), lambda: False)
    exact.step()
    search = PriceSearch(data, exact.best, 0)
    search.construct()
    search.improve(2)
    # In one unit both jobs without losses are too many, so that what is too much is shifted.
    crowded = data._replace(
        capacity=np.minimum(data.capacity, 1),
        tables=data.tables._replace(capacity=np.minimum(data.capacity, 1)),
    )
    search = PriceSearch(crowded, exact.best, 0)
    search.construct()
    search.put_in_more(lambda: False)
    search.filled_plan(arrays, left_over=True)
    jobs = np.flatnonzero(data.priced)
    space, rows = workspace(data, INSERTION_BINS), np.full((len(jobs), 4), -1, dtype=np.int64)
    prices, cost = exact.best.prices, np.empty(len(jobs))
    cheapest_plans(data.tables, jobs, prices, data.capacity, space, cost, rows)


def _tiny() -> EpochProblem:
    """Return an instance on which every kernel is called: it is overloaded, and has all kinds."""
    modes = (Mode(site="cloud", gpus=1, rate=1.0), Mode(site="cloud", gpus=2, rate=1.7))
    jobs = [
        Job(
            id=f"j{index}",
            deadline=35.0,
            work=20.0 + index,
            modes=modes,
            restart_s=5.0 * (index % 2),
            malleable=index < 4,
        )
        for index in range(6)
    ]
    jobs.append(Job(id="best effort", deadline=None, work=50.0, modes=modes))
    return EpochProblem(
        grid=Grid.uniform(0.0, 10.0, 4),
        sites=(Site(name="cloud", kind="cloud", capacity=((0.0, 2),)),),
        jobs=tuple(jobs),
    )
