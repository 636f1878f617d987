"""The clairvoyant bound: how many deadlines of a whole trace can be met at all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.clairvoyant.intervals import event_times, interval_data, merged
from edgeflow_opt.clairvoyant.refutation import Refuter
from edgeflow_opt.clairvoyant.relaxation import MET, IntervalDual, Relaxed
from edgeflow_opt.clairvoyant.schedules import (
    KnownSchedule,
    carried_out,
    grid_slots,
    halved,
    planned,
    simulated,
)
from edgeflow_opt.errors import UsageError, is_ctrl_c
from edgeflow_opt.problem.schedule import Limit
from edgeflow_opt.problem.values import is_finite, is_whole, shown
from edgeflow_opt.simulation.inputs import check_inputs
from edgeflow_opt.solvers.base import SolveOptions
from edgeflow_opt.solvers.bounds import FLOAT_SLACK, attainable_step, rounded_down
from edgeflow_opt.solvers.front import checked_options
from edgeflow_opt.solvers.kernels import CLAIRVOYANT, GREEDY, PRICE, warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.problem import Allocation, Job, Outcome, Site

#: Intervals beyond which event times are merged.
MOST_INTERVALS = 2_000

#: Evaluations of the linear bound: they end where they bring less than a ten-thousandth.
_ROUNDS, _ITERATIONS, _PROGRESS = 5, 100, 1e-4

#: Shares of the time: of all for the linear bound, of what is left then for simulations, and of
#: what is left after these for the plan.
_LINEAR_SHARE, _SIMULATION_SHARE, _SCHEDULE_SHARE = 0.3, 0.5, 0.4
#: Share of simulations where the grid of a plan would be too coarse to be of use.
_ALONE_SHARE = 0.8

#: Slots of the finer grid for each of the event times.
_FINER = 3

#: Online policies whose histories are schedules to begin with, and whether they are also shown only
#: the jobs that prices choose: the cheapest first, so that long traces have a schedule in time.
_POLICIES = (("srpt", True), ("edgeflow-select", False), ("edgeflow-select", True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClairvoyantBound:
    """What is possible on a trace when all arrivals are known.

    Parameters
    ----------
    jobs
        Jobs with a deadline.
    bound
        Proven: no schedule, online or not, has a higher met weight (with weights of 1: meets more
        jobs). Rounded down to an attainable value.
    linear_bound
        The bound of the linear program alone, not rounded.
    best_known
        Met weight of the best schedule found; None where none was looked for.
    source
        How that schedule was found; None = there is none.
    allocations, outcomes
        That schedule: what every job holds when, and what becomes of every job of the trace.
    events, intervals
        Event times of the trace less one, and intervals that were used: fewer where event times
        were merged.
    nodes
        Nodes of the search that brought the bound below the linear one.
    limit
        What ended the work before bound and best schedule met; None = they meet, or nothing more
        could be tried.
    seconds
        Wall time.
    """

    jobs: int
    bound: float
    linear_bound: float
    best_known: float | None
    source: str | None
    allocations: tuple[Allocation, ...]
    outcomes: tuple[Outcome, ...]
    events: int
    intervals: int
    nodes: int
    limit: Limit | None
    seconds: float

    @property
    def gap(self) -> float | None:
        """Relative gap between bound and best schedule; None where it means nothing."""
        if self.best_known is None:
            return None
        if self.bound <= self.best_known:
            return 0.0
        return (self.bound - self.best_known) / self.best_known if self.best_known else None

    def share(self, met_weight: float) -> float | None:
        """Return `met_weight` over the bound; None where the bound is 0."""
        return met_weight / self.bound if self.bound > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-ready fields of ``edgeflow-bound/1``."""
        return {
            "jobs": self.jobs,
            "bound": self.bound,
            "best_known": self.best_known,
            "linear_bound": self.linear_bound,
            "gap": self.gap,
            "source": self.source,
            "events": self.events,
            "intervals": self.intervals,
            "nodes": self.nodes,
            "limit": None if self.limit is None else str(self.limit),
            "seconds": self.seconds,
        }


