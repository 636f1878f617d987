"""What room a schedule leaves for a job, and whether the job fits into it."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.formulations.plans import allocations_of, plan_of, usage, walk
from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Limit,
    Schedule,
    SolveStatus,
    check,
    evaluate,
)
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import solve

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, IntArray
    from edgeflow_opt.solvers import SolveResult

#: Most seconds that the question whether one job fits may take.
_FIT_S = 3.0


class Clock:
    """The time that is left for an explanation.

    Parameters
    ----------
    seconds
        Wall seconds from now; None = no limit.
    whole
        The clock of which this is a part; it ends with that one. None = it is the whole.
    """

    def __init__(self, seconds: float | None, whole: Clock | None = None) -> None:
        self._begin = time.perf_counter()
        self._limit = math.inf if seconds is None else seconds
        self._whole = whole
        self.interrupted = False
        """Whether Ctrl-C has ended the work."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._begin

    @property
    def left_s(self) -> float:
        """Seconds left, at least 0."""
        if self.interrupted or (self._whole is not None and self._whole.interrupted):
            return 0.0
        return max(0.0, self._limit - self.elapsed_s)

    @property
    def up(self) -> bool:
        """Whether there is no time left to begin anything."""
        return self.left_s <= 0.02

    def share(self, most: float) -> float:
        """Return the limit of a step: at most `most` seconds and the time that is left."""
        return max(0.02, min(most, self.left_s))

    def part(self, seconds: float) -> Clock:
        """Return the clock of a part of the work that may take at most `seconds`."""
        return Clock(min(seconds, self.left_s), self)

    def interrupt(self) -> None:
        """End the work."""
        self.interrupted = True
        if self._whole is not None:
            self._whole.interrupt()


def ask(
    problem: EpochProblem,
    clock: Clock,
    seconds: float | None,
    solver: str = "auto",
    *,
    warm_start: Schedule | None = None,
) -> SolveResult:
    """Solve level 1 of `problem` in at most `seconds` of the time left; Ctrl-C ends the clock."""
    limit = None if seconds is None and math.isinf(clock.left_s) else seconds
    result = solve(
        problem, solver, levels=1, time_limit_s=None if limit is None else clock.share(limit),
        warm_start=warm_start,
    )  # fmt: skip
    if result.limit is Limit.INTERRUPTED:
        clock.interrupt()
    return result


