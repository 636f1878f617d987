"""Chronus: leases, and admission of jobs with deadlines by a small integer program."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import SolverFaultError, UsageError
from edgeflow_opt.policies.base import Decision
from edgeflow_opt.policies.clouds import Clouds, pack, seconds_left

if TYPE_CHECKING:
    from edgeflow_opt.policies.base import ClusterState, JobState
    from edgeflow_opt.problem import Job
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray

#: Seconds by which a lease may end early, against rounding.
_ROUNDING = 1e-6


class ChronusPolicy:
    """Chronus: GPUs are leased for fixed terms; jobs whose deadlines can be warranted come first.

    Every job keeps its requested GPUs. When jobs with deadlines arrive, those that can be met beside
    the ones warranted before are warranted too, so many as possible: with S_j in {0, 1},

        max  sum_j w_j S_j
        s.t. sum_j g_j max(0, l_j - max(0, d_j - D)) S_j <= G (D - now)   for every deadline D

    where g_j are its GPUs, l_j the seconds left there, d_j the deadline and G the GPUs of the
    cluster: the work that must be done by D has to fit (earlier warrants are S_j = 1). At the end of
    a lease GPUs go first to warranted jobs, the least slack ``d_j - now - l_j`` first, then to the
    other jobs with deadlines, then to best-effort ones. Between the ends of leases only GPUs that
    are free are given out, in the same order. No edge.

    Source: Gao et al., "Chronus: A novel deadline-aware scheduler for deep learning training jobs",
    SoCC 2021. Its program over single leases is replaced by the rows above, which are necessary
    for it, since at hundreds of jobs it stays open for minutes; that it cannot warrant all of them
    is no great loss where jobs are preempted at every lease.

    Parameters
    ----------
    lease_s
        Term of a lease, seconds, above 0 (the paper's unit is some minutes; chosen: as the slot of
        ElasticFlow).
    others
        Whether jobs that could not be warranted run on what is left over (as in the paper), or are
        refused.
    time_limit_s
        Wall seconds for the program, above 0; what is found by then counts.

    Raises
    ------
    UsageError
        If a value makes no sense.
    """

    def __init__(
        self, *, lease_s: float = 60.0, others: bool = True, time_limit_s: float = 1.0
    ) -> None:
        for name, value in (("lease_s", lease_s), ("time_limit_s", time_limit_s)):
            if not 0.0 < value < math.inf:
                raise UsageError(
                    f"option {name}: must be a number of seconds above 0, got {value!r}"
                )
        self._lease_s = lease_s
        self._others = others
        self._time_limit_s = time_limit_s
        self._clouds = Clouds()
        self._warranted: set[str] = set()
        self._lease_end = -math.inf

    def decide(self, state: ClusterState) -> Decision:
        """Return the jobs that hold leases, and the jobs refused."""
        free = self._clouds.look(state)
        over = state.now >= self._lease_end - _ROUNDING
        if over:
            self._lease_end = state.now + self._lease_s
        self._warranted &= {seen.job.id for seen in state.jobs}
        new = [s for s in state.jobs if s.job.id in state.arrived and s.job.deadline is not None]
        if new:
            self._warrant(state, new)
        refused: frozenset[str] = frozenset()
        if not self._others:
            refused = frozenset(s.job.id for s in new if s.job.id not in self._warranted)

        def key(seen: JobState) -> tuple[bool, int, float]:
            held = not over and seen.mode is not None
            deadline = seen.job.deadline
            if deadline is None:
                return not held, 2, 0.0
            slack = deadline - state.now - seconds_left(seen, self._clouds.gangs(seen.job))
            return not held, int(seen.job.id not in self._warranted), slack

        ordered = sorted((s for s in state.jobs if s.job.id not in refused), key=key)
        allocation = pack(ordered, self._clouds, free)
        # Nobody waits for a lease that no unit of the cluster could fulfil.
        waits = any(s.job.id not in allocation and self._clouds.gangs(s.job) for s in ordered)
        if not waits:
            self._lease_end = -math.inf
        return Decision(
            allocation=allocation,
            wake_up=self._lease_end if waits else None,
            refused=refused,
        )

    def _warrant(self, state: ClusterState, new: list[JobState]) -> None:
        """Warrant as many of the `new` jobs as fit beside the ones warranted before."""
        now, clouds = state.now, self._clouds
        candidates = [
            seen
            for seen in new
            if now + seconds_left(seen, clouds.gangs(seen.job)) <= _deadline(seen.job)
        ]
        if not candidates:
            return
        # A job that no unit of the cluster could run any more takes no room.
        old = [s for s in state.jobs if s.job.id in self._warranted and clouds.gangs(s.job)]
        jobs = old + candidates
        gpus = np.array([clouds.gangs(s.job)[0].gpus for s in jobs])
        left = np.array([seconds_left(s, clouds.gangs(s.job)) for s in jobs])
        deadline = np.array([_deadline(seen.job) for seen in jobs])
        # Rows at the deadlines: in between, what must be done rises no faster than before them.
        rows = np.unique(deadline)
        due = gpus * np.maximum(0.0, left - np.maximum(0.0, deadline - rows[:, None]))
        room = clouds.gpus * (rows - now) - due[:, : len(old)].sum(axis=1)
        due = due[:, len(old) :]
        # What is promised already may be too much, if capacity has fallen or jobs were delayed.
        binding = due.any(axis=1)
        weight = np.array([seen.job.weight for seen in candidates])
        chosen = select_jobs(due[binding], room[binding], weight, self._time_limit_s)
        self._warranted |= {
            seen.job.id for seen, taken in zip(candidates, chosen, strict=True) if taken
        }


def _deadline(job: Job) -> float:
    assert job.deadline is not None
    return job.deadline


def select_jobs(
    due: FloatArray, room: FloatArray, weight: FloatArray, time_limit_s: float
) -> list[bool]:
    """Return which jobs to take: the heaviest set with ``due @ S <= room``, S binary.

    Parameters
    ----------
    due
        (rows, n) non-negative.
    room
        (rows,) may be negative: then nobody with an entry there fits.
    weight
        (n,) non-negative.
    time_limit_s
        Wall seconds; the best set found by then is returned.

    Raises
    ------
    SolverFaultError
        If HiGHS refuses the program.
    """
    possible: BoolArray = np.all((due <= room[:, None] + 1e-9) | (due <= 0.0), axis=0)
    fits_all = (due[:, possible].sum(axis=1) <= room + 1e-9) | ~due[:, possible].any(axis=1)
    if fits_all.all() or not possible.any():
        return [bool(taken) for taken in possible]
    import highspy

    from edgeflow_opt.solvers.mip.highs import quiet_highs

    columns = np.flatnonzero(possible)
    rows = due[:, columns]
    scale = np.maximum(rows.max(axis=1), 1e-12)[:, None]
    highs = quiet_highs()
    highs.silent()
    # More threads than one make HiGHS spin on a busy machine.
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", time_limit_s)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(columns), len(rows)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = weight[columns].astype(np.float64)
    lp.col_lower_, lp.col_upper_ = np.zeros(len(columns)), np.ones(len(columns))
    lp.row_lower_ = np.full(len(rows), -highspy.kHighsInf)
    lp.row_upper_ = np.maximum(0.0, room) / scale[:, 0]
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(len(rows) + 1, dtype=np.int32) * len(columns)
    lp.a_matrix_.index_ = np.tile(np.arange(len(columns), dtype=np.int32), len(rows))
    lp.a_matrix_.value_ = (rows / scale).ravel()
    lp.integrality_ = [highspy.HighsVarType.kInteger] * len(columns)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverFaultError("policy 'chronus': HiGHS refuses the program of admission")
    highs.run()
    taken = np.zeros(len(weight), dtype=np.bool_)
    if highs.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        taken[columns] = np.array(highs.getSolution().col_value) > 0.5
    return [bool(value) for value in taken]
