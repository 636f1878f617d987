"""Two ways on with level 1, side by side in two threads.

Plan and bound are shared: what one finds, the other prunes with, and once both meet both end.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.solvers.price.search import PriceSearch

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.lexicographic.level_solve import LevelSolve

#: Seconds between two looks for Ctrl-C while the other thread comes to its end.
_POLL_S = 0.05

#: Wall seconds after which the search begins anew, and its moves between two looks at the clock.
_ROUND_S, _MOVES = 1.5, 50


def side_by_side(
    work: LevelSolve,
    seconds: float,
    here: Callable[[SolveControl], None],
    beside: Callable[[SolveControl], None],
) -> None:
    """Run `here`, and `beside` it as long as it runs, until level 1 is settled or time is up.

    Parameters
    ----------
    seconds
        What both together may take at most, wall time.
    here
        Runs in the calling thread, and so takes Ctrl-C.
    beside
        Runs in a thread of its own.

    Raises
    ------
    Exception
        What either raises, once both are at an end.
    """
    faults: list[BaseException] = []
    done = threading.Event()
    part = work.control.part(seconds, needless=lambda: work.closed or done.is_set() or bool(faults))

    def other() -> None:
        try:
            beside(part)
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=other, daemon=True, name="edgeflow-beside")
    thread.start()
    try:
        with part.interruptible():
            here(part)
    except Exception as fault:
        faults.insert(0, fault)
    done.set()
    while thread.is_alive():
        with part.interruptible():
            thread.join(_POLL_S)
    if faults:
        raise faults[0]


def search_on(work: LevelSolve, control: SolveControl) -> None:
    """Look for a better plan by ruin and recreate at the prices of `work`, until `control` ends it.

    Bounds meet the best value long before a plan does, on instances of up to some hundred jobs: the
    plan of one job more is what there is to find. From time to time the search begins anew, from
    another seed or from the best plan known.
    """
    if work.dual is None:
        return
    data = pricing_data(work.arrays)
    must = data.priced & data.must_meet
    rounds = itertools.count(work.options.seed + 3)
    while not control.stopped:
        search = PriceSearch(data, work.dual, next(rounds))
        search.construct()
        until = control.elapsed_s + _ROUND_S
        while not control.stopped and control.elapsed_s < until:
            search.improve(_MOVES)
            known = work.incumbent.level_1
            if not search.met[must].all():
                continue
            if known is None or float(data.weight[search.met].sum()) > known + 1e-9:
                plan = search.filled_plan(work.arrays, left_over=False)
                work.incumbent.offer(plan, "price")