def clairvoyant_bound(
    jobs: Sequence[Job],
    sites: Sequence[Site],
    *,
    time_limit_s: float | None = 30.0,
    schedule: bool = True,
    max_intervals: int = MOST_INTERVALS,
    seed: int = 0,
    workers: int = 2,
    deterministic: bool = False,
) -> ClairvoyantBound:
    """Return an upper bound on the met weight of a whole trace, and the best schedule found.

    The bound holds for every schedule in continuous time, online or not, whatever its overheads:
    :mod:`~edgeflow_opt.clairvoyant.intervals` says why. Its linear program is solved by prices,
    then brought down by branching on who is met
    (:mod:`~edgeflow_opt.clairvoyant.refutation`). The schedules come from planning the whole trace
    on its event times (:mod:`~edgeflow_opt.clairvoyant.schedules`) under the jobs' own losses.

    Parameters
    ----------
    jobs
        The trace, as for :func:`~edgeflow_opt.simulation.simulate`.
    sites
        The cluster with its capacity over the whole time.
    time_limit_s
        Wall seconds; None = until nothing more can be tried.
    schedule
        Whether a schedule is looked for; else all the time is for the bound.
    max_intervals
        Event times are merged where there are more; at least 1. Merging weakens the bound.
    seed, workers, deterministic
        Of the search for a schedule, as in :class:`~edgeflow_opt.solvers.SolveOptions`. Under a
        time limit results depend on the speed of the machine.

    Returns
    -------
    result
        On Ctrl-C what is known by then, with limit ``interrupted``.

    Raises
    ------
    InstanceError
        If jobs or sites break a rule; all faults are named.
    UsageError
        If an option makes no sense.
    """
    warm_up(CLAIRVOYANT, *((GREEDY, PRICE) if schedule else ()))
    begin = time.perf_counter()
    if time_limit_s is not None and not (is_finite(time_limit_s) and time_limit_s > 0.0):
        raise UsageError(
            "option time_limit_s: must be a finite number above 0 or None, got "
            f"{shown(time_limit_s)}"
        )
    if not (is_whole(max_intervals) and max_intervals >= 1):
        raise UsageError(
            f"option max_intervals: must be a whole number >= 1, got {shown(max_intervals)}"
        )
    checked_options(
        SolveOptions(), {"seed": seed, "workers": workers, "deterministic": deterministic}
    )
    jobs, sites = check_inputs(jobs, sites)
    work = _Work(jobs, sites, max_intervals)
    limit_s = math.inf if time_limit_s is None else time_limit_s
    end = begin + limit_s
    try:
        work.linear(_until(begin + _LINEAR_SHARE * limit_s))
        if schedule and not work.settled:
            left_s = max(0.05, end - time.perf_counter())
            share = _ALONE_SHARE if work.coarse else _SIMULATION_SHARE
            work.simulate(_until(time.perf_counter() + share * left_s))
            left_s = max(0.05, end - time.perf_counter())
            if not work.settled and not work.coarse:
                work.plan(
                    None if time_limit_s is None else _SCHEDULE_SHARE * left_s,
                    seed=seed, workers=workers, deterministic=deterministic,
                )  # fmt: skip
        chosen = work.refute(_until(end))
        left_s = end - time.perf_counter()
        if schedule and chosen and not work.coarse and left_s > 0.0:
            # These may be met together as far as the relaxation can tell.
            work.plan(
                left_s if time_limit_s is not None else None,
                seed=seed, workers=workers, deterministic=deterministic, chosen=chosen,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemError) as problem:
        if not is_ctrl_c(problem):
            raise
        work.limit = Limit.INTERRUPTED
    return work.result(schedule, time.perf_counter() - begin)


def _until(end: float) -> Callable[[], bool]:
    """Return a test of whether the time `end` has come."""
    return lambda: time.perf_counter() >= end


