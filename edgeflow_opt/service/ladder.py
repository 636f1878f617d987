"""The upper rungs of a decision: solvers, the better one the later, each told as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeflow_opt.errors import EdgeflowError
from edgeflow_opt.problem import Limit
from edgeflow_opt.solvers import solve

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, Schedule
    from edgeflow_opt.solvers.capacity_prices import CapacityPrices

#: The task of :class:`~edgeflow_opt.service.pool.SolverPool` that is :func:`climb`.
CLIMB = "edgeflow_opt.service.ladder:climb"

#: Share of the time left that a rung may take where others follow.
_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class RungReport:
    """What became of one rung.

    Parameters
    ----------
    rung
        Name of the solver, or ``plan`` for the last plan repaired.
    outcome
        ``used``, ``ready`` (another one was at least as good), ``late``, ``failed``, ``skipped``.
    seconds
        Wall time.
    value
        Level 1 reached; None = no plan.
    bound
        Proven bound on level 1; None = none.
    message
        What went wrong; empty where nothing did.
    """

    rung: str
    outcome: str
    seconds: float
    value: float | None = None
    bound: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RungNews:
    """What a rung has found.

    Parameters
    ----------
    rung
        Name of the solver.
    schedule
        What it returned, with or without a plan; None = it failed.
    prices
        Capacity prices behind its bound; None = none.
    message
        What went wrong; empty where nothing did.
    seconds
        Wall time.
    """

    rung: str
    schedule: Schedule | None = None
    prices: CapacityPrices | None = None
    message: str = ""
    seconds: float = 0.0


def climb(
    problem: EpochProblem,
    rungs: Sequence[str],
    time_limit_s: float,
    seed: int,
    start: Schedule | None,
    prices: CapacityPrices | None,
    tell: Callable[[RungNews], None],
) -> None:
    """Solve `problem` by one solver after the other and tell of each.

    Parameters
    ----------
    problem
        The instance.
    rungs
        Names of solvers, the quickest first.
    time_limit_s
        Wall seconds for all.
    seed
        Of the solvers.
    start
        A valid schedule to begin from; None = none.
    prices
        Capacity prices to begin from; None = none.
    tell
        Takes what each has found.
    """
    begin = time.perf_counter()
    for position, rung in enumerate(rungs):
        left = time_limit_s - (time.perf_counter() - begin)
        if left <= 0:
            return
        share = 1.0 if position == len(rungs) - 1 else _SHARE
        began = time.perf_counter()
        try:
            result = solve(
                problem,
                rung,
                time_limit_s=share * left,
                seed=seed,
                workers=1,
                warm_start=start,
                prices=prices,
            )
        except (EdgeflowError, MemoryError) as fault:
            message = f"{type(fault).__name__}: {fault}"
            tell(RungNews(rung=rung, message=message, seconds=time.perf_counter() - began))
            continue
        seconds = time.perf_counter() - began
        prices = result.prices or prices
        tell(RungNews(rung=rung, schedule=result.schedule, prices=result.prices, seconds=seconds))
        if result.limit is Limit.INTERRUPTED:
            return
        value = result.objective
        if value is not None and (
            start is None or start.objective is None or value.better_than(start.objective)
        ):
            start = result.schedule
