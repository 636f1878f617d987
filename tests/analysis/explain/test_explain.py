"""Explanations: true reasons, and remedies that really save the job."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

import edgeflow_opt as ef
from edgeflow_opt.analysis.explain import explain
from edgeflow_opt.analysis.explain.data import Remedy, with_deadline, with_more
from edgeflow_opt.analysis.explain.room import as_schedule
from edgeflow_opt.errors import UsageError
from edgeflow_opt.formulations.plans import plan_of, usage
from edgeflow_opt.problem import Allocation, EpochProblem, Grid, Job, Mode, Schedule, Site, check
from edgeflow_opt.problem.arrays import arrays_of
from tests.effort import examples
from tests.oracle import optimum
from tests.solvers.instances import CLOUD, MODES, small
from tests.strategies import problems


@settings(max_examples=examples(20))
@given(problem=problems(max_jobs=3, max_slots=3, must_meet=False))
def test_applying_a_remedy_meets_the_job_and_no_less(problem: EpochProblem) -> None:
    """Brute force on the changed instance meets the job too, with the weight that was met before."""
    found = explain(problem, time_limit_s=20.0, marginals=False)
    before = found.schedule.objective
    assert before is not None
    for job in found.jobs:
        for remedy in job.remedies:
            changed = remedy.apply(problem)
            assert check(changed, remedy.schedule).valid
            outcome = {o.job: o.met for o in remedy.schedule.outcomes}
            assert outcome[job.job]
            gone = sum(j.weight for j in problem.jobs if j.id in remedy.dropped)
            kept = before.met_weight - gone + job.weight
            hard = tuple(
                dataclasses.replace(j, must_meet=j.must_meet or j.id == job.job)
                for j in changed.jobs
            )
            best = optimum(changed.replace(jobs=hard))
            assert best is not None
            assert best.value.met_weight >= kept - 1e-9


def _less(problem: EpochProblem, remedy: Remedy) -> EpochProblem | None:
    """Return `problem` with the next smaller change of the kind of `remedy`; None = none at all."""
    grid = problem.grid
    if remedy.kind == "capacity":
        assert remedy.site is not None
        assert remedy.units is not None
        return with_more(problem, remedy.site, grid.start, grid.end, remedy.units - 1)
    if remedy.kind == "deadline":
        old, new = problem.jobs[problem.job_index[remedy.job]].deadline, remedy.deadline
        assert old is not None
        assert new is not None
        between = [time for time in grid.boundaries if old < time < new]
        return with_deadline(problem, remedy.job, between[-1]) if between else problem
    return problem if remedy.kind == "drop" else None


@settings(max_examples=examples(30))
@given(problem=problems(max_jobs=3, max_slots=3, max_sites=1, must_meet=False))
def test_what_is_called_the_least_is_the_least(problem: EpochProblem) -> None:
    """With the next smaller change brute force does not meet the job beside as much weight."""
    found = explain(problem, time_limit_s=20.0, marginals=False)
    before = found.schedule.objective
    assert before is not None
    for remedy in (remedy for job in found.jobs for remedy in job.remedies if remedy.proven_least):
        less = _less(problem, remedy)
        if less is None:
            continue
        jobs = (dataclasses.replace(j, must_meet=j.id == remedy.job) for j in less.jobs)
        best = optimum(less.replace(jobs=tuple(jobs)))
        kept = before.met_weight + problem.jobs[problem.job_index[remedy.job]].weight
        assert best is None or best.value.met_weight < kept - 1e-9, remedy


@settings(max_examples=examples(30))
@given(problem=problems(max_jobs=3, max_slots=4, must_meet=False))
def test_all_that_is_asked_for_is_used(problem: EpochProblem) -> None:
    """The plan of a remedy takes all units more at some time, and some at both ends of the span."""
    found = explain(problem, time_limit_s=20.0, marginals=False)
    arrays = arrays_of(problem)
    for remedy in (remedy for job in found.jobs for remedy in job.remedies):
        if remedy.kind != "capacity":
            continue
        plan = plan_of(problem, arrays, remedy.schedule)
        site = problem.site_index[remedy.site or ""]
        over = usage(arrays, plan)[site] - arrays.capacity[site]
        slots = np.flatnonzero(over > 0)
        assert over.max() == remedy.units
        assert problem.grid.boundaries[slots[0]] == remedy.start
        assert problem.grid.boundaries[slots[-1] + 1] == remedy.end


def _planned(
    gpus: int, plan: dict[str, tuple[int, int, float, int]], missed: Job, bound: float
) -> tuple[EpochProblem, Schedule]:
    """Return jobs on six slots of 10 s with their schedule, by hand.

    `plan` has the GPUs, the slots, the deadline and the first slot of each job that is met.
    """
    site = dataclasses.replace(CLOUD, capacity=((0.0, gpus),))
    jobs, allocations = [], []
    for name, (units, slots, deadline, first) in plan.items():
        mode = Mode(site="cloud", gpus=units, rate=1.0)
        jobs.append(Job(id=name, deadline=deadline, work=10.0 * slots, modes=(mode,)))
        start = 10.0 * first
        allocations.append(
            Allocation(job=name, start=start, end=start + 10.0 * slots, site="cloud", gpus=units)
        )
    grid = Grid.uniform(0.0, 10.0, 6)
    problem = EpochProblem(grid=grid, sites=(site,), jobs=(*jobs, missed))
    schedule = as_schedule(problem, tuple(allocations), "by hand")
    assert {outcome.job for outcome in schedule.outcomes if outcome.met} == set(plan)
    return problem, dataclasses.replace(schedule, bound=bound)


def _missed(gpus: int, slots: int, deadline: float) -> Job:
    mode = Mode(site="cloud", gpus=gpus, rate=1.0)
    return Job(id="missed", deadline=deadline, work=10.0 * slots, modes=(mode,))


def _remedies(problem: EpochProblem, schedule: Schedule) -> dict[str, Remedy]:
    found = explain(problem, schedule, jobs=["missed"], time_limit_s=20.0, marginals=False)
    return {remedy.kind: remedy for remedy in found.jobs[0].remedies}


def test_others_are_moved_for_an_earlier_deadline() -> None:
    """Behind the others the job would be done at 30 s; before one that can wait, at 20 s."""
    plan = {"first": (1, 1, 10.0, 0), "waits": (1, 1, 40.0, 1)}
    remedy = _remedies(*_planned(1, plan, _missed(1, 1, 10.0), bound=2.0))["deadline"]
    assert remedy.deadline == pytest.approx(20.0, abs=2e-3)
    assert remedy.proven_least


def test_others_are_moved_for_fewer_units() -> None:
    """Beside the others two units more are needed; where one of them waits, one for two slots."""
    plan = {"stays": (1, 2, 20.0, 0), "waits": (1, 2, 40.0, 0)}
    remedy = _remedies(*_planned(2, plan, _missed(2, 2, 20.0), bound=2.0))["capacity"]
    assert (remedy.units, remedy.start, remedy.end) == (1, 0.0, 20.0)
    assert remedy.proven_least


def test_a_bound_that_leaves_room_for_the_job_asks_for_another_schedule() -> None:
    """Where both jobs may be met by the bound, and the first stands in the way, it is moved."""
    plan = {"waits": (1, 1, 40.0, 0)}
    assert set(_remedies(*_planned(1, plan, _missed(1, 1, 10.0), bound=2.0))) == {"replan"}


def test_without_proofs_nothing_is_called_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither the schedule has a bound nor any solver proves one, no remedy is proven."""
    from edgeflow_opt.analysis.explain import room

    monkeypatch.setattr(room, "solve", lambda problem, *_, **__: ef.solve(problem, "greedy"))
    plan = {"stays": (1, 2, 20.0, 0), "waits": (1, 2, 40.0, 0)}
    problem, schedule = _planned(2, plan, _missed(2, 2, 20.0), bound=2.0)
    remedies = _remedies(problem, dataclasses.replace(schedule, bound=None))
    assert set(remedies) >= {"capacity", "deadline"}
    assert not any(remedy.proven_least for remedy in remedies.values())


