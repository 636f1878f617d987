"""The clairvoyant bound: what it must never fall below, and what it must not exceed."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.clairvoyant import clairvoyant_bound
from edgeflow_opt.clairvoyant.schedules import carried_out, halved, simulated
from edgeflow_opt.errors import InstanceError, UsageError
from edgeflow_opt.policies import POLICIES, make_policy
from edgeflow_opt.problem import Job, Site, check_history
from edgeflow_opt.problem.schedule import Limit
from edgeflow_opt.simulation import simulate
from edgeflow_opt.workloads import cluster, read_trace
from tests.clairvoyant.helpers import MODES, best_on_a_grid, jobs_strategy, sites_strategy
from tests.effort import examples

CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 2),))
EDGE = Site(name="edge", kind="edge", capacity=((0.0, 0),))


def job(name, work, deadline, arrival=0.0, modes=MODES[:2], **fields):
    """Return a job of one or two cloud GPUs."""
    return Job(id=name, arrival=arrival, deadline=deadline, work=work, modes=modes, **fields)


def test_a_trace_by_hand():
    """Two GPUs for 10 s are 20 GPU-seconds: of three jobs of 9 on one GPU each two can be met."""
    jobs = [job(name, 9.0, 10.0, modes=MODES[:1]) for name in "abc"]
    result = clairvoyant_bound(jobs, [CLOUD, EDGE])
    assert (result.jobs, result.bound, result.best_known, result.gap) == (3, 2.0, 2.0, 0.0)
    assert 2.0 <= result.linear_bound < 2.3
    assert result.limit is None


def test_modes_may_be_mixed_within_an_interval():
    """A job of 13.5 iterations in 10 s needs 1 GPU half and 2 GPUs half of the time; so do two."""
    two = [job(name, 13.5, 10.0) for name in "ab"]
    three_gpus = dataclasses.replace(CLOUD, capacity=((0.0, 3),))
    # By turns one has two GPUs and the other has one.
    assert clairvoyant_bound(two, [three_gpus, EDGE]).bound == 2.0
    assert clairvoyant_bound(two, [CLOUD, EDGE]).bound == 1.0


def test_branching_goes_below_the_linear_program():
    """Of three jobs that need two GPUs for 6 of 10 s the linear program meets 1.67, none two."""
    jobs = [job(name, 6.0 * 1.7, 10.0, modes=MODES[1:2]) for name in "abc"]
    result = clairvoyant_bound(jobs, [CLOUD, EDGE])
    assert result.linear_bound == pytest.approx(10 / 6, rel=1e-3)
    # The values in between are refuted one after the other.
    for light, heavy in ((3.0, 4.0), (5.0, 6.0)):
        weighty = [dataclasses.replace(one, weight=light) for one in jobs]
        weighty[0] = dataclasses.replace(weighty[0], weight=heavy)
        heavier = clairvoyant_bound(weighty, [CLOUD, EDGE])
        assert heavier.linear_bound > heavy + 0.5 * light
        assert (heavier.bound, heavier.best_known) == (heavy, heavy)
        assert heavier.nodes > 0


def test_what_cannot_be_met_at_all_does_not_count():
    """Jobs too long, too large for the cluster or the memory, or best effort add nothing."""
    small = Site(name="edge", kind="edge", capacity=((0.0, 1),), memory_gib=1.0)
    jobs = [
        job("long", 99.0, 10.0),
        job("wide", 1.0, 10.0, modes=MODES[2:3]),
        job("heavy", 1.0, 10.0, modes=MODES[3:], memory_gib=2.0),
        job("late", 1.0, 0.0),
        job("best effort", 1.0, None),
    ]
    result = clairvoyant_bound(jobs, [CLOUD, small])
    assert (result.jobs, result.bound, result.best_known) == (4, 0.0, 0.0)
    assert result.share(0.0) is None


def test_an_empty_trace_is_bounded():
    """No job: nothing can be met, and nothing is missing."""
    result = clairvoyant_bound([], [CLOUD, EDGE])
    assert (result.jobs, result.bound, result.best_known, result.intervals) == (0, 0.0, 0.0, 0)


def test_capacity_is_integrated_over_merged_intervals():
    """A capacity of 2 for half of an interval counts as 10 GPU-seconds, not as 20."""
    half = Site(name="cloud", kind="cloud", capacity=((0.0, 2), (5.0, 0)))
    jobs = [job("a", 9.0, 10.0, modes=MODES[:1]), job("b", 4.0, 10.0, modes=MODES[:1])]
    merged = clairvoyant_bound(jobs, [half, EDGE], max_intervals=1)
    assert merged.intervals == 1
    assert merged.events == 2
    assert merged.bound == 1.0
    assert clairvoyant_bound(jobs, [half, EDGE]).best_known == 1.0


@settings(max_examples=examples(8))
@given(jobs_strategy(most=6), sites_strategy(), st.sampled_from(["none", "1,3", "elasticflow"]))
def test_no_policy_exceeds_the_bound(jobs, sites, overhead):
    """Whatever the policy and the overhead, no history meets more than the bound."""
    # Some policies ask for ever to be woken for a job that nothing can serve.
    jobs = [
        dataclasses.replace(one, modes=tuple(dict.fromkeys((MODES[0], *one.modes)))) for one in jobs
    ]
    cloud, edge = sites
    sites = [dataclasses.replace(cloud, capacity=(*cloud.capacity, (99.0, 1))), edge]
    bound = clairvoyant_bound(jobs, sites, schedule=False, time_limit_s=0.5)
    coarse = clairvoyant_bound(jobs, sites, schedule=False, time_limit_s=0.5, max_intervals=2)
    assert coarse.linear_bound >= bound.bound - 1e-6
    for name in POLICIES.names():
        options = {"time_limit_s": 0.01} if name == "exact" else {}
        metrics = simulate(jobs, sites, make_policy(name, **options), overhead=overhead).metrics
        assert metrics.met_weight <= bound.bound
        assert metrics.met_weight <= coarse.bound


@settings(max_examples=examples(40))
@given(jobs_strategy(most=4, weights=st.sampled_from([1.0, 2.0, 0.5])), sites_strategy())
def test_no_schedule_on_a_grid_exceeds_the_bound(jobs, sites):
    """The best schedule on a grid of 6 slots, by brute force, is within the bound."""
    best = best_on_a_grid(jobs, sites, 10.0, 60.0)
    result = clairvoyant_bound(jobs, sites, time_limit_s=2.0)
    assert result.bound >= best - 1e-9
    assert result.best_known is not None
    assert result.best_known <= result.bound + 1e-9


@settings(max_examples=examples(12))
@given(jobs_strategy(most=6), sites_strategy(), st.integers(1, 3))
def test_more_gpus_never_lower_the_bound(jobs, sites, more):
    """With more GPUs at every moment the bound is as high or higher; unconverged linear ones within 2 %."""
    cloud, edge = sites
    larger = dataclasses.replace(cloud, capacity=tuple((t, u + more) for t, u in cloud.capacity))
    few = clairvoyant_bound(jobs, [cloud, edge], schedule=False, time_limit_s=0.5)
    many = clairvoyant_bound(jobs, [larger, edge], schedule=False, time_limit_s=0.5)
    assert many.linear_bound >= few.linear_bound * (1.0 - 2e-2)
    if few.limit is many.limit is None:
        assert many.bound >= few.bound - 1.0


@settings(max_examples=examples(30))
@given(jobs_strategy(), sites_strategy())
def test_the_best_schedule_is_a_schedule(jobs, sites):
    """What is returned passes the checker of histories, and meets what is claimed."""
    result = clairvoyant_bound(jobs, sites, time_limit_s=2.0)
    report = check_history(jobs, sites, result.allocations, result.outcomes)
    assert report.violations == ()
    assert report.met_weight == result.best_known


def test_losses_bind_the_schedule_and_not_the_bound():
    """With a prohibitive restart the bound stays, and the schedule keeps to one run a job."""
    jobs = [job("a", 13.5, 10.0, restart_s=100.0)]
    result = clairvoyant_bound(jobs, [CLOUD, EDGE])
    assert (result.bound, result.best_known) == (1.0, 1.0)
    assert len(result.allocations) == 1


def test_a_job_lets_go_when_it_completes():
    """Units held in a plan beyond the completion are given back."""
    from edgeflow_opt.problem import Allocation

    one = job("a", 4.0, 10.0)
    held = Allocation(job="a", start=0.0, end=9.0, site="cloud", gpus=1)
    found = carried_out("test", [one], [CLOUD, EDGE], [held])
    assert found.allocations[0].end == pytest.approx(4.0, abs=1e-5)
    assert found.met_weight == 1.0


def test_a_simulation_ends_when_its_time_is_up():
    """A simulation that is stopped returns no schedule."""
    assert (
        simulated("edgeflow-select", [job("a", 4.0, 9.0)], [CLOUD, EDGE], None, lambda: True)
        is None
    )


def test_the_same_input_gives_the_same_bound():
    """Without a limit on time two runs agree in everything but the wall time."""
    jobs = [job(str(index), 4.0 + index, 9.0 + index, arrival=0.5 * index) for index in range(9)]
    one, two = (
        clairvoyant_bound(jobs, [CLOUD, EDGE], time_limit_s=None, deterministic=True)
        for _ in range(2)
    )
    assert dataclasses.replace(one, seconds=0.0) == dataclasses.replace(two, seconds=0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit_s": 0.0}, "time_limit_s: must be a finite number above 0 or None, got 0.0"),
        ({"time_limit_s": float("nan")}, "time_limit_s: must be a finite number above 0"),
        ({"max_intervals": 0}, "max_intervals: must be a whole number >= 1, got 0"),
        ({"max_intervals": True}, "max_intervals: must be a whole number >= 1, got True"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    """Each option is named with its rule and value."""
    with pytest.raises(UsageError, match=message):
        clairvoyant_bound([], [CLOUD, EDGE], **options)


def test_a_faulty_trace_is_refused():
    """The rules of simulations hold: a job needs its arrival."""
    with pytest.raises(InstanceError, match="job 'a', arrival"):
        clairvoyant_bound([job("a", 1.0, 9.0, arrival=None)], [CLOUD, EDGE])


def test_an_interrupt_keeps_what_is_known(monkeypatch):
    """Ctrl-C while the bound is brought down returns bound and schedule so far."""
    from edgeflow_opt.clairvoyant.refutation import Refuter

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Refuter, "refuted", interrupted)
    jobs = [job(name, 6.0 * 1.7, 10.0, modes=MODES[1:2], weight=3.0) for name in "abc"]
    jobs[0] = dataclasses.replace(jobs[0], weight=4.0)
    result = clairvoyant_bound(jobs, [CLOUD, EDGE])
    assert result.limit is Limit.INTERRUPTED
    assert result.bound == 6.0
    assert result.best_known == 4.0


@pytest.mark.parametrize(("gpus", "servers", "most"), [(16, 0, 136), (32, 8, 160)])
def test_a_public_trace_is_bounded(data_folder, gpus, servers, most):
    """The testbed trace: the linear bound, and selection within it."""
    trace = read_trace(data_folder / "elasticflow_itp" / "testbed195.csv")
    sites = cluster(gpus, servers, start_s=trace.start)
    result = clairvoyant_bound(trace.jobs(), sites, time_limit_s=4.0)
    assert result.bound <= most
    assert result.linear_bound == pytest.approx(most + 0.7, abs=0.3)
    assert result.best_known is not None
    assert 0.85 * most < result.best_known <= result.bound


def test_the_longest_intervals_are_halved():
    """Of 0, 8, 10 with at most four intervals: 8 s are halved, then one of the halves."""
    assert halved([0.0, 8.0, 10.0], 3) == [0.0, 4.0, 8.0, 10.0]
    assert halved([0.0, 8.0, 10.0], 4) == [0.0, 2.0, 4.0, 8.0, 10.0]
    assert halved([0.0, 8.0], 1) == [0.0, 8.0]
    assert halved([], 9) == []


def test_a_finer_grid_realises_what_the_relaxation_mixes():
    """Two jobs take turns on two of three GPUs: found only where the 10 s are divided."""
    two = [job(name, 13.5, 10.0) for name in "ab"]
    three_gpus = dataclasses.replace(CLOUD, capacity=((0.0, 3),))
    result = clairvoyant_bound(two, [three_gpus, EDGE], time_limit_s=10.0)
    assert (result.bound, result.best_known) == (2.0, 2.0)
