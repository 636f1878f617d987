"""The whole heuristic as one compiled call, and the Python around it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray
from edgeflow_opt.solvers.greedy.options import GreedyOptions
from edgeflow_opt.solvers.greedy.selection import select
from edgeflow_opt.solvers.greedy.steps import edge_run, fill, minimum_shares, offload, scale
from edgeflow_opt.solvers.greedy.tables import (
    Jobs,
    Modes,
    Plans,
    Rules,
    Sketch,
    Timeline,
    new_plans,
    new_sketch,
)
from edgeflow_opt.solvers.greedy.timeline import commit, restore

ADMIT_ALL, ADMIT_BATCH, ADMIT_EACH = 0, 1, 2


def rules_of(options: GreedyOptions, select_jobs: bool, carried_out: bool) -> Rules:
    """Return `options` as the kernels read them.

    Parameters
    ----------
    options
        The options.
    select_jobs
        Whether jobs are selected under overload.
    carried_out
        Whether plans are carried out to their ends, and not only until the next event.
    """
    two_level = options.share == "two_level" or (options.share == "auto" and carried_out)
    return Rules(
        select=select_jobs,
        two_level=two_level,
        late=options.code("late"),
        admission=options.code("admission"),
        hopeless_by=options.code("hopeless_by"),
        by_deadline=options.edge_order == "deadline",
        rule_1=options.rule_1,
        rule_2=options.rule_2,
        rule_3=options.rule_3,
        slack_s=float(options.slack_s),
        elastic=options.elastic,
        fill=options.fill,
    )


@njit(cache=True)
def refuse(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Jobs,
    modes: Modes,
    rules: Rules,
    order: IntArray,
    times: FloatArray,
    free: IntArray,
    refused: BoolArray,
) -> None:
    """Mark the fresh jobs that admission control refuses, in their order of the list."""
    if rules.admission == ADMIT_BATCH:
        if minimum_shares(sketch, timeline, plans, jobs, modes, rules, order, refused) > 0:
            refused |= jobs.fresh
        restore(timeline, plans, times, free)
        return
    refused |= jobs.fresh
    misses = minimum_shares(sketch, timeline, plans, jobs, modes, rules, order, refused)
    restore(timeline, plans, times, free)
    for j in range(len(jobs.work)):
        if not jobs.fresh[j]:
            continue
        refused[j] = False
        with_it = minimum_shares(sketch, timeline, plans, jobs, modes, rules, order, refused)
        restore(timeline, plans, times, free)
        if with_it > misses:
            refused[j] = True


@njit(cache=True)
def run(
    sketch: Sketch,
    timeline: Timeline,
    plans: Plans,
    jobs: Jobs,
    modes: Modes,
    rules: Rules,
    refused: BoolArray,
) -> None:
    """Plan all jobs; `plans` and `refused` are output.

    Jobs are planned in deadline order; those that must be met come first, and of equal deadlines
    the larger weight, then the earlier in the list.
    """
    num_jobs, pieces = len(jobs.work), timeline.size[0]
    times = timeline.times[: pieces + 1].copy()
    free = timeline.free[:, :pieces].copy()
    order = np.argsort(-jobs.weight, kind="mergesort")
    order = order[np.argsort(jobs.deadline[order], kind="mergesort")]
    order = order[np.argsort(~jobs.must[order], kind="mergesort")]
    # Best-effort jobs only get left-overs.
    order = order[jobs.deadline[order] < np.inf]
    if rules.admission != ADMIT_ALL:
        refuse(sketch, timeline, plans, jobs, modes, rules, order, times, free, refused)
        order = order[~refused[order]]
    if rules.select:
        select(sketch, timeline, plans, jobs, modes, rules, order)
    else:
        nobody = np.zeros(num_jobs, dtype=np.bool_)
        misses = minimum_shares(sketch, timeline, plans, jobs, modes, rules, order, nobody)
        listed = order if rules.by_deadline else np.sort(order)
        chosen, with_mode = offload(sketch, timeline, plans, jobs, modes, rules, listed, misses)
        if len(chosen) > 0:
            restore(timeline, plans, times, free)
            for i, j in enumerate(chosen):
                edge_run(sketch, timeline, jobs, modes, j, with_mode[i])
                commit(timeline, modes, plans, sketch, j, jobs.deadline[j])
            minimum_shares(sketch, timeline, plans, jobs, modes, rules, order, nobody)
    if rules.elastic:
        scale(sketch, timeline, plans, jobs, modes, rules, order)
    if rules.fill:
        fill(sketch, timeline, plans, jobs, modes, order, refused)


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


def plan_jobs(
    times: FloatArray,
    free: IntArray,
    is_cloud: BoolArray,
    snap: bool,
    jobs: Jobs,
    modes: Modes,
    rules: Rules,
) -> Planned:
    """Return the heuristic's plans.

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
    jobs, modes, rules
        See :mod:`edgeflow_opt.solvers.greedy.tables`.
    """
    num_jobs, pieces = len(jobs.work), free.shape[1]
    levels = int(np.diff(jobs.level_start, axis=1).max(initial=1))
    pool = 8 * num_jobs + 1024
    room = pieces if snap else pieces + 4 * num_jobs + 64
    while True:
        timeline = Timeline(
            times=np.empty(room + 1),
            free=np.zeros((len(is_cloud), room), dtype=np.int64),
            size=np.array([pieces]),
            snap=snap,
            is_cloud=is_cloud,
            overflow=np.zeros(1, dtype=np.bool_),
        )
        timeline.times[: pieces + 1] = times
        timeline.free[:, :pieces] = free
        plans = new_plans(num_jobs, pool)
        refused = np.zeros(num_jobs, dtype=np.bool_)
        sketch = new_sketch(room, levels)
        run(sketch, timeline, plans, jobs, modes, rules, refused)
        if not timeline.overflow[0]:
            return Planned(plans, refused)
        pool *= 2
        room = pieces if snap else 2 * room
