"""Packing: a plan that has no job more to be found by ruin and recreate gets one put in.

Ruin and recreate moves what is left about, at equal worth; then a job is put in that does not fit
(:meth:`~edgeflow_opt.solvers.price.search.PriceSearch.put_in_more`), from the best plan known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.solvers.price.search import PriceSearch

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import IntArray
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve

#: Moves of ruin and recreate between two attempts.
_MOVES = 500

#: Attempts where the result must not depend on the clock.
_STEADY_ATTEMPTS = 30


def pack_on(work: LevelSolve, control: SolveControl, seed: int) -> None:
    """Put jobs into the best plan of `work` until `control` ends it.

    Does nothing without prices, a plan, or where level 1 is settled.

    Parameters
    ----------
    control
        The part of the clock that this may take; deterministic solves end by themselves.
    seed
        Of all that is random.
    """
    if work.dual is None or work.incumbent.plan is None:
        return
    data = pricing_data(work.arrays)
    search = PriceSearch(data, work.dual, seed)
    must = data.must_meet & data.priced
    adopted: IntArray | None = None
    attempts = 0
    while not control.stopped and not work.closed:
        if work.options.deterministic and attempts == _STEADY_ATTEMPTS:
            break
        attempts += 1
        plan = work.incumbent.plan
        if plan is not adopted:
            adopted = plan
            rows, whole = data.in_kept_modes(plan)
            met = walk(work.arrays, plan).met & whole & data.priced
            if data.weight[met].sum() > data.weight[search.met].sum() + 1e-9:
                search.adopt(rows, met)
        if not search.met[must].all():
            break
        if search.improve(_MOVES) + search.put_in_more(lambda: control.stopped) > 0.0:
            work.incumbent.offer(search.filled_plan(work.arrays, left_over=False), "packing")
    work.statistics["packings"] = work.statistics.get("packings", 0) + attempts