def test_the_lightest_jobs_are_dropped_first() -> None:
    """Of the jobs each of which makes room, those of least weight are told first."""
    weights = {"j0": 4.0, "j1": 3.0, "j2": 1.0, "j3": 0.5}
    jobs = tuple(dataclasses.replace(j, weight=weights[j.id]) for j in small().jobs)
    found = explain(small(jobs=jobs), jobs=["j2"], time_limit_s=20.0, marginals=False).jobs[0]
    drops = [remedy.dropped for remedy in found.remedies if remedy.kind == "drop"]
    assert drops == [("j1",), ("j0",)]


@settings(max_examples=examples(20))
@given(problem=problems(max_jobs=2, max_slots=3, must_meet=False))
def test_what_is_said_of_a_job_alone_is_true(problem: EpochProblem) -> None:
    """A job is said to be met alone just where brute force meets it alone."""
    found = explain(problem, time_limit_s=20.0, marginals=False)
    for job in found.jobs:
        one = dataclasses.replace(problem.jobs[problem.job_index[job.job]], must_meet=True)
        assert job.alone.met is (optimum(problem.replace(jobs=(one,))) is not None)
        if job.alone.late_by_s is not None:
            assert job.alone.late_by_s > 0


def test_the_reasons_of_an_overload_are_named() -> None:
    """Two jobs fill the cloud: it is named with its holders, and each kind of remedy is found."""
    found = explain(small(), time_limit_s=20.0)
    assert found.complete
    job = found.jobs[0]
    assert job.job == "j2"
    assert job.alone.met
    assert [(span.site, span.free, span.needed) for span in job.contention] == [("cloud", 0, 2)]
    assert {hold.job for hold in job.contention[0].holders} == {"j0", "j1"}
    assert [remedy.kind for remedy in job.remedies] == ["capacity", "deadline", "drop", "drop"]
    capacity, deadline, *drops = job.remedies
    assert (capacity.units, capacity.proven_least) == (1, True)
    assert deadline.extension_s == pytest.approx(7.778, abs=1e-3)
    assert [drop.dropped for drop in drops] == [("j0",), ("j1",)]


