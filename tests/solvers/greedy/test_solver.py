"""The solvers greedy and edgeflow-select: valid on everything, selection, options, symmetries."""

import dataclasses
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import EpochProblem, SolveStatus, check
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.greedy import GreedyOptions
from edgeflow_opt.solvers.greedy import solver as greedy_solver
from edgeflow_opt.solvers.greedy.options import CHOICES
from edgeflow_opt.workloads import generate_problem
from tests.effort import examples
from tests.solvers.greedy.helpers import job, planned, problem
from tests.strategies import problems

SOLVERS = ("greedy", "edgeflow-select")
SETTINGS = settings(max_examples=examples(60))
OPTIONS = st.fixed_dictionaries(
    {
        **{name: st.sampled_from(values) for name, values in CHOICES.items()},
        **{
            name: st.booleans()
            for name in (
                "rule_1",
                "rule_2",
                "rule_3",
                "knee_cap",
                "charge_losses",
                "elastic",
                "fill",
            )
        },
        "slack_s": st.sampled_from((0.0, 25.0)),
    }
)


@SETTINGS
@given(problems(max_jobs=8, max_slots=6, max_sites=4), OPTIONS, st.sampled_from(SOLVERS))
def test_every_plan_is_valid(instance: EpochProblem, options: dict, solver: str):
    """On random instances with all features and all options the checker passes the schedule."""
    result = solve(instance, solver, params=options)
    assert check(instance, result.schedule).valid
    assert result.bound is None
    assert result.status in (SolveStatus.FEASIBLE, SolveStatus.NO_SOLUTION)
    if result.status is SolveStatus.NO_SOLUTION:
        assert any(j.must_meet for j in instance.jobs)


@SETTINGS
@given(problems(max_jobs=8, max_slots=6, max_sites=4, must_meet=False))
def test_select_is_never_worse_than_greedy(instance: EpochProblem):
    """The selecting solver returns the better of the two plans."""
    greedy, selecting = (solve(instance, name).objective for name in SOLVERS)
    assert not greedy.better_than(selecting)


@SETTINGS
@given(problems(max_jobs=6, max_slots=5, max_sites=3, weights=False), st.integers(0, 1000))
def test_order_of_jobs_does_not_matter_without_ties(instance: EpochProblem, seed: int):
    """With distinct deadlines and the edge served by deadline, a permutation changes no outcome."""
    deadlines = [j.deadline for j in instance.jobs]
    assume(None not in deadlines and len(set(deadlines)) == len(deadlines))
    shuffled = list(instance.jobs)
    random.Random(seed).shuffle(shuffled)
    params = {"edge_order": "deadline", "rule_3": False, "elastic": False, "fill": False}
    one = solve(instance, "greedy", params=params).schedule.outcomes
    two = solve(instance.replace(jobs=tuple(shuffled)), "greedy", params=params).schedule.outcomes
    assert {o.job: o for o in one} == {o.job: o for o in two}


@SETTINGS
@given(problems(max_jobs=6, max_slots=5, max_sites=3))
def test_unit_of_work_does_not_matter(instance: EpochProblem):
    """Work and rates in units half as large give the same allocations."""
    doubled = tuple(
        dataclasses.replace(
            j,
            work=2 * j.work,
            modes=tuple(dataclasses.replace(m, rate=2 * m.rate) for m in j.modes),
        )
        for j in instance.jobs
    )
    one = solve(instance, "greedy").schedule.allocations
    assert one == solve(instance.replace(jobs=doubled), "greedy").schedule.allocations


def test_edge_without_servers_is_no_edge():
    """With no usable edge server the plan is that of the cloud alone (ElasticFlow's steps)."""
    rates = (("c", 1, 1.0), ("c", 2, 1.8))
    jobs = [job(name, 20.0 + 10 * i, 30, *rates, ("e", 1, 5.0)) for i, name in enumerate("abc")]
    bare = [job(name, 20.0 + 10 * i, 30, *rates) for i, name in enumerate("abc")]
    assert planned(problem(jobs, c=3, e=0)) == planned(problem(bare, c=3))


