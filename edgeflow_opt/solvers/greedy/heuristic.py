"""The whole heuristic: the order of its steps, around the compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray
from edgeflow_opt.solvers.greedy.job_queue import new_queue
from edgeflow_opt.solvers.greedy.options import GreedyOptions
from edgeflow_opt.solvers.greedy.tables import (
    RULES,
    TIMELINE_STATE,
    Capacity,
    Desk,
    Modes,
    Plans,
    Record,
    Records,
    Timeline,
    new_plans,
    new_sketch,
    record,
)
from edgeflow_opt.solvers.greedy.whole import HELD, HOLDERS, WORK_ROWS, plan_all


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
    keeps_room
        Whether the work space is kept from one call to the next. What a call returns is then void
        with the next one, and calls may not overlap.
    """

    def __init__(
        self,
        options: GreedyOptions,
        select_jobs: bool,
        carried_out: bool,
        *,
        keeps_room: bool = False,
    ) -> None:
        self.keeps_room = keeps_room
        self._room: _Room | None = None
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
            one_by_one=options.rule_3_ends == "none_late",
            admission=options.code("admission"),
            by_deadline=options.edge_order == "deadline",
            select_jobs=select_jobs,
            wait_on_edge=select_jobs and options.wait_on_edge,
            elastic=options.elastic,
            fill=options.fill,
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
        now_only: bool = False,
        resolution_s: float = 0.0,
    ) -> Planned:
        """Return the plans of all jobs in deadline order.

        Those that must be met come first, and of equal deadlines the larger weight, then the
        earlier in the list. Best-effort jobs only get left-overs.

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
        now_only
            Whether only what is held in the first piece, and the refused jobs, will be looked at.
            The plans are then what they would be up to there, and else maybe not made at all.
        resolution_s
            Seconds that the clock of the caller cannot tell apart: the late, higher level of a
            share of two levels that would begin so soon after now begins now.
        """
        self.rules["now_only"] = now_only
        self.rules["resolution_s"] = resolution_s
        num_jobs, pieces = len(jobs), free.shape[1]
        pool = 8 * num_jobs + 1024
        cuts = pieces if snap else pieces + 4 * num_jobs + 64
        if chosen is None:
            chosen = np.ones(num_jobs, dtype=np.bool_)
        # No job has more levels than there are in all; to count is dearer than the room.
        levels = len(modes.level_mode)
        while True:
            room = self._room
            if room is None or not room.suits(num_jobs, pool, cuts, levels, is_cloud, snap):
                room = _Room(
                    2 * num_jobs + 64, 2 * pool, cuts if snap else 2 * cuts, levels, is_cloud, snap
                )
                self._room = room if self.keeps_room else None
            planned = room.plan(self.rules, Capacity(times, free), jobs, modes, chosen)
            if not room.timeline.state["overflow"]:
                return planned
            pool *= 4
            cuts = pieces if snap else 4 * cuts


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What the heuristic says.

    Parameters
    ----------
    plans
        The plan of every job, as segments.
    refused
        (n,) whether admission control refuses the job.
    holders, held
        The jobs that hold something at time 0, and their modes.
    """

    plans: Plans
    refused: BoolArray
    holders: IntArray
    held: IntArray


class _Room:
    """Room for planning `jobs` jobs, with `pool` segments and `pieces` pieces of the timeline."""

    def __init__(
        self, jobs: int, pool: int, pieces: int, levels: int, is_cloud: BoolArray, snap: bool
    ) -> None:
        self._jobs, self._pool, self._pieces, self._levels = jobs, pool, pieces, levels
        self.timeline = Timeline(
            times=np.empty(pieces + 1),
            free=np.empty((len(is_cloud), pieces), dtype=np.int64),
            is_cloud=is_cloud,
            state=record(TIMELINE_STATE, snap=snap),
        )
        self._sketch = new_sketch(pieces, levels)
        self._plans = new_plans(jobs, pool)
        self._queue = new_queue(jobs)
        self._known = np.empty(jobs, dtype=np.bool_)
        self._rows = np.empty((WORK_ROWS, jobs), dtype=np.int64)

    def suits(
        self, jobs: int, pool: int, pieces: int, levels: int, is_cloud: BoolArray, snap: bool
    ) -> bool:
        """Whether there is room for so many, on the same sites."""
        return (
            jobs <= self._jobs
            and pool <= self._pool
            and pieces <= self._pieces
            and levels <= self._levels
            and is_cloud is self.timeline.is_cloud
            and snap == self.timeline.state["snap"]
        )

    def plan(
        self, rules: Record, capacity: Capacity, jobs: Records, modes: Modes, chosen: BoolArray
    ) -> Planned:
        """Plan all jobs; see :func:`~edgeflow_opt.solvers.greedy.whole.plan_all`."""
        num_jobs = len(jobs)
        plans = Plans(self._plans.table[:num_jobs], self._plans.pool, self._plans.state)
        refused = np.zeros(num_jobs, dtype=np.bool_)
        self.timeline.state["overflow"] = False
        desk = Desk(jobs, modes, rules, self.timeline, plans, self._sketch)
        count = plan_all(desk, capacity, chosen, refused, self._queue, self._known, self._rows)
        return Planned(plans, refused, self._rows[HOLDERS, :count], self._rows[HELD, :count])
