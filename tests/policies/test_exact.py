from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies import ClusterState, Decision, make_policy
from edgeflow_opt.policies.base import JobState
from edgeflow_opt.policies.edgeflow_select import EdgeFlowSelectPolicy
from edgeflow_opt.policies.exact import ExactPolicy, rolling_grid
from edgeflow_opt.problem import Job, Mode, Site
from edgeflow_opt.simulation import simulate
from edgeflow_opt.solvers import SOLVERS
from edgeflow_opt.workloads import cluster, generate_trace
from tests.effort import examples
from tests.policies import tiny_solvers
from tests.simulation.helpers import CLOUD, EDGE, ONE, TWO, job


@pytest.fixture(autouse=True)
def solvers(monkeypatch):
    """Register the tiny solvers."""
    for name in ("just-in-time", "fails", "interrupted"):
        attribute = name.upper().replace("-", "_")
        monkeypatch.setitem(SOLVERS._built_in, name, f"tests.policies.tiny_solvers:{attribute}")
    tiny_solvers.CALLS.clear()


def run(jobs, sites, solver="just-in-time", *, simulation=None, **options):
    """Simulate the policy, which follows its plans, with slots of 10 s."""
    policy = ExactPolicy(**{"solver": solver, "slot_s": 10.0, "follow": "plan", **options})
    return simulate(jobs, sites, policy, log=True, name="exact", **(simulation or {}))


def spans(result, name):
    """Return what a job held: (start, end, gpus)."""
    return [(a.start, a.end, a.gpus) for a in result.allocations if a.job == name]


def cloud(units):
    """Return a cloud of constant capacity."""
    return Site(name="cloud", kind="cloud", capacity=((0.0, units),))


def test_the_plan_is_followed_at_its_own_boundaries():
    """A just-in-time plan starts the job by a wake-up, without another solve."""
    result = run([job("a", 0.0, 50.0, 20.0)], [CLOUD, EDGE], leftovers=False)
    assert spans(result, "a")[0][0] == 30.0
    assert result.metrics.met == 1
    assert [(e.time, e.woken) for e in result.events] == [(0.0, False), (30.0, True)]
    assert len(tiny_solvers.CALLS) == 1


def test_an_event_makes_a_new_plan():
    """An arrival between two boundaries is solved for at once, on a grid from its time to the old boundaries."""
    jobs = [job("a", 0.0, 50.0, 20.0), job("b", 13.0, 40.0, 10.0)]
    result = run(jobs, [cloud(1), EDGE], leftovers=False)
    grids = [problem.grid.boundaries[:2] for problem, _ in tiny_solvers.CALLS]
    assert grids[:2] == [(0.0, 10.0), (13.0, 20.0)]
    assert result.metrics.met == 2


def test_a_fall_of_capacity_makes_a_new_plan():
    """When GPUs go, the plan from before is not carried out beyond what there is."""
    jobs = [job(name, 0.0, 100.0, 40.0, modes=(ONE,)) for name in "ab"]
    site = Site(name="cloud", kind="cloud", capacity=((0.0, 2), (25.0, 1)))
    result = run(jobs, [site, EDGE])
    assert result.metrics.met == 2
    assert len(tiny_solvers.CALLS) >= 2


def test_leftovers_run_jobs_before_they_must():
    """Free GPUs are handed on, so that a just-in-time plan completes at once."""
    result = run([job("a", 0.0, 500.0, 20.0)], [cloud(1), EDGE])
    assert spans(result, "a")[0][0] == 0.0
    assert result.outcomes[0].completion == pytest.approx(20.0)


def test_leftovers_reach_jobs_that_the_plan_does_not_serve():
    """Late and best-effort jobs get what is left over, after those that are met."""
    jobs = [
        job("late", 0.0, 1.0, 50.0, modes=(ONE,)),
        job("effort", 0.0, None, 50.0, modes=(ONE,)),
        job("met", 0.0, 60.0, 50.0, modes=(ONE, TWO)),
    ]
    result = run(jobs, [cloud(2), Site(name="edge", kind="edge", capacity=((0.0, 0),))])
    assert spans(result, "met")[0] == (0.0, pytest.approx(50.0 / 1.5), 2)
    assert result.metrics.unfinished == 0
    assert result.metrics.best_effort_completed == 1


