"""The whole heuristic: the order of its steps, around the compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray
from edgeflow_opt.solvers.greedy.job_queue import new_queue
from edgeflow_opt.solvers.greedy.options import GreedyOptions
from edgeflow_opt.solvers.greedy.selection import select
from edgeflow_opt.solvers.greedy.steps import fill, minimum_shares, offload, place_on_edge, scale
from edgeflow_opt.solvers.greedy.tables import (
    RULES,
    TIMELINE_STATE,
    Modes,
    Plans,
    Records,
    Timeline,
    forget,
    new_plans,
    new_sketch,
    record,
)


class Heuristic:
    """The three steps, with or without job selection.

    Parameters
    ----------
    options
        How open points are read.
    select_jobs
        Whether jobs are selected under overload, instead of steps 1 and 2 as published.
    carried_out
        Whether plans are carried out to their ends, and not only until the next event.
    """

    def __init__(self, options: GreedyOptions, select_jobs: bool, carried_out: bool) -> None:
        self.options = options
        self.select_jobs = select_jobs
        two_level = options.share == "two_level" or (options.share == "auto" and carried_out)
        self.rules = record(
            RULES,
            late=options.code("late"),
            hopeless_by=options.code("hopeless_by"),
            slack_s=float(options.slack_s),
            two_level=two_level,
            reserved_only=select_jobs or options.late == "nothing",
            rule_1=options.rule_1,
            rule_2=options.rule_2,
            rule_3=options.rule_3,
        )

    def plan(
        self,
        times: FloatArray,
        free: IntArray,
        is_cloud: BoolArray,
        snap: bool,
        jobs: Records,
        modes: Modes,
        chosen: BoolArray | None = None,
    ) -> Planned:
        """Return the plans of all jobs.

        Parameters
        ----------
        times
            (P+1,) breakpoints, seconds; the last one may be +inf.
        free
            (K, P) units in each piece.
        is_cloud
            (K,) kinds of the sites.
        snap
            Whether the pieces are the slots of a grid, never to be split.
        jobs, modes
            See :mod:`edgeflow_opt.solvers.greedy.tables`.
        chosen
            (n,) with job selection: the jobs to be met if they can be; what they leave is for the
            others. None = all.
        """
        num_jobs, pieces = len(jobs), free.shape[1]
        pool = 8 * num_jobs + 1024
        room = pieces if snap else pieces + 4 * num_jobs + 64
        while True:
            run = _Run(self, times, free, is_cloud, snap, jobs, modes, pool, room)
            planned = run.plan(chosen)
            if not run.timeline.state["overflow"]:
                return planned
            pool *= 2
            room = pieces if snap else 2 * room


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What the heuristic says.

    Parameters
    ----------
    plans
        The plan of every job, as segments.
    refused
        (n,) whether admission control refuses the job.
    """

    plans: Plans
    refused: BoolArray


class _Run:
    """One attempt at planning, with room for `pool` segments and `room` pieces of the timeline."""

    def __init__(
        self,
        heuristic: Heuristic,
        times: FloatArray,
        free: IntArray,
        is_cloud: BoolArray,
        snap: bool,
        jobs: Records,
        modes: Modes,
        pool: int,
        room: int,
    ) -> None:
        num_jobs = len(jobs)
        self._heuristic = heuristic
        self._times, self._free = times, free
        self._jobs = jobs
        self.timeline = Timeline(
            times=np.empty(room + 1),
            free=np.empty((len(is_cloud), room), dtype=np.int64),
            is_cloud=is_cloud,
            state=record(TIMELINE_STATE, snap=snap),
        )
        self._plans = new_plans(num_jobs, pool)
        levels = int(np.diff(modes.level_start, axis=1).max(initial=1))
        #: The arguments that all kernels have in common.
        self._groups = (new_sketch(room, levels), self.timeline, self._plans, jobs, modes)
        self._queue = new_queue(num_jobs)
        self._listed = np.empty(num_jobs, dtype=np.int64)
        self._start_again()

    def plan(self, chosen: BoolArray | None = None) -> Planned:
        """Plan all jobs in deadline order, the chosen ones first.

        Those that must be met come first, and of equal deadlines the larger weight, then the
        earlier in the list. Best-effort jobs only get left-overs.
        """
        jobs, options, rules = self._jobs, self._heuristic.options, self._heuristic.rules
        order = np.lexsort((-jobs["weight"], jobs["deadline"], ~jobs["must"]))
        refused = np.zeros(len(jobs), dtype=np.bool_)
        has_deadline = jobs["deadline"] < np.inf
        order = order[has_deadline[order]]
        if options.admission != "none":
            refused = self._refused(order)
            order = order[~refused[order]]
        if self._heuristic.select_jobs:
            mine = np.ones(len(order), dtype=np.bool_) if chosen is None else chosen[order]
            ranked = np.concatenate([order[mine], order[~mine]])
            num_chosen = int(mine.sum())
            select(*self._groups, rules, ranked, num_chosen, self._queue, self._listed)
        else:
            self._as_published(order)
        if options.elastic:
            scale(*self._groups, rules, order, self._queue)
        if options.fill:
            self._queue["job"][0] = 0
            best_effort = np.flatnonzero(~has_deadline & ~refused)
            fill(*self._groups, order, best_effort, self._queue, self._listed)
        return Planned(self._plans, refused)

    def _as_published(self, order: IntArray) -> None:
        """Plan steps 1 and 2, and step 1 again around the jobs on the edge."""
        misses = self._shares(order)
        listed = order if self._heuristic.options.edge_order == "deadline" else np.sort(order)
        mode_of = np.full(len(self._jobs), -1)
        moved = self._listed
        count = offload(
            *self._groups, self._heuristic.rules, listed, misses, self._queue, moved, mode_of
        )
        if count > 0:
            self._start_again()
            place_on_edge(*self._groups, moved[:count], mode_of)
            self._shares(order)

    def _refused(self, order: IntArray) -> BoolArray:
        """Return which of the fresh jobs admission control refuses, in their order of the list."""
        fresh: BoolArray = self._jobs["fresh"]
        if self._heuristic.options.admission == "elasticflow":
            return fresh if self._misses(order) > 0 else np.zeros_like(fresh)
        refused = fresh.copy()
        misses = self._misses(order[~refused[order]])
        for j in np.flatnonzero(fresh):
            refused[j] = False
            if self._misses(order[~refused[order]]) > misses:
                refused[j] = True
        return refused

    def _misses(self, order: IntArray) -> int:
        """Return how many of the jobs `order` would miss, and forget their plans."""
        misses = self._shares(order)
        self._start_again()
        return misses

    def _shares(self, order: IntArray) -> int:
        return minimum_shares(*self._groups, self._heuristic.rules, order, self._listed)

    def _start_again(self) -> None:
        """Forget all plans and go back to the timeline as it was at first."""
        pieces = self._free.shape[1]
        self.timeline.state["size"] = pieces
        self.timeline.times[: pieces + 1] = self._times
        self.timeline.free[:, :pieces] = self._free
        forget(self._plans)
