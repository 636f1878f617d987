"""The data classes: frozen, slotted, comparable, picklable, and their small computations."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given

from edgeflow_opt.errors import InstanceError
from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Grid,
    Job,
    Mode,
    Objective,
    ObjectiveValue,
    Outcome,
    Running,
    Schedule,
    Site,
    SolveStatus,
    Violation,
    Weights,
    check,
    relative_gap,
)
from tests.problem.examples import example_schedule, rich_problem, rich_schedule
from tests.strategies import problems

OBJECTS: list[Any] = [
    Mode(site="s", gpus=1, rate=1.0),
    Running(site="s", gpus=1),
    Job(id="j", deadline=1.0, work=1.0, modes=()),
    Site(name="s", kind="edge", capacity=((0.0, 1),)),
    Grid((0.0, 1.0)),
    Weights(),
    Objective(),
    ObjectiveValue(met_weight=1.0),
    Allocation(job="j", start=0.0, end=1.0, site="s", gpus=1),
    Outcome(job="j", met=None, completion=None),
    example_schedule(),
    Violation(kind="met", message="m"),
    check(rich_problem(), rich_schedule(rich_problem())),
    rich_problem(),
]
IDS = [type(item).__name__ for item in OBJECTS]


@pytest.mark.parametrize("item", OBJECTS, ids=IDS)
def test_frozen(item: Any) -> None:
    """No field of a public object can be set."""
    name = dataclasses.fields(item)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError, match=name):
        setattr(item, name, None)


@pytest.mark.parametrize("item", OBJECTS[:-1], ids=IDS[:-1])
def test_slotted(item: Any) -> None:
    """All but the problem, which caches its indices, have slots and no dictionary."""
    assert not hasattr(item, "__dict__")


@pytest.mark.parametrize("item", OBJECTS, ids=IDS)
def test_pickles_to_an_equal_object(item: Any) -> None:
    """A public object survives pickling, and equal objects hash alike."""
    copy = pickle.loads(pickle.dumps(item))
    assert copy == item
    assert copy is not item
    assert hash(copy) == hash(item)


@pytest.mark.parametrize("item", OBJECTS, ids=IDS)
def test_differs_from_another(item: Any) -> None:
    """An object is unequal to an object of another kind."""
    assert item != Running(site="elsewhere", gpus=9)


def test_pickle_leaves_out_the_cached_indices() -> None:
    """Indices are computed again after unpickling instead of being stored."""
    problem = rich_problem()
    size = len(pickle.dumps(problem))
    assert problem.job_index["effort"] == 3
    assert problem.site_index == {"cloud": 0, "edge": 1}
    assert len(pickle.dumps(problem)) == size
    assert pickle.loads(pickle.dumps(problem)).job_index == problem.job_index


@given(problems())
def test_random_instances_pickle(problem: EpochProblem) -> None:
    """Every instance survives pickling."""
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_open_fields_are_filled_in() -> None:
    """The arrival is min(now, deadline), the last site that of the running mode."""
    mode = Mode(site="s", gpus=1, rate=1.0)

    def job(name: str, deadline: float | None, **fields: Any) -> Job:
        return Job(id=name, deadline=deadline, work=1.0, modes=(mode,), **fields)

    problem = EpochProblem(
        grid=Grid((10.0, 20.0)),
        sites=(Site(name="s", kind="cloud", capacity=((0.0, 1),)),),
        jobs=(
            job("later", 15.0),
            job("passed", 5.0),
            job("effort", None),
            job("given", 15.0, arrival=12.0),
            job("runs", 15.0, running=Running(site="s", gpus=1)),
        ),
    )
    assert [j.arrival for j in problem.jobs] == [10.0, 5.0, 10.0, 12.0, 10.0]
    assert [j.last_site for j in problem.jobs] == [None, None, None, None, "s"]


def test_replace_validates() -> None:
    """A copy with changes is checked like any other instance."""
    problem = rich_problem()
    assert problem.replace(jobs=()).jobs == ()
    with pytest.raises(InstanceError, match="at least one site is needed"):
        problem.replace(sites=(), jobs=())


def test_as_moldable_changes_that_only() -> None:
    """The moldable copy differs in the flag of the jobs alone."""
    problem = rich_problem()
    moldable = problem.as_moldable()
    assert not any(job.malleable for job in moldable.jobs)
    back = tuple(
        dataclasses.replace(job, malleable=old.malleable)
        for job, old in zip(moldable.jobs, problem.jobs, strict=True)
    )
    assert moldable.replace(jobs=back) == problem


def test_str_names_the_sizes() -> None:
    """The summary tells jobs, slots, kinds of jobs and units now."""
    text = str(rich_problem())
    assert "6 jobs x 3 slots" in text
    assert "5 with deadline, 1 best effort" in text
    assert "cloud site 'cloud': 4 units now" in text


def test_total_weight_leaves_out_best_effort() -> None:
    """The trivial bound counts jobs with a deadline only."""
    assert rich_problem().total_weight == 6.0


@pytest.mark.parametrize(
    ("time", "units"), [(-1.0, 5), (0.0, 5), (9.9, 5), (10.0, 2), (19.9, 2), (20.0, 7), (1e9, 7)]
)
def test_capacity_at_a_step_is_that_after_it(time: float, units: int) -> None:
    """A step holds from its time on, the first also before it, the last for ever."""
    site = Site(name="s", kind="cloud", capacity=((0.0, 5), (10.0, 2), (20.0, 7)))
    assert site.capacity_at(time) == units


@pytest.mark.parametrize(
    ("start", "end", "units"),
    [(0, 10, 5), (0, 10.1, 2), (10, 20, 2), (15, 30, 2), (20, 30, 7), (0, 30, 2), (30, 40, 7)],
)
def test_least_capacity_is_of_a_half_open_interval(start: float, end: float, units: int) -> None:
    """A step at the end of the interval does not bind it, one inside it does."""
    site = Site(name="s", kind="cloud", capacity=((0.0, 5), (10.0, 2), (20.0, 7)))
    assert site.least_capacity(start, end) == units


def test_units_of_a_mode() -> None:
    """A mode takes its GPUs on a cloud site and one server on an edge site."""
    mode = Mode(site="s", gpus=3, rate=1.0)
    assert Site(name="s", kind="cloud", capacity=((0.0, 5),)).units(mode) == 3
    assert Site(name="s", kind="edge", capacity=((0.0, 5),)).units(mode) == 1


@pytest.mark.parametrize(
    ("value", "bound", "gap"),
    [
        (10.0, 10.0, 0.0),
        (10.0, 11.0, 0.1),
        (10.0, 10.0 - 1e-9, 0.0),
        (1e-9, 2e-9, 1.0),
        (0.0, 1.0, None),
        (0.0, 1e-9, None),
        (0.0, 0.0, 0.0),
        (-2.0, -1.0, 0.5),
    ],
)
def test_relative_gap(value: float, bound: float, gap: float | None) -> None:
    """The gap is relative to the value, 0 where equal, None where that means nothing."""
    assert relative_gap(value, bound) == (None if gap is None else pytest.approx(gap))


def test_gap_of_a_schedule_without_bound_or_plan() -> None:
    """Without a bound, or without a plan, there is no gap."""
    schedule = example_schedule()
    assert schedule.gap == 0.0
    assert schedule.met == 1
    assert dataclasses.replace(schedule, bound=None).gap is None
    assert Schedule(solver="x", status=SolveStatus.NO_SOLUTION, bound=1.0).gap is None


@pytest.mark.parametrize(
    "worse",
    [
        {"met_weight": 1.0},
        {"progress": 0.1},
        {"leftover": 0.1},
        {"cost": 11.0},
        {"reconfigurations": 2},
    ],
)
def test_better_than_is_lexicographic(worse: dict[str, float]) -> None:
    """Each level decides where those before it are equal, whatever those after it say."""
    good = ObjectiveValue(met_weight=2.0, progress=0.5, leftover=0.5, cost=10.0, reconfigurations=1)
    bad = dataclasses.replace(good, **worse)
    assert good.better_than(bad)
    assert not bad.better_than(good)
    assert not good.better_than(good)


def test_better_than_ignores_rounding() -> None:
    """A difference of 1e-12 at a high level does not decide over a lower one."""
    one = ObjectiveValue(met_weight=2.0, cost=10.0)
    other = ObjectiveValue(met_weight=2.0 + 1e-12, cost=11.0)
    assert one.better_than(other)


def test_better_than_by_weighted_sum() -> None:
    """Where both have a weighted sum, it alone decides."""
    one = ObjectiveValue(met_weight=2.0, cost=10.0, weighted=1.0)
    other = ObjectiveValue(met_weight=1.0, cost=1.0, weighted=1.5)
    assert other.better_than(one)
    weights = Weights(met=1.0, progress=2.0, leftover=3.0, cost=0.1, reconfigurations=0.5)
    value = ObjectiveValue(
        met_weight=2.0, progress=0.5, leftover=0.25, cost=10.0, reconfigurations=4
    )
    assert value.weighted_sum(weights) == pytest.approx(2 + 1 + 0.75 - 1 - 2)