def test_leftovers_do_not_pay_losses_that_eat_the_gain():
    """A larger mode whose restart costs more than it gains is left alone."""
    jobs = [job("a", 0.0, 30.0, 29.0, modes=(ONE, TWO))]
    fixed = {"overhead": "25,25"}
    result = run(jobs, [cloud(1), EDGE], simulation=fixed)
    assert result.metrics.met == 1

    class Start:
        """Runs a on one GPU first, then asks the policy."""

        def __init__(self) -> None:
            self.exact = ExactPolicy(solver="just-in-time", slot_s=10.0, follow="plan")

        def decide(self, state: ClusterState) -> Decision:
            """Return one GPU at the start, then the decision of the policy."""
            if state.now == 0.0:
                return Decision(allocation={"a": ONE}, wake_up=5.0)
            return self.exact.decide(state)

    result = simulate(jobs, [cloud(4), EDGE], Start(), **fixed)
    assert {gpus for _, _, gpus in spans(result, "a")} == {1}
    assert result.metrics.reconfigurations_per_job == 0.0


def test_without_a_plan_leftovers_still_run_jobs():
    """A solver that finds nothing leaves the cluster to the left-overs, not idle."""
    result = run([job("a", 0.0, 40.0, 20.0), job("b", 5.0, 40.0, 20.0)], [CLOUD, EDGE], "fails")
    assert result.metrics.met == 2


def test_without_a_new_plan_the_old_one_goes_on():
    """When a later solve finds nothing, the plan from before is carried out."""
    policy = ExactPolicy(solver="just-in-time", slot_s=10.0, leftovers=False)

    class Failing:
        """Lets the solver fail from the second event on."""

        def decide(self, state: ClusterState) -> Decision:
            """Return the decision of the policy."""
            if state.arrived == {"b"}:
                policy._solver = "fails"
            return policy.decide(state)

    jobs = [job("a", 0.0, 50.0, 20.0), job("b", 12.0, 14.0, 20.0)]
    result = simulate(jobs, [CLOUD, EDGE], Failing())
    assert result.outcomes[0].met is True


def test_the_next_solve_begins_from_the_plan_before():
    """The second solve gets the plan before as its warm start, unless that is switched off."""
    jobs = [job("a", 0.0, 50.0, 20.0), job("b", 13.0, 43.0, 10.0)]
    run(jobs, [CLOUD, EDGE])
    assert [options.warm_start is not None for _, options in tiny_solvers.CALLS[:2]] == [
        False,
        True,
    ]
    tiny_solvers.CALLS.clear()
    run(jobs, [CLOUD, EDGE], warm_start=False)
    assert all(options.warm_start is None for _, options in tiny_solvers.CALLS)


def test_stability_makes_the_chosen_jobs_heavier_but_never_worth_another_job():
    """Jobs that the plan before meets weigh more, all together less than one job more."""
    jobs = [job("a", 0.0, 50.0, 20.0), job("b", 13.0, 43.0, 10.0)]
    run(jobs, [CLOUD, EDGE], stability=0.9)
    weights = [job.weight for job in tiny_solvers.CALLS[1][0].jobs]
    assert weights == [pytest.approx(1.45), 1.0]
    assert all(job.weight == 1.0 for job in tiny_solvers.CALLS[0][0].jobs)


def test_of_equal_sets_the_one_of_less_work_is_preferred():
    """Small jobs weigh more, all together less than one job; the largest weighs what it did."""
    jobs = [job("a", 0.0, 50.0, 20.0), job("b", 0.0, 43.0, 10.0), job("c", 0.0, None, 5.0)]
    run(jobs, [CLOUD, EDGE], least_work=0.8)
    weights = [job.weight for job in tiny_solvers.CALLS[0][0].jobs]
    assert weights == [1.0, pytest.approx(1.2), 1.0]


def test_work_limits_give_the_same_history_again():
    """Limited by work and not by time, two runs decide alike."""
    trace = generate_trace(25, 1, load=2.0, cloud_gpus=8)
    sites = cluster(8, 1, start_s=trace.start, end_s=trace.end)
    first, second = (
        simulate(
            trace.jobs(),
            sites,
            ExactPolicy(
                time_limit_s=None, max_slots=24, deterministic=True,
                solver_params={"exact_iterations": 2, "moves": 100},
            ),
        )
        for _ in range(2)
    )  # fmt: skip
    assert first.allocations == second.allocations


def test_the_epoch_problem_carries_the_state():
    """Work left, running mode, loss left, last site and losses reach the problem."""
    jobs = [
        job("a", 0.0, 400.0, 90.0, modes=(ONE,)),
        job("b", 20.0, 400.0, 20.0, modes=(ONE,)),
    ]
    run(jobs, [cloud(2), EDGE], simulation={"overhead": "30,180"})
    problem = tiny_solvers.CALLS[1][0]
    a, b = problem.jobs
    assert problem.now == 20.0
    assert a.required == pytest.approx(70.0)
    assert (a.running.site, a.running.gpus, a.running.loss_left_s) == ("cloud", 1, 0.0)
    assert (a.last_site, a.restart_s, a.migration_s) == ("cloud", 30.0, 180.0)
    assert (b.running, b.last_site, b.deadline) == (None, None, 400.0)