def test_the_jobs_in_conflict_with_a_missed_one_are_a_minimal_set() -> None:
    """Asked for one job, those that cannot all be met with it are named; each less makes it work."""
    problem = small()
    conflict = explain(problem, jobs=["j3"], time_limit_s=20.0, marginals=False).jobs[0].conflict
    assert conflict is not None
    assert conflict.jobs == ("j0", "j1", "j3")
    assert conflict.minimal
    hard = {n: dataclasses.replace(problem.jobs[int(n[1])], must_meet=True) for n in conflict.jobs}
    assert optimum(problem.replace(jobs=tuple(hard.values()))) is None
    for name in conflict.jobs:
        rest = tuple(job for n, job in hard.items() if n != name)
        assert optimum(problem.replace(jobs=rest)) is not None


def test_fewer_units_or_an_earlier_deadline_do_not_do() -> None:
    """What is called proven least is: brute force finds nothing with less."""
    problem = small()
    job = explain(problem, time_limit_s=20.0, marginals=False).jobs[0]
    met = optimum(problem)
    assert met is not None
    # The unit proven least: with none, no schedule meets a third job.
    assert met.value.met_weight == 2.0
    deadline = next(remedy for remedy in job.remedies if remedy.kind == "deadline")
    assert deadline.proven_least
    assert deadline.deadline is not None
    earlier = dataclasses.replace(deadline, deadline=problem.grid.boundaries[2] - 0.5)
    best = optimum(earlier.apply(problem))
    assert best is not None
    assert best.value.met_weight == 2.0


def test_a_better_schedule_is_remedy_enough() -> None:
    """Of a poor schedule that leaves room, the remedy is another schedule of the same instance."""
    problem = small()
    nothing = ef.import_solution(problem, {}).schedule
    found = explain(problem, nothing, jobs=["j3"], time_limit_s=20.0, marginals=False)
    assert [remedy.kind for remedy in found.jobs[0].remedies] == ["replan"]
    assert found.jobs[0].remedies[0].apply(problem) == problem


def test_a_hopeless_job_is_told_by_how_much_it_is_late() -> None:
    """A job that cannot be met even alone says how late it is, and that a later deadline helps."""
    job = Job(id="slow", deadline=15.0, work=36.0, modes=MODES)
    problem = small(jobs=(job,))
    found = explain(problem, time_limit_s=20.0).jobs[0]
    assert not found.alone.met
    assert found.alone.late_by_s == pytest.approx(5.0, abs=1e-3)
    assert "even alone it completes at" in found.reason
    assert [remedy.kind for remedy in found.remedies] == ["deadline"]
    huge = small(jobs=(dataclasses.replace(job, work=1e6),))
    said = explain(huge, time_limit_s=20.0).jobs[0]
    assert said.reason == "even alone it cannot complete by the horizon"
    assert said.remedies == ()


def test_a_job_that_no_site_hosts_is_told_so() -> None:
    """A job whose memory no site has is told so, and nothing is offered."""
    site = dataclasses.replace(CLOUD, memory_gib=8.0)
    job = Job(id="fat", deadline=20.0, work=1.0, modes=MODES, memory_gib=16.0)
    found = explain(small(sites=(site,), jobs=(job,)), time_limit_s=20.0).jobs[0]
    assert found.reason.startswith("no site ever has the memory")
    assert found.remedies == ()


def _hard(name: str, deadline: float, work: float) -> Job:
    return Job(id=name, deadline=deadline, work=work, modes=MODES[:1], must_meet=True)