def test_selection_drops_the_largest_job():
    """One long job of the earliest deadline would block three short ones."""
    long = job("l", 39, 39, ("c", 1, 1.0))
    short = [job(f"s{i}", 40, 10, ("c", 1, 1.0)) for i in range(3)]
    instance = problem([long, *short], c=1)
    assert solve(instance, "greedy").value == 1
    assert solve(instance, "edgeflow-select").value == 3


def test_selection_respects_weights():
    """The long job stays if it is worth more than the short ones together."""
    long = job("l", 39, 39, ("c", 1, 1.0), weight=13.0)
    short = [job(f"s{i}", 40, 10, ("c", 1, 1.0)) for i in range(3)]
    assert solve(problem([long, *short], c=1), "edgeflow-select").value == 13


def test_selection_sends_the_largest_to_an_edge_server_that_finishes_it():
    """The long job goes to the edge, and all are met."""
    long = job("l", 39, 30, ("c", 1, 1.0), ("e", 1, 1.0))
    short = [job(f"s{i}", 40, 10, ("c", 1, 1.0)) for i in range(4)]
    assert planned(problem([long, *short], c=1, e=1), select_jobs=True)["l"][0] == "e1"


def test_hard_deadline_that_is_missed_gives_no_solution():
    """A heuristic cannot prove infeasibility, so it says no_solution and shows no plan."""
    instance = problem([job("a", 10, 500, ("c", 1, 1.0), must_meet=True)], c=1)
    for solver in SOLVERS:
        result = solve(instance, solver)
        assert result.status is SolveStatus.NO_SOLUTION
        assert result.schedule.allocations == ()


def test_best_effort_job_gets_what_is_left():
    """It runs in the slots that the job with a deadline does not need, and not before it."""
    instance = problem([job("b", None, 20, ("c", 1, 1.0)), job("a", 20, 20, ("c", 1, 1.0))], c=1)
    assert planned(instance) == {"b": ["-", "-", "c1", "c1"], "a": ["c1", "c1", "-", "-"]}
    assert planned(instance, fill=False)["b"] == ["-"] * 4


def test_no_jobs_give_an_empty_plan():
    """An instance without jobs is solved."""
    assert solve(problem([], c=1), "edgeflow-select").schedule.allocations == ()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"late": "never"}, "option late: must be one of first, last, nothing, got 'never'"),
        ({"slack_s": -1}, "option slack_s: must be a number of seconds >= 0, got -1"),
        ({"slack_s": float("nan")}, "option slack_s: must be a number"),
        ({"elastic": 1}, "option elastic: must be true or false, got 1"),
    ],
)
def test_bad_values_are_refused(params: dict, message: str):
    """The error names the option, the rule and the value."""
    with pytest.raises(UsageError, match=message):
        solve(problem([], c=1), "greedy", params=params)


def test_options_and_parameters_have_the_same_names():
    """Every field of GreedyOptions is a parameter of the solver, and the other way round."""
    from edgeflow_opt.solvers.greedy import SOLVER

    fields = {field.name for field in dataclasses.fields(GreedyOptions)}
    assert set(SOLVER.capabilities.params) == fields


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch):
    """Both variants side by side give the plan that they give one after the other."""
    instance = generate_problem(60, 12, 3, load=2.0)
    after = solve(instance, "edgeflow-select")
    monkeypatch.setattr(greedy_solver, "_MANY_JOBS", 0)
    beside = solve(instance, "edgeflow-select")
    assert beside.schedule.allocations == after.schedule.allocations
    assert beside.objective == after.objective


def test_what_fails_in_the_thread_beside_is_raised(monkeypatch: pytest.MonkeyPatch):
    """A fault of the published variant ends the solve as it does without threads."""
    plan_of_variant = greedy_solver._plan

    def faulty(arrays, options, select_jobs, *rest):
        if not select_jobs:
            raise RuntimeError("planted")
        return plan_of_variant(arrays, options, select_jobs, *rest)

    monkeypatch.setattr(greedy_solver, "_MANY_JOBS", 0)
    monkeypatch.setattr(greedy_solver, "_plan", faulty)
    with pytest.raises(Exception, match="planted"):
        solve(generate_problem(10, 6, 1, load=2.0), "edgeflow-select")
