"""Compilation ahead of time, so that it never eats a caller's time limit."""

from __future__ import annotations

from edgeflow_opt.formulations.plans import empty_plan, walk
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
from edgeflow_opt.problem.arrays import arrays_of


def warm_up() -> None:
    """Compile (or load from the cache on disk) every kernel of the engine on a tiny instance.

    Takes most of a minute after installation and a fraction of a second later.
    """
    from edgeflow_opt.solvers.price.dual import HullDual, minimise
    from edgeflow_opt.solvers.price.exact_dual import ExactDual
    from edgeflow_opt.solvers.price.pricing_data import pricing_data
    from edgeflow_opt.solvers.price.search import PriceSearch

    arrays = arrays_of(_tiny())
    walk(arrays, empty_plan(arrays))
    data = pricing_data(arrays)
    dual = HullDual(data)
    exact = ExactDual(dual, minimise(dual, None, 2), lambda: False)
    exact.step()
    search = PriceSearch(data, exact.best, 0)
    search.construct()
    search.improve(2)
    search.filled_plan(arrays, left_over=True)


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
