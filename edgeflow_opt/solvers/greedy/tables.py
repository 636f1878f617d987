"""What the kernels compute on: tables of records for jobs, modes, rules, free capacity and plans.

Fields that belong together are records of one structured array, and single numbers those of one
record, and all of them lie on one :class:`Desk`: a kernel then has a handful of arguments. With an
array for each field it has forty, and numba takes four times as long to compile them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.core.options import DefaultOptions

from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray

_COMMON: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
_ONLY_FROM_KERNELS: dict[str, Any] = {"no_cpython_wrapper": True, **_COMMON}
if hasattr(DefaultOptions, "_nrt"):
    # They allocate no array, so no reference need be counted, and counting would take as long as
    # the work itself. The option is private to numba: without it the kernels are slower, that is all.
    _ONLY_FROM_KERNELS["_nrt"] = False

#: Decorator of kernels that only other kernels call. They are compiled into those, which are
#: cached; a call from Python would fail.
kernel: Any = njit(**_ONLY_FROM_KERNELS)

#: Decorator of kernels that are written out where one other kernel calls them. Any other kernel is
#: optimised again with all that it calls, for each kernel that calls it.
written_out: Any = njit(inline="always", **_ONLY_FROM_KERNELS)

#: Decorator of kernels that are called from Python.
entry: Any = njit(cache=True, **_COMMON)

# Arguments of kernels: a literal would have them compiled once for each value.
FIRST_PIECE, SECOND_PIECE = np.int64(0), np.int64(1)
GIVE_BACK, TAKE_AGAIN = np.int64(1), np.int64(-1)
NONE: Any = np.int64(-1)
CLOUD, EDGE = np.bool_(True), np.bool_(False)

#: Share of the work planned on top of what completion needs, against rounding.
WORK_MARGIN = 1e-9

#: A table or one record of it; numpy does not know the types of its fields by name.
Records = np.ndarray[Any, Any]
Record = Any


def _records(**fields: Any) -> np.dtype[Any]:
    return np.dtype(list(fields.items()), align=True)


#: A mode.
MODE = _records(site=np.int64, units=np.int64, gpus=np.int64, rate=np.float64)

#: A job: `work` = credit that plans aim at, iterations; `deadline` +inf = best effort;
#: `first_piece` of the timeline in which it may run; `fresh` = subject to admission control;
#: `run_mode` -1 = idle; `last_site` -1 = never ran.
JOB = _records(
    work=np.float64,
    deadline=np.float64,
    weight=np.float64,
    restart_s=np.float64,
    migration_s=np.float64,
    loss_left_s=np.float64,
    first_piece=np.int64,
    run_mode=np.int64,
    last_site=np.int64,
    must=np.bool_,
    malleable=np.bool_,
    fresh=np.bool_,
)

#: :class:`~edgeflow_opt.solvers.greedy.options.GreedyOptions` as numbers. `by_deadline` = the order
#: of Algorithm 1; `one_by_one` = rule 3 plans anew after each job that it moves; `now_only` = of the
#: plans only what is held now is asked for, so that kernels may leave out all that cannot change it;
#: `resolution_s` = what begins so soon after now begins now.
RULES = _records(
    late=np.int64,
    hopeless_by=np.int64,
    slack_s=np.float64,
    two_level=np.bool_,
    reserved_only=np.bool_,
    rule_1=np.bool_,
    rule_2=np.bool_,
    rule_3=np.bool_,
    one_by_one=np.bool_,
    admission=np.int64,
    by_deadline=np.bool_,
    select_jobs=np.bool_,
    wait_on_edge=np.bool_,
    elastic=np.bool_,
    fill=np.bool_,
    now_only=np.bool_,
    resolution_s=np.float64,
)

#: Of a timeline: the number of pieces; whether none may be split; whether an array was too small,
#: which makes all results void.
TIMELINE_STATE = _records(size=np.int64, snap=np.bool_, overflow=np.bool_)

#: The plan of a job: segments ``first : first + segments`` of the pool; `completion` in seconds,
#: +inf = not within the plan; `gpu_s` GPU-seconds until then.
PLAN = _records(
    completion=np.float64, gpu_s=np.float64, first=np.int64, segments=np.int64, met=np.bool_
)

#: A time in which a job holds a mode.
SEGMENT = _records(start=np.float64, end=np.float64, mode=np.int64)

#: Of the plans: the length of the pool in use.
POOL_STATE = _records(used=np.int64)

#: A plan in the making: credit and loss of the last run that are `left`, the mode held at the end
#: (-1 = idle), the last site (-1 = never ran).
DRAFT = _records(
    completion=np.float64,
    gpu_s=np.float64,
    left=np.float64,
    loss=np.float64,
    segments=np.int64,
    mode=np.int64,
    site=np.int64,
)

#: A level of the job that is surveyed, and the seconds for which it is the highest that is free.
LEVEL = _records(rate=np.float64, span=np.float64, units=np.int64)


class Modes(NamedTuple):
    """The modes, and those that the heuristic may choose, called *levels*.

    Levels ``level_start[j, k] : level_start[j, k + 1]`` are those of job j on site k: on a cloud
    site they rise in units (and, with the knee cap, in rate); on an edge site there is at most one,
    the fastest.
    """

    table: Records
    """(M,) of :data:`MODE`."""
    level_start: IntArray
    level_mode: IntArray


class Timeline(NamedTuple):
    """Free units as a step function of time: pieces ``times[s] : times[s + 1]``, s < state.size.

    With `state.snap` the pieces are the slots of a grid: none is ever split, and whatever begins or
    ends inside one is moved to its ends. Without, pieces are split where plans begin and end.
    """

    times: FloatArray
    free: IntArray
    """(K, pieces) units."""
    is_cloud: BoolArray
    state: Record
    """:data:`TIMELINE_STATE`."""


class Plans(NamedTuple):
    """The plans of all jobs."""

    table: Records
    """(n,) of :data:`PLAN`."""
    pool: Records
    """Of :data:`SEGMENT`."""
    state: Record
    """:data:`POOL_STATE`."""


class Sketch(NamedTuple):
    """A plan of one job in the making, and work space for it."""

    plan: Record
    """:data:`DRAFT`."""
    pool: Records
    """Its segments, of :data:`SEGMENT`."""
    level: IntArray
    """(pieces,) highest level that is free."""
    levels: Records
    """Of :data:`LEVEL`."""


class Desk(NamedTuple):
    """What lies before a kernel that plans: what is given, what is decided, and the sketch."""

    jobs: Records
    """(n,) of :data:`JOB`."""
    modes: Modes
    rules: Record
    """:data:`RULES`."""
    timeline: Timeline
    plans: Plans
    sketch: Sketch


class Capacity(NamedTuple):
    """Free units before anything is planned: ``free[k, s]`` on site k from ``times[s]`` on."""

    times: FloatArray
    """(P+1,) seconds; the last one may be +inf."""
    free: IntArray
    """(K, P)"""


class Lists(NamedTuple):
    """What the steps note about jobs; each has an entry for every job, or room for all of them."""

    queue: Records
    """A :mod:`~edgeflow_opt.solvers.greedy.job_queue`, empty between the steps."""
    chosen: BoolArray
    """Given: the jobs that job selection is to meet if they can be; the others get what is left."""
    refused: BoolArray
    """The jobs that admission control refuses."""
    known: BoolArray
    """The jobs whose plans step 1 has made."""
    order: IntArray
    """The jobs with deadlines that are not refused, by deadline."""
    listed: IntArray
    """The same jobs, as step 2, or else job selection, goes through them."""
    moved: IntArray
    """The jobs that step 2 has put on the edge, in the order in which it did."""
    mode_of: IntArray
    """The mode of each of them there, by job; -1 = the job was not moved."""
    spare: IntArray
    """Work space: whatever a step passes over for the moment."""
    holders: IntArray
    """The jobs that hold a mode at time 0."""
    held: IntArray
    """Their modes."""


def record(dtype: np.dtype[Any], **fields: Any) -> Record:
    """Return one record, which kernels may change; fields that are not given are zero."""
    made = np.zeros(1, dtype=dtype)[0]
    for name, value in fields.items():
        made[name] = value
    return made


def table(dtype: np.dtype[Any], **fields: Any) -> Records:
    """Return the columns `fields`, all of one length, as a table."""
    made = np.zeros(len(next(iter(fields.values()))), dtype=dtype)
    for name, column in fields.items():
        made[name] = column
    return made


def new_plans(num_jobs: int, pool: int) -> Plans:
    """Return plans of `num_jobs` jobs with room for `pool` segments, to be emptied before use."""
    return Plans(np.zeros(num_jobs, PLAN), np.empty(pool, SEGMENT), record(POOL_STATE))


def new_sketch(pieces: int, levels: int) -> Sketch:
    """Return work space for timelines of up to `pieces` pieces and jobs of `levels` levels."""
    return Sketch(
        plan=record(DRAFT),
        pool=np.empty(2 * pieces + 8, SEGMENT),
        level=np.empty(pieces + 1, dtype=np.int64),
        levels=np.zeros(levels + 1, LEVEL),
    )


@entry
def level_table(
    mode_start: IntArray,
    modes: Records,
    usable: BoolArray,
    is_cloud: BoolArray,
    knee_cap: bool,
) -> tuple[IntArray, IntArray]:
    """Return `level_start` (n, K+1) and `level_mode` of :class:`Modes`.

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
                if modes[m].site != k or not usable[m]:
                    continue
                if not is_cloud[k] and total > first:
                    other = level_mode[first]
                    faster = modes[m].rate > modes[other].rate
                    same = modes[m].rate == modes[other].rate
                    if faster or (same and modes[m].gpus < modes[other].gpus):
                        level_mode[first] = m
                    continue
                at = total
                while at > first and modes[level_mode[at - 1]].units > modes[m].units:
                    level_mode[at] = level_mode[at - 1]
                    at -= 1
                level_mode[at] = m
                total += 1
            if knee_cap and is_cloud[k]:
                kept = first
                for at in range(first, total):
                    m = level_mode[at]
                    if kept == first or modes[m].rate > modes[level_mode[kept - 1]].rate:
                        level_mode[kept] = m
                        kept += 1
                total = kept
        level_start[j, num_sites] = total
    return level_start, level_mode[:total].copy()