class Room:
    """A schedule's met jobs, and what they leave free.

    Work on jobs that miss their deadline anyway, and on best-effort jobs, gives way.

    Parameters
    ----------
    problem, schedule
        An instance and a valid schedule of it.
    clock
        The time that is left.
    """

    def __init__(self, problem: EpochProblem, schedule: Schedule, clock: Clock) -> None:
        self.problem, self.schedule, self.clock = problem, schedule, clock
        self.arrays = arrays_of(problem)
        self.unsure = False
        """Whether a solver has not told, for want of time, whether a job fits."""
        plan = plan_of(problem, self.arrays, schedule)
        done = walk(self.arrays, plan)
        self.met = done.met
        self.kept: IntArray = np.where(done.met[:, None], plan, -1)
        self.free: IntArray = self.arrays.capacity - usage(self.arrays, self.kept)

    def others_weight(self, job: int) -> float:
        """Return the weight of the met jobs other than `job`."""
        met = self.met.copy()
        met[job] = False
        return float(self.arrays.weight[met].sum())

    def used_by(self, job: int) -> IntArray:
        """Return (K, T) the units that a met job holds."""
        alone = np.full_like(self.kept, -1)
        alone[job] = self.kept[job]
        return usage(self.arrays, alone)

    def fit(self, job: int, free: IntArray, deadline: float) -> IntArray | None:
        """Return (T,) modes by which `job` meets `deadline` within `free` units (K, T), or None.

        Exact for a malleable job without losses: the fastest mode that fits in every slot. Other
        jobs are asked of a solver, for a few seconds at most; None also where it does not know.
        """
        arrays = self.arrays
        modes = self._hosted(job)
        if not len(modes):
            return None
        fits = arrays.mode_units[modes][:, None] <= free[arrays.mode_site[modes]]
        rates = np.where(fits, arrays.mode_rate[modes][:, None], -1.0)
        best = rates.argmax(axis=0)
        rate = np.maximum(rates.max(axis=0), 0.0)
        slots = np.arange(arrays.num_slots)
        rate[slots < arrays.first_slot[job]] = 0.0
        useful = np.maximum(
            0.0, np.minimum(arrays.boundaries[1:], deadline) - arrays.boundaries[:-1]
        )
        credit = np.cumsum(rate * useful)
        if credit[-1] < arrays.required[job] * (1.0 - 1e-9):
            return None
        if arrays.has_losses[job] or not arrays.malleable[job]:
            run = self._one_run(job, modes, fits, deadline)
            return run if run is not None else self._asked(job, free, deadline)
        last = int(np.searchsorted(credit, arrays.required[job] * (1.0 - 1e-12)))
        row = np.where(rate > 0.0, modes[best], -1)
        row[slots > last] = -1
        result: IntArray = row.astype(np.int64)
        return result

    def _one_run(
        self, job: int, modes: IntArray, fits: BoolArray, deadline: float
    ) -> IntArray | None:
        """Return a single run in one of `modes`, where they fit, that meets the deadline, or None.

        The run goes from the beginning of a stretch in which its mode fits: no later start of that
        stretch earns more, but for a moldable job that runs already.
        """
        arrays = self.arrays
        running = int(arrays.running_mode[job])
        for mode, allowed in zip(modes.tolist(), fits, strict=True):
            if not arrays.malleable[job] and running >= 0 and mode != running:
                continue
            allowed = allowed & (np.arange(arrays.num_slots) >= arrays.first_slot[job])
            slots = np.nonzero(allowed)[0]
            for group in np.split(slots, np.nonzero(np.diff(slots) > 1)[0] + 1):
                if not len(group) or (not arrays.malleable[job] and running >= 0 and group[0] > 0):
                    continue
                start, end = float(arrays.boundaries[group[0]]), arrays.boundaries[group + 1]
                if mode == running and group[0] == 0:
                    loss = float(arrays.loss_left_s[job])
                elif arrays.last_site[job] < 0:
                    loss = 0.0
                elif arrays.last_site[job] == arrays.mode_site[mode]:
                    loss = float(arrays.restart_s[job])
                else:
                    loss = float(arrays.migration_s[job])
                earned = arrays.mode_rate[mode] * (np.minimum(end, deadline) - start - loss)
                enough = np.nonzero(earned >= arrays.required[job])[0]
                if len(enough):
                    row = np.full(arrays.num_slots, -1, dtype=np.int64)
                    row[group[: enough[0] + 1]] = mode
                    return row
        return None

    def _hosted(self, job: int) -> IntArray:
        """Return the modes of `job` on sites with the memory that it needs."""
        arrays, problem = self.arrays, self.problem
        modes = np.arange(arrays.mode_start[job], arrays.mode_start[job + 1])
        hosts = np.array([site.hosts(problem.jobs[job]) for site in problem.sites])
        return modes[hosts[arrays.mode_site[modes]]]

    def _asked(self, job: int, free: IntArray, deadline: float) -> IntArray | None:
        arrays, problem = self.arrays, self.problem
        if self.clock.up:
            self.unsure = True
            return None
        steps = np.maximum(0, free)
        sites = tuple(
            dataclasses.replace(
                site,
                capacity=tuple(
                    (time, int(units))
                    for time, units in zip(problem.grid.boundaries[:-1], steps[k], strict=True)
                ),
            )
            for k, site in enumerate(problem.sites)
        )
        one = dataclasses.replace(problem.jobs[job], deadline=deadline, must_meet=True, weight=1.0)
        alone = EpochProblem(grid=problem.grid, sites=sites, jobs=(one,))
        result = ask(alone, self.clock, _FIT_S, "highs")
        if result.objective is None or not result.schedule.outcomes[0].met:
            self.unsure |= result.status is not SolveStatus.INFEASIBLE
            return None
        row = plan_of(alone, arrays_of(alone), result.schedule)[0]
        moved: IntArray = np.where(row >= 0, row + arrays.mode_start[job], -1)
        return moved

    def earliest(self, job: int, free: IntArray) -> tuple[float, IntArray] | None:
        """Return the earliest completion of `job` within `free`, and its modes; None = never."""
        arrays = self.arrays
        low, high = int(arrays.first_slot[job]), arrays.num_slots
        row = self.fit(job, free, float(arrays.boundaries[high]))
        if row is None:
            return None
        # The least boundary by which it can complete lies in (low, high].
        while high - low > 1:
            middle = (low + high) // 2
            found = self.fit(job, free, float(arrays.boundaries[middle]))
            if found is None:
                low = middle
            else:
                high, row = middle, found
        completion = self._completion(job, row)
        return None if completion is None else (completion, row)

    def _completion(self, job: int, row: IntArray) -> float | None:
        plan = np.full_like(self.kept, -1)
        plan[job] = row
        _, outcomes = evaluate(self.problem, allocations_of(self.problem, self.arrays, plan))
        return outcomes[job].completion

    def witness(
        self, changed: EpochProblem, job: int, row: IntArray, dropped: tuple[str, ...] = ()
    ) -> Schedule | None:
        """Return the met jobs' plans with `job` in modes `row`, as a schedule of `changed`.

        None unless the checker passes it, `job` is met, and so are all others but the `dropped`.
        """
        plan = self.kept.copy()
        plan[job] = row
        gone = [self.problem.job_index[name] for name in dropped]
        plan[gone] = -1
        allocations = allocations_of(self.problem, self.arrays, plan)
        schedule = as_schedule(changed, allocations, self.schedule.solver)
        if not check(changed, schedule).valid:
            return None
        met = {outcome.job for outcome in schedule.outcomes if outcome.met}
        wanted = {self.problem.jobs[k].id for k in np.nonzero(self.met)[0]} - set(dropped)
        return schedule if wanted | {self.problem.jobs[job].id} <= met else None

    def replanned(
        self, changed: EpochProblem, job: int, seconds: float
    ) -> tuple[Schedule | None, bool]:
        """Return a schedule of `changed` with `job` met and no less weight of others, by re-solving.

        And whether it is proven that there is none.
        """
        name, least = self.problem.jobs[job].id, self.others_weight(job)
        jobs = tuple(
            dataclasses.replace(j, must_meet=True) if j.id == name else j for j in changed.jobs
        )
        result = ask(changed.replace(jobs=jobs), self.clock, seconds)
        aim = least + float(self.arrays.weight[job])
        slack = 1e-6 * max(1.0, aim)
        if result.status is SolveStatus.INFEASIBLE:
            return None, True
        objective = result.objective
        if objective is not None and objective.met_weight >= aim - slack:
            schedule = as_schedule(changed, result.schedule.allocations, result.schedule.solver)
            if check(changed, schedule).valid:
                return schedule, False
        lexicographic = changed.objective.weights is None
        return None, lexicographic and result.bound is not None and result.bound < aim - slack


def as_schedule(
    problem: EpochProblem, allocations: tuple[Allocation, ...], solver: str
) -> Schedule:
    """Return allocations as a feasible schedule of `problem`, valued by the exact rule."""
    value, outcomes = evaluate(problem, allocations)
    return Schedule(
        solver=solver,
        status=SolveStatus.FEASIBLE,
        objective=value,
        allocations=allocations,
        outcomes=outcomes,
    )
