"""Solving beside other work of an event loop."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
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
    """Solve in a thread of its own, while the loop goes on.

    As :func:`~edgeflow_opt.solvers.front.solve`. Begun at once, so that the limit holds however many
    solves there are; more at a time than there are cores share them.

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
    # Not the few threads that the loop keeps for everybody: in their queue a solve would wait beyond
    # its limit, and others behind it.
    threads = ThreadPoolExecutor(1, "edgeflow-solve")
    work = threads.submit(copy_context().run, solve, problem, solver, options)
    threads.shutdown(wait=False)
    try:
        return await asyncio.wrap_future(work)
    except asyncio.CancelledError:
        cancelled.set()
        raise