def test_an_interrupted_solve_interrupts_the_simulation():
    """Ctrl-C during a solve ends the simulation; its incumbent is not carried on."""
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        run([job("a", 0.0, 50.0, 20.0)], [CLOUD, EDGE], "interrupted")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slot_s": 0.0}, "option slot_s"),
        ({"slot_s": float("nan")}, "option slot_s"),
        ({"max_slots": 0}, "option max_slots"),
        ({"max_slots": 2.5}, "option max_slots"),
        ({"stability": 1.0}, "option stability"),
        ({"least_work": -0.1}, "option least_work"),
        ({"stability": 0.5, "least_work": 0.5}, "must be below 1 together"),
        ({"follow": "both"}, "option follow: must be 'select' or 'plan', got 'both'"),
        ({"margin": -1.0}, "option margin"),
        ({"solver": "cpsta"}, "solver 'cpsta' is not known; did you mean 'cpsat'"),
        ({"slots": 3}, "option 'slots' is not one of policy 'exact'"),
    ],
)
def test_bad_options_are_refused(options, message):
    """Every option out of its range is named, at once."""
    with pytest.raises(UsageError, match=message):
        make_policy("exact", **options)


def overloaded(*jobs):
    """Return jobs (id, deadline, work) at time 0 on two GPUs and one edge server that is half as fast."""
    modes = (
        Mode(site="cloud", gpus=1, rate=1.0),
        Mode(site="cloud", gpus=2, rate=1.5),
        Mode(site="edge", gpus=1, rate=0.5),
    )
    made = [Job(id=i, arrival=0.0, deadline=d, work=w, modes=modes) for i, d, w in jobs]
    return made, [cloud(2), Site(name="edge", kind="edge", capacity=((0.0, 1),))]


def test_nothing_is_solved_where_the_heuristic_meets_all():
    """Choosing among jobs begins where not all of them can be met; hopeless ones do not count."""
    jobs, sites = overloaded(("a", 30.0, 20.0), ("b", 40.0, 20.0), ("hopeless", 10.0, 100.0))
    result = run(jobs, sites, follow="select")
    assert result.metrics.met == 2
    assert tiny_solvers.CALLS == []


@pytest.mark.parametrize(
    ("jobs", "selected", "possible"),
    [
        ((("a", 50.0, 10.0), ("b", 40.0, 40.0), ("c", 50.0, 30.0), ("d", 40.0, 30.0)), 3, 4),
        ((("a", 30.0, 40.0), ("b", 30.0, 20.0), ("c", 30.0, 50.0)), 1, 2),
    ],
)
def test_a_better_set_of_jobs_is_taken(jobs, selected, possible):
    """Where the heuristic selects too few jobs, those that the solver chooses are met."""
    made, sites = overloaded(*jobs)
    assert simulate(made, sites, "edgeflow-select").metrics.met == selected
    assert run(made, sites, "highs", follow="select").metrics.met == possible


def test_a_set_that_is_not_worth_the_margin_is_left_alone():
    """With a margin of two jobs a set of one job more is not taken."""
    made, sites = overloaded(("a", 30.0, 40.0), ("b", 30.0, 20.0), ("c", 30.0, 50.0))
    assert run(made, sites, "highs", follow="select", margin=2.0).metrics.met == 1


def test_choosing_alone_optimises_the_deadlines_met_only():
    """The levels below are for plans that are followed."""
    made, sites = overloaded(("a", 30.0, 40.0), ("b", 30.0, 20.0), ("c", 30.0, 50.0))
    run(made, sites, follow="select")
    run(made, sites, follow="plan")
    levels = [options.levels for _, options in tiny_solvers.CALLS]
    assert levels[0] == 1
    assert levels[-1] == 5


def test_the_chosen_jobs_come_first_in_the_heuristic():
    """Of two jobs that exclude each other the chosen one is met, whichever is larger."""
    made, sites = overloaded(("small", 30.0, 40.0), ("large", 30.0, 44.0))
    sites = [cloud(2), Site(name="edge", kind="edge", capacity=((0.0, 0),))]
    state = ClusterState(
        now=0.0, sites=sites, jobs=[JobState(job=job, required_left=job.required) for job in made]
    )
    policy = EdgeFlowSelectPolicy()
    assert policy.plan(state).met == {"small"}
    assert policy.plan(state, {"large"}).met == {"large"}
    assert policy.plan(state, {"small", "large"}).met == {"small"}