def test_hard_deadlines_that_contradict_each_other_are_named() -> None:
    """Three of five hard deadlines cannot be met on two GPUs: just these, and where and when."""
    jobs = (
        _hard("easy", 30.0, 5.0),
        _hard("a", 10.0, 10.0),
        _hard("b", 10.0, 10.0),
        _hard("c", 10.0, 10.0),
        dataclasses.replace(_hard("soft", 10.0, 10.0), must_meet=False),
    )
    problem = small(jobs=jobs)
    found = explain(problem, time_limit_s=20.0)
    assert found.schedule.status == "infeasible"
    conflict = found.conflict
    assert conflict is not None
    assert conflict.jobs == ("a", "b", "c")
    assert conflict.capacities == (("cloud", 0.0, 10.0),)
    assert conflict.minimal
    assert (
        "cannot all meet their deadlines with the capacity of 'cloud' in [0, 10)" in conflict.text
    )
    # Without any one of them there is a schedule.
    for name in conflict.jobs:
        rest = tuple(job for job in jobs if job.id != name)
        assert optimum(problem.replace(jobs=rest)) is not None


def test_a_hard_deadline_that_fails_alone_is_the_whole_conflict() -> None:
    """A hard deadline that no schedule meets is named alone."""
    found = explain(small(jobs=(_hard("a", 10.0, 10.0), _hard("b", 10.0, 50.0))), time_limit_s=20.0)
    assert found.conflict is not None
    assert found.conflict.jobs == ("b",)
    assert "whatever the others do" in found.conflict.text


def test_the_worth_of_a_unit_is_that_of_brute_force() -> None:
    """One more unit over the whole time is worth what brute force gains by it."""
    problem = small()
    found = explain(problem, time_limit_s=20.0, jobs=[])
    whole = next(m for m in found.marginals if (m.start, m.end) == (0.0, 30.0))
    richer = small(sites=(dataclasses.replace(CLOUD, capacity=((0.0, 3),)),))
    with_unit, without = optimum(richer), optimum(problem)
    assert with_unit is not None
    assert without is not None
    gain = with_unit.value.met_weight - without.value.met_weight
    assert whole.gain_at_least == whole.gain_at_most == gain
    assert whole.price >= gain - 1e-6
    for span in found.marginals:
        assert span.gain_at_least is not None
        assert span.gain_at_most is not None
        assert 0 <= span.gain_at_least <= span.gain_at_most <= gain
    # Most worth first, by what is verified.
    gains = [(m.gain_at_least, m.gain_at_most) for m in found.marginals]
    assert gains == sorted(gains, reverse=True)


def test_time_that_runs_out_is_told() -> None:
    """With next to no time the reasons are there, and what was not looked for is marked."""
    sites = (Site(name="cloud", kind="cloud", capacity=((0.0, 2),)),)
    modes = (Mode(site="cloud", gpus=1, rate=1.0),)
    jobs = tuple(
        Job(id=f"j{k}", deadline=100.0 + k, work=80.0, modes=modes, restart_s=1.0)
        for k in range(12)
    )
    problem = EpochProblem(grid=Grid.uniform(0.0, 10.0, 12), sites=sites, jobs=jobs)
    found = explain(problem, time_limit_s=0.05)
    assert not found.complete
    assert all(job.reason for job in found.jobs)


def test_an_interruption_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during one of the many solves ends the explanation, and what is known is kept."""
    from edgeflow_opt.analysis.explain import room

    asked = []

    def interrupted(*args: object, **options: object) -> object:
        result = ef.solve(*args, **options)  # type: ignore[arg-type]
        asked.append(result)
        schedule = dataclasses.replace(result.schedule, limit=ef.Limit.INTERRUPTED)
        return dataclasses.replace(result, schedule=schedule)

    monkeypatch.setattr(room, "solve", interrupted)
    found = explain(small(), time_limit_s=None)
    assert len(asked) == 1
    assert found.interrupted
    assert not found.complete
    assert [job.job for job in found.jobs] == ["j2", "j3"]


def test_wrong_questions_are_refused() -> None:
    """An unknown job, one without deadline, or a schedule that is not valid is a usage error."""
    problem = small(jobs=(*small().jobs, Job(id="idle", deadline=None, work=1.0, modes=MODES)))
    with pytest.raises(UsageError, match="job 'nobody' is not one of the instance"):
        explain(problem, jobs=["nobody"])
    with pytest.raises(UsageError, match="job 'idle' has no deadline to miss"):
        explain(problem, jobs=["idle"])
    values = {f"x(j{job},cloud,1,0)": 1 for job in range(3)}
    with pytest.raises(UsageError, match="schedule: must be valid"):
        explain(problem, ef.import_solution(problem, values).schedule)
