"""Why deadlines are missed: the front door of the explanations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.analysis.explain.conflict import conflict_around, conflict_of
from edgeflow_opt.analysis.explain.data import (
    Alone,
    Conflict,
    Contention,
    Explanation,
    Hold,
    JobExplanation,
    Marginal,
)
from edgeflow_opt.analysis.explain.marginal import marginals_of
from edgeflow_opt.analysis.explain.remedies import improved_remedies, quick_remedies
from edgeflow_opt.analysis.explain.room import Clock, Room, ask
from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import SolveStatus, check
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import kernels_of, warm_up
from edgeflow_opt.solvers.kernels import PLAN

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, Schedule

#: Modules whose kernels its solves call: all that ``auto`` may, since no time of it is for compiling.
KERNELS = (*kernels_of("auto"), PLAN)

#: Share of the time for a schedule where none is given, and for the worth of capacity.
_SOLVE_SHARE, _MARGINAL_SHARE = 0.3, 0.35

#: Jobs among which a minimal conflicting set is looked for: each is a question to a solver.
_MOST_IN_CONFLICT = 60

#: Holders and spans of contention that are told.
_HOLDERS, _SPANS = 5, 5


def explain(
    problem: EpochProblem,
    schedule: Schedule | None = None,
    *,
    jobs: Sequence[str] | None = None,
    time_limit_s: float | None = 10.0,
    marginals: bool = True,
) -> Explanation:
    """Tell why jobs miss their deadlines, what would save each, and what capacity is worth.

    Every remedy comes with a schedule of the changed instance, passed by the checker, in which the
    job is met and the others are met as much in weight as before.

    Parameters
    ----------
    problem
        The instance.
    schedule
        A valid schedule of it; None = the solver ``auto`` makes one.
    jobs
        Ids of jobs to explain; None = all that miss their deadline.
    time_limit_s
        Wall seconds for all; what could not be looked at is marked. None = no limit. On Ctrl-C what
        is known so far is returned.
    marginals
        Whether the worth of capacity is wanted.

    Raises
    ------
    UsageError
        If the schedule is not valid, or a job is not known or has no deadline.
    """
    for name in jobs or ():
        if name not in problem.job_index:
            raise UsageError(f"job {name!r} is not one of the instance")
        if problem.jobs[problem.job_index[name]].deadline is None:
            raise UsageError(f"job {name!r} has no deadline to miss")
    if problem.constraints:
        raise UsageError(
            f"explain: does not know constraints ('{problem.constraints[0].type}'); what it says of "
            "room and remedies would not hold"
        )
    if schedule is not None and not check(problem, schedule).valid:
        raise UsageError("schedule: must be valid; 'edgeflow check' tells why it is not")
    warm_up(*KERNELS)
    clock = Clock(time_limit_s)
    if schedule is None or schedule.objective is None:
        limit = None if time_limit_s is None else _SOLVE_SHARE * time_limit_s
        schedule = ask(problem, clock, limit).schedule
    if schedule.objective is None:
        conflict = None
        if schedule.status is SolveStatus.INFEASIBLE:
            conflict = conflict_of(problem, clock)
        return _explanation(schedule, (), conflict, (), clock)
    room = Room(problem, schedule, clock)
    wanted = [problem.job_index[name] for name in jobs or ()]
    if jobs is None:
        missed = room.arrays.has_deadline & ~room.met
        # Heaviest first, then the one with the least work.
        wanted = np.nonzero(missed)[0].tolist()
        wanted.sort(key=lambda k: (-room.arrays.weight[k], room.arrays.work[k], k))
    # First what every reader wants, the reasons of all; remedies as time allows.
    explained = [_reasons(room, job) for job in wanted]
    worth: tuple[Marginal, ...] = ()
    if marginals:
        seconds = 10.0 if time_limit_s is None else _MARGINAL_SHARE * time_limit_s
        worth = marginals_of(problem, arrays_of(problem), schedule, clock, seconds)
    # First a remedy that is enough for each job, then less for each.
    for improve in (False, True):
        for place, job in enumerate(wanted):
            explained[place] = _with_remedies(
                room, job, explained[place], len(wanted) - place, improve=improve
            )
    if len(wanted) == 1 and jobs is not None:
        explained = [_with_conflict(room, wanted[0], explained[0])]
    return _explanation(schedule, tuple(explained), None, worth, clock)


def _explanation(
    schedule: Schedule,
    jobs: tuple[JobExplanation, ...],
    conflict: Conflict | None,
    marginals: tuple[Marginal, ...],
    clock: Clock,
) -> Explanation:
    complete = all(job.complete for job in jobs)
    complete &= conflict is None or conflict.minimal
    return Explanation(
        schedule=schedule,
        jobs=jobs,
        conflict=conflict,
        marginals=marginals,
        complete=complete and not clock.interrupted,
        interrupted=clock.interrupted,
        seconds=clock.elapsed_s,
    )


def _reasons(room: Room, job: int) -> JobExplanation:
    """Return how the job does alone, and where it lacks units."""
    data, arrays = room.problem.jobs[job], room.arrays
    assert data.deadline is not None
    met = bool(room.met[job])
    outcome = room.schedule.outcomes[job]
    return JobExplanation(
        job=data.id,
        deadline=data.deadline,
        weight=data.weight,
        met=met,
        completion=outcome.completion,
        alone=_alone(room, job),
        contention=() if met else _contention(room, job),
        complete=met or bool(arrays.num_jobs == 0),
    )


def _alone(room: Room, job: int) -> Alone:
    arrays, data = room.arrays, room.problem.jobs[job]
    modes = np.arange(arrays.mode_start[job], arrays.mode_start[job + 1])
    usable = modes[arrays.mode_usable[modes]]
    assert data.deadline is not None
    if not len(usable):
        return Alone(met=False, completion=None, late_by_s=None, site=None, gpus=None)
    fastest = int(usable[arrays.mode_rate[usable].argmax()])
    room.unsure = False
    met: bool | None = room.fit(job, arrays.capacity, data.deadline) is not None
    if not met and room.unsure:
        met = None
    found = room.earliest(job, arrays.capacity)
    completion = None if found is None else found[0]
    late = completion - data.deadline if met is False and completion is not None else None
    return Alone(
        met=met,
        completion=completion,
        late_by_s=late,
        site=room.problem.sites[arrays.mode_site[fastest]].name,
        gpus=int(arrays.mode_gpus[fastest]),
    )


def _contention(room: Room, job: int) -> tuple[Contention, ...]:
    """Return the spans before the deadline in which sites lack units for the job's best modes."""
    arrays, problem = room.arrays, room.problem
    first, end = int(arrays.first_slot[job]), int(arrays.end_slot[job])
    modes = np.arange(arrays.mode_start[job], arrays.mode_start[job + 1])
    found = []
    for k, site in enumerate(problem.sites):
        here = modes[(arrays.mode_site[modes] == k) & arrays.mode_usable[modes]]
        if not len(here):
            continue
        needed = int(arrays.mode_units[here[arrays.mode_rate[here].argmax()]])
        lacking = np.arange(first, end)
        lacking = lacking[room.free[k, first:end] < needed]
        for group in np.split(lacking, np.nonzero(np.diff(lacking) > 1)[0] + 1):
            if len(group):
                found.append(_span(room, k, site.name, needed, int(group[0]), int(group[-1]) + 1))
    found.sort(key=lambda span: -(span.needed - span.free) * (span.end - span.start))
    return tuple(found[:_SPANS])