@given(
    st.floats(-1e9, 1e9),
    st.floats(0.0, 1e8),
    st.floats(1.0, 600.0),
    st.integers(1, 96),
)
def test_grids_grow_from_the_first_slot_to_the_end(now, span, slot_s, max_slots):
    """At most max_slots slots, but for the first none shorter than its predecessor, to the end."""
    grid = rolling_grid(now, now + span, slot_s, max_slots)
    lengths = [b - a for a, b in pairwise(grid.boundaries)]
    assert grid.num_slots <= max_slots
    assert grid.start == now
    assert grid.end >= now + span - 1e-6 * max(1.0, abs(now))
    assert all(b >= a * (1 - 1e-3) for a, b in pairwise(lengths[1:]))


def test_grids_refine_those_before_them():
    """The boundaries ahead of a grid are boundaries of every later grid that reaches as far."""
    before = rolling_grid(1000.0, 50_000.0, 60.0, 96)
    assert before.num_slots > 80
    assert before.boundaries[1] == 1020.0
    for now in (1001.0, 1020.0, 4321.0, 20_000.0):
        later = rolling_grid(now, 50_000.0, 60.0, 96)
        assert {t for t in before.boundaries if now < t < 50_000.0} <= set(later.boundaries)


def test_grids_exist_far_from_zero():
    """Boundaries differ even where the clock cannot tell a second, and no instance refuses them."""
    for now, end, slot_s in ((0.0, 1e15, 60.0), (1e14, 1e14, 9.5e14), (9e14, 1e15, 60.0)):
        assert rolling_grid(now, end, slot_s, 96).end <= 1e15
    grid = rolling_grid(9e14, 9e14, 1e-3, 4)
    assert grid.boundaries[0] < grid.boundaries[1]


@st.composite
def traces(draw):
    """Return up to 6 jobs in the cloud and on the edge, with and without deadlines."""
    jobs = []
    for index in range(draw(st.integers(1, 6))):
        arrival = draw(st.integers(0, 120)) / 2
        modes = [
            Mode(site="cloud", gpus=g, rate=draw(st.integers(1, 8)) / 4)
            for g in draw(st.lists(st.sampled_from([1, 2, 4]), min_size=1, unique=True))
        ]
        if draw(st.booleans()):
            modes.append(Mode(site="edge", gpus=1, rate=draw(st.integers(1, 8)) / 4))
        deadline = arrival + draw(st.integers(1, 240)) / 2
        jobs.append(
            Job(
                id=f"j{index}",
                arrival=arrival,
                deadline=deadline if draw(st.integers(0, 3)) else None,
                work=float(draw(st.integers(1, 60))),
                modes=tuple(modes),
            )
        )
    return jobs


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    traces(),
    st.integers(1, 4),
    st.integers(0, 2),
    st.sampled_from(["none", "3,9", "elasticflow"]),
    st.sampled_from(["just-in-time", "fails"]),
    st.sampled_from([3, 96]),
    st.sampled_from(("plan", "select")),
)
def test_every_trace_is_simulated_to_the_end(
    jobs, gpus, servers, overhead, solver, max_slots, follow
):
    """With left-overs every job that fits the cluster completes, and the history is valid."""
    edge = Site(name="edge", kind="edge", capacity=((0.0, servers), (40.0, 1), (55.0, servers)))
    result = run(
        jobs,
        [cloud(gpus), edge],
        solver,
        max_slots=max_slots,
        follow=follow,
        simulation={"overhead": overhead},
    )
    fit = [
        any(m.gpus <= gpus if m.site == "cloud" else servers > 0 for m in job.modes) for job in jobs
    ]
    for fits, outcome in zip(fit, result.outcomes, strict=True):
        assert outcome.completion is not None or not fits


@pytest.mark.parametrize("solver", ["greedy", "cpsat", "highs", "auto"])
def test_every_solver_drives_the_horizon(solver):
    """Two jobs that fit only if each is planned well are met with every solver."""
    jobs = [
        job("a", 0.0, 60.0, 30.0, modes=(ONE,)),
        job("b", 0.0, 60.0, 30.0, modes=(ONE,)),
        job("c", 10.0, 200.0, 20.0, modes=(ONE,)),
    ]
    result = run(jobs, [cloud(1), EDGE], solver, time_limit_s=5.0)
    assert result.metrics.met == 3
