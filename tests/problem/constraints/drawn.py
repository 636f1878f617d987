"""Random constraints for random instances, and the exact optimum under them by enumeration."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from edgeflow_opt.problem import Allocation, EpochProblem, ObjectiveValue, evaluate
from edgeflow_opt.problem.constraints import Constraint
from edgeflow_opt.problem.constraints.anti_affinity import AntiAffinity
from edgeflow_opt.problem.constraints.gpu_budget import GpuBudget
from edgeflow_opt.problem.constraints.group_quota import GroupQuota
from edgeflow_opt.problem.constraints.least_met import LeastMet
from edgeflow_opt.problem.data import Job, Mode
from edgeflow_opt.problem.rules import capacity_violations


@st.composite
def constraints(draw: st.DrawFn, problem: EpochProblem) -> Constraint:
    """Draw a constraint of the package for an instance."""
    names = tuple(job.id for job in problem.jobs)
    group = tuple(draw(st.lists(st.sampled_from(names), unique=True, min_size=1)))
    site = draw(st.sampled_from((None, *(site.name for site in problem.sites))))
    kind = draw(st.sampled_from(("group_quota", "anti_affinity", "gpu_budget", "least_met")))
    if kind == "group_quota":
        jobs = draw(st.sampled_from((None, group)))
        return GroupQuota(gpus=draw(st.integers(0, 3)), jobs=jobs, site=site)
    if kind == "anti_affinity":
        return AntiAffinity(jobs=group, most=draw(st.integers(0, 2)), site=site)
    if kind == "gpu_budget":
        length = problem.grid.end - problem.now
        share = draw(st.sampled_from((0.0, 0.3, 0.75, 1.5)))
        begin = draw(st.sampled_from((None, problem.now + 0.3 * length)))
        return GpuBudget(gpu_seconds=share * length, start=begin, site=site)
    with_deadline = sum(job.deadline is not None for job in problem.jobs if job.id in group)
    return LeastMet(jobs=group, least=draw(st.integers(0, with_deadline)))


def best_value(problem: EpochProblem) -> ObjectiveValue | None:
    """Return the value of the best schedule by enumeration of all; None where there is none.

    For lexicographic objectives. Nothing of the flat arrays, of rows or of solvers is used.
    """
    choices = [list(_choices(problem, job)) for job in problem.jobs]
    ranked = sorted(
        (
            (tuple(round(sum(level), 6) for level in zip(*keys, strict=True)), place)
            for place, keys in (
                (places, [choices[j][k][0] for j, k in enumerate(places)])
                for places in itertools.product(*(range(len(c)) for c in choices))
            )
        ),
        reverse=True,
    )
    for _, places in ranked:
        allocations = [a for j, k in enumerate(places) for a in choices[j][k][1]]
        if any(capacity_violations(problem.sites, allocations)):
            continue
        value, outcomes = evaluate(problem, allocations)
        if not any(
            violation
            for constraint in problem.constraints
            for violation in constraint.violations(problem, allocations, outcomes)
        ):
            return value
    return None


def _choices(problem: EpochProblem, job: Job) -> list[tuple[tuple[float, ...], list[Allocation]]]:
    """Return the key and the allocations of every plan of one job."""
    slots = list(itertools.pairwise(problem.grid.boundaries))
    sites = {site.name: site for site in problem.sites}
    modes = [mode for mode in job.modes if sites[mode.site].hosts(job)]
    alone = problem.replace(jobs=(job,), constraints=())
    found = []
    for sequence in itertools.product((None, *modes), repeat=len(slots)):
        held = [index for index, mode in enumerate(sequence) if mode is not None]
        assert job.arrival is not None
        if held and slots[held[0]][0] < job.arrival:
            continue
        if not job.malleable and held and not _one_run(job, sequence, held):
            continue
        allocations: list[Allocation] = []
        for (start, end), mode in zip(slots, sequence, strict=True):
            if mode is None:
                continue
            last = allocations[-1] if allocations else None
            if last and (last.end, last.site, last.gpus) == (start, mode.site, mode.gpus):
                start = allocations.pop().start
            allocations.append(
                Allocation(job=job.id, start=start, end=end, site=mode.site, gpus=mode.gpus)
            )
        value, outcomes = evaluate(alone, allocations)
        if not job.must_meet or outcomes[0].met:
            found.append((value.key(), allocations))
    return found


def _one_run(job: Job, sequence: tuple[Mode | None, ...], held: list[int]) -> bool:
    mode = sequence[held[0]]
    if any(sequence[index] != mode for index in range(held[0], held[-1] + 1)):
        return False
    running = job.running
    assert mode is not None
    return running is None or (
        held[0] == 0 and (mode.site, mode.gpus) == (running.site, running.gpus)
    )