class _Work:
    """What is known so far."""

    def __init__(self, jobs: Sequence[Job], sites: Sequence[Site], max_intervals: int) -> None:
        self.jobs, self.sites = jobs, sites
        self.weights = [job.weight for job in jobs if job.deadline is not None]
        self.step = attainable_step(self.weights)
        self.times = event_times(jobs, sites)
        self.cuts = merged(self.times, max_intervals)
        self.dual = IntervalDual(interval_data(jobs, sites, self.cuts))
        self.best: KnownSchedule | None = None
        self.root: Relaxed | None = None
        self.linear_bound = self.bound = float(sum(self.weights))
        self.nodes = 0
        self.limit: Limit | None = None

    @property
    def settled(self) -> bool:
        """Whether the best schedule reaches the bound, or the bound is 0."""
        known = 0.0 if self.best is None else self.best.met_weight
        return self.bound <= known + 1e-9 * max(1.0, known)

    @property
    def coarse(self) -> bool:
        """Whether a plan would merge most event times: short jobs then do not fit its slots."""
        return 2 * grid_slots(self.jobs) < len(self.times)

    def linear(self, stopped: Callable[[], bool]) -> None:
        """Minimise the dual of the linear program."""
        fate = np.zeros(self.dual.data.num_jobs, dtype=np.int64)
        prices, root, reach = None, None, None
        for _ in range(_ROUNDS):
            found = self.dual.minimise(fate, prices, _ITERATIONS, reach=reach, stopped=stopped)
            gained = math.inf if root is None else root.bound - found.bound
            if root is None or found.bound < root.bound:
                root = self.root = found
                self.linear_bound = min(self.linear_bound, max(0.0, root.bound))
                self.bound = rounded_down(self.linear_bound, self.weights, FLOAT_SLACK)
            if gained < _PROGRESS * max(1.0, abs(root.bound)) or stopped():
                break
            prices, reach = root.prices, 0.02

    def simulate(self, stopped: Callable[[], bool]) -> None:
        """Take the histories of online policies on all jobs, and on those that prices choose."""
        self._keep(carried_out("nothing runs", self.jobs, self.sites, ()))
        assert self.root is not None
        worth = self.dual.data.job[self.root.share > 0.5]
        chosen = {self.jobs[index].id for index in worth.tolist()}
        for policy, by_price in _POLICIES:
            if not self.settled and not stopped():
                shown = chosen if by_price else None
                found = simulated(policy, self.jobs, self.sites, shown, stopped)
                if found is not None:
                    self._keep(found)

    def plan(
        self,
        time_limit_s: float | None,
        *,
        seed: int,
        workers: int,
        deterministic: bool,
        chosen: Collection[str] | None = None,
    ) -> None:
        """Plan the whole trace, or on a finer grid the jobs `chosen` of it."""
        times = self.times
        if chosen is not None:
            times = halved(times, min(_FINER * len(times), grid_slots(self.jobs)))
        found = planned(
            self.jobs, self.sites, times, time_limit_s=time_limit_s, seed=seed,
            workers=workers, deterministic=deterministic, chosen=chosen,
        )  # fmt: skip
        self._keep(found)
        if found.limit is Limit.INTERRUPTED:
            raise KeyboardInterrupt

    def _keep(self, found: KnownSchedule) -> None:
        if self.best is None or found.met_weight > self.best.met_weight:
            self.best = found

    def refute(self, stopped: Callable[[], bool]) -> set[str]:
        """Bring the bound down, value by value, as long as it is proven that it is not reached.

        Returns
        -------
        chosen
            Ids of jobs that reach the bound in the relaxation; empty where none are known.
        """
        if self.root is None or self.step is None:
            return set()
        refuter = Refuter(self.dual, stopped)
        try:
            while not self.settled and self.bound > 0.0:
                if not refuter.refuted(self.bound, self.root):
                    if stopped():
                        self.limit = Limit.TIME
                    break
                self.bound = max(0.0, self.bound - self.step)
        finally:
            self.nodes = refuter.nodes
        if self.settled or refuter.reached is None:
            return set()
        indices = self.dual.data.job[refuter.reached == MET]
        return {self.jobs[index].id for index in indices.tolist()}

    def result(self, schedule: bool, seconds: float) -> ClairvoyantBound:
        """Return what is known."""
        best = self.best
        if schedule and best is None:
            best = carried_out("nothing runs", self.jobs, self.sites, ())
        return ClairvoyantBound(
            jobs=len(self.weights),
            bound=self.bound,
            linear_bound=self.linear_bound,
            best_known=None if best is None else best.met_weight,
            source=None if best is None else best.source,
            allocations=() if best is None else best.allocations,
            outcomes=() if best is None else best.outcomes,
            events=max(0, len(self.times) - 1),
            intervals=max(0, len(self.cuts) - 1),
            nodes=self.nodes,
            limit=self.limit,
            seconds=seconds,
        )
