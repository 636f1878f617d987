"""Solving beside other work of an event loop."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import TYPE_CHECKING, Any

from edgeflow_opt.solvers.base import SolveOptions
from edgeflow_opt.solvers.front import checked_options, solve

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.solvers.base import SolveResult


async def solve_async(
    problem: EpochProblem,
    solver: str = "auto",
    options: SolveOptions | None = None,
    **changes: Any,
) -> SolveResult:
    """Solve as :func:`~edgeflow_opt.solvers.front.solve` does, in a thread, while the loop goes on.

    Where the task is cancelled (``asyncio.timeout``, Ctrl-C under ``asyncio.run``), so is the solve,
    and the incumbent is lost with it. Who wants the incumbent at a certain time gives
    ``time_limit_s``; who wants it on demand sets the event ``cancelled`` of the options.

    Parameters
    ----------
    problem, solver, options, **changes
        As for ``solve``; ``on_progress`` is called in the thread.

    Returns
    -------
    result
        As of ``solve``.

    Raises
    ------
    EdgeflowError
        Whatever ``solve`` raises.
    asyncio.CancelledError
        If the task is cancelled; the solver has been asked to stop then, and soon does.
    """
    options = checked_options(options or SolveOptions(), changes)
    cancelled = options.cancelled or threading.Event()
    options = dataclasses.replace(options, cancelled=cancelled)
    try:
        return await asyncio.to_thread(solve, problem, solver, options)
    except asyncio.CancelledError:
        cancelled.set()
        raise