def _span(room: Room, k: int, site: str, needed: int, a: int, b: int) -> Contention:
    arrays = room.arrays
    held = room.kept[:, a:b]
    on_site = (held >= 0) & (arrays.mode_site[held] == k)
    units = np.where(on_site, arrays.mode_units[held], 0)
    seconds = (units * arrays.lengths[a:b]).sum(axis=1)
    order = np.argsort(-seconds, kind="stable")[:_HOLDERS]
    holders = tuple(
        Hold(job=room.problem.jobs[j].id, unit_seconds=float(seconds[j]))
        for j in order.tolist()
        if seconds[j] > 0
    )
    return Contention(
        site=site,
        start=float(arrays.boundaries[a]),
        end=float(arrays.boundaries[b]),
        needed=needed,
        free=int(room.free[k, a:b].min()),
        capacity=int(arrays.capacity[k, a:b].min()),
        holders=holders,
    )


def _with_remedies(
    room: Room, job: int, said: JobExplanation, places: int, *, improve: bool
) -> JobExplanation:
    """Return what was said of a job with its remedies; `places` jobs share the time left.

    Without `improve` what is found beside the jobs that are met; with it, less by re-solving.
    """
    if said.met or said.alone.site is None:
        return dataclasses.replace(said, complete=True)
    whole, room.clock = room.clock, room.clock.part(room.clock.left_s / places)
    try:
        if improve:
            remedies, complete = improved_remedies(
                room, job, list(said.remedies), alone_met=said.alone.met is not False
            )
            complete &= said.complete
        else:
            remedies, complete = quick_remedies(room, job, alone_met=said.alone.met is not False)
    finally:
        room.clock = whole
    return dataclasses.replace(said, remedies=tuple(remedies), complete=complete)


def _with_conflict(room: Room, job: int, said: JobExplanation) -> JobExplanation:
    """Return what was said of a job with a minimal set of jobs that cannot all be met with it."""
    replan = any(remedy.kind == "replan" for remedy in said.remedies)
    if said.met or not said.alone.met or replan or room.clock.up:
        return said
    arrays, data = room.arrays, room.problem.jobs
    span = slice(int(arrays.first_slot[job]), int(arrays.end_slot[job]))
    share = (room.kept[:, span] >= 0).sum(axis=1)
    others = [int(k) for k in np.argsort(share, kind="stable") if room.met[k]]
    others = [k for k in others if share[k] > 0]
    if len(others) > _MOST_IN_CONFLICT:
        return said
    names = [data[k].id for k in others]
    conflict = conflict_around(room.problem, data[job].id, names, room.clock)
    return dataclasses.replace(said, conflict=conflict)
