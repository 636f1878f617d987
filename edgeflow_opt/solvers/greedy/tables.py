"""What the kernels compute on: jobs, modes, rules, free capacity and plans as groups of arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray

_WITHOUT_COUNTS: dict[str, Any] = {"cache": True, "_nrt": False}

#: Decorator of kernels that allocate no array. They keep no reference counts: with groups of some
#: forty arrays as arguments, counting takes four times as long as the work itself.
kernel: Any = njit(**_WITHOUT_COUNTS)

#: Share of the work planned on top of what completion needs, against rounding.
WORK_MARGIN = 1e-9


class Modes(NamedTuple):
    """(M,) site, units, GPUs and rate of every mode."""

    site: IntArray
    units: IntArray
    gpus: IntArray
    rate: FloatArray


class Jobs(NamedTuple):
    """The jobs; `level_start[j, k] : level_start[j, k + 1]` are those of job j on site k.

    A *level* is a mode that the heuristic may choose: on a cloud site they rise in units (and,
    with the knee cap, in rate); on an edge site there is at most one, the fastest.
    """

    work: FloatArray
    """Credit that plans aim at, iterations."""
    deadline: FloatArray
    """+inf = best effort."""
    weight: FloatArray
    first_piece: IntArray
    """First piece of the timeline in which the job may run."""
    must: BoolArray
    malleable: BoolArray
    fresh: BoolArray
    """Whether the job is subject to admission control."""
    restart_s: FloatArray
    migration_s: FloatArray
    run_mode: IntArray
    """Running mode, -1 = idle."""
    loss_left_s: FloatArray
    last_site: IntArray
    """-1 = never ran."""
    level_start: IntArray
    level_mode: IntArray


class Rules(NamedTuple):
    """:class:`~edgeflow_opt.solvers.greedy.options.GreedyOptions` as numbers."""

    select: bool
    two_level: bool
    late: int
    admission: int
    hopeless_by: int
    by_deadline: bool
    rule_1: bool
    rule_2: bool
    rule_3: bool
    slack_s: float
    elastic: bool
    fill: bool


class Timeline(NamedTuple):
    """Free units as a step function of time: pieces ``times[s] : times[s + 1]``, s < size[0].

    With `snap` the pieces are the slots of a grid: none is ever split, and whatever begins or ends
    inside one is moved to its ends. Without, pieces are split where plans begin and end.
    """

    times: FloatArray
    free: IntArray
    """(K, pieces) units."""
    size: IntArray
    """(1,) number of pieces."""
    snap: bool
    is_cloud: BoolArray
    overflow: BoolArray
    """(1,) set when an array was too small: all results are void."""


class Plans(NamedTuple):
    """The plans: segments ``first[j] : first[j] + segments[j]`` of the pool belong to job j."""

    first: IntArray
    segments: IntArray
    start: FloatArray
    end: FloatArray
    mode: IntArray
    used: IntArray
    """(1,) length of the pool in use."""
    completion: FloatArray
    """(n,) seconds, +inf = not within the plan."""
    met: BoolArray
    gpu_s: FloatArray
    """(n,) GPU-seconds until completion."""


class Sketch(NamedTuple):
    """A plan of one job in the making, and work space for it."""

    start: FloatArray
    end: FloatArray
    mode: IntArray
    segments: IntArray
    """(1,) number of segments."""
    number: FloatArray
    """(5,) completion, GPU-seconds, credit left, loss left of the last run, credit by deadline."""
    state: IntArray
    """(2,) mode held at the end (-1 = idle), last site (-1 = never ran)."""
    level: IntArray
    """(pieces,) highest level that is free."""
    rate: FloatArray
    units: IntArray
    span: FloatArray
    """(levels,) seconds for which a level is the highest that is free."""


def new_plans(num_jobs: int, pool: int) -> Plans:
    """Return empty plans of `num_jobs` jobs with room for `pool` segments."""
    return Plans(
        first=np.zeros(num_jobs, dtype=np.int64),
        segments=np.zeros(num_jobs, dtype=np.int64),
        start=np.empty(pool),
        end=np.empty(pool),
        mode=np.empty(pool, dtype=np.int64),
        used=np.zeros(1, dtype=np.int64),
        completion=np.full(num_jobs, np.inf),
        met=np.zeros(num_jobs, dtype=np.bool_),
        gpu_s=np.zeros(num_jobs),
    )


def new_sketch(pieces: int, levels: int) -> Sketch:
    """Return work space for timelines of up to `pieces` pieces and jobs of `levels` levels."""
    return Sketch(
        start=np.empty(2 * pieces + 8),
        end=np.empty(2 * pieces + 8),
        mode=np.empty(2 * pieces + 8, dtype=np.int64),
        segments=np.zeros(1, dtype=np.int64),
        number=np.zeros(5),
        state=np.zeros(2, dtype=np.int64),
        level=np.empty(pieces + 1, dtype=np.int64),
        rate=np.empty(levels + 1),
        units=np.empty(levels + 1, dtype=np.int64),
        span=np.empty(levels + 1),
    )


@njit(cache=True)
def level_table(
    mode_start: IntArray,
    modes: Modes,
    usable: BoolArray,
    is_cloud: BoolArray,
    knee_cap: bool,
) -> tuple[IntArray, IntArray]:
    """Return `level_start` (n, K+1) and `level_mode` of :class:`Jobs`.

    Cloud levels are the usable modes by rising units, with the knee cap only such as raise the
    rate above all smaller ones; the edge level is the fastest usable mode (of equals, the one of
    fewest GPUs).
    """
    num_jobs = len(mode_start) - 1
    num_sites = len(is_cloud)
    level_start = np.zeros((num_jobs, num_sites + 1), dtype=np.int64)
    level_mode = np.empty(len(usable), dtype=np.int64)
    total = 0
    for j in range(num_jobs):
        for k in range(num_sites):
            level_start[j, k] = first = total
            for m in range(mode_start[j], mode_start[j + 1]):
                if modes.site[m] != k or not usable[m]:
                    continue
                if not is_cloud[k] and total > first:
                    other = level_mode[first]
                    faster = modes.rate[m] > modes.rate[other]
                    same = modes.rate[m] == modes.rate[other]
                    if faster or (same and modes.gpus[m] < modes.gpus[other]):
                        level_mode[first] = m
                    continue
                at = total
                while at > first and modes.units[level_mode[at - 1]] > modes.units[m]:
                    level_mode[at] = level_mode[at - 1]
                    at -= 1
                level_mode[at] = m
                total += 1
            if knee_cap and is_cloud[k]:
                kept = first
                for at in range(first, total):
                    m = level_mode[at]
                    if kept == first or modes.rate[m] > modes.rate[level_mode[kept - 1]]:
                        level_mode[kept] = m
                        kept += 1
                total = kept
        level_start[j, num_sites] = total
    return level_start, level_mode[:total].copy()