@entry
def present(
    kept: Records,
    kept_levels: IntArray,
    changing: FloatArray,
    now: float,
    charged: bool,
    usable: BoolArray,
    never: int,
) -> tuple[Records, IntArray]:
    """Return the records of unfinished jobs as they stand now, and their `level_start`.

    Parameters
    ----------
    kept, kept_levels
        Records by number, deadlines on the clock, and `level_start`.
    changing
        (n, 6) of each unfinished job: number, credit left, mode (-1 = idle), seconds of loss left,
        last site (-1 = never ran), whether it is fresh.
    now
        Seconds on the clock.
    charged
        Whether plans count losses.
    usable
        (M,) whether a mode may be used. One that may not is left at once; a moldable job then
        never runs again.
    never
        A piece after the last one.
    """
    jobs = np.empty(len(changing), kept.dtype)
    levels = np.empty((len(changing), kept_levels.shape[1]), np.int64)
    for i in range(len(changing)):
        number = int(changing[i, 0])
        jobs[i] = kept[number]
        levels[i] = kept_levels[number]
        jobs[i].deadline = kept[number].deadline - now
        jobs[i].work = changing[i, 1] * (1.0 + WORK_MARGIN)
        mode = int(changing[i, 2])
        jobs[i].loss_left_s = changing[i, 3]
        jobs[i].last_site = int(changing[i, 4])
        jobs[i].fresh = changing[i, 5] > 0.0
        if not charged:
            jobs[i].loss_left_s = jobs[i].restart_s = jobs[i].migration_s = 0.0
        if mode >= 0 and not usable[mode]:
            mode = -1
            if not kept[number].malleable:
                jobs[i].first_piece = never
        jobs[i].run_mode = mode
    return jobs, levels
