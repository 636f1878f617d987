from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.policies import ClusterState, Decision
from edgeflow_opt.problem import Job, Mode, Site, check_history
from edgeflow_opt.problem.runs import credit_by, runs_of, with_stalls
from edgeflow_opt.simulation import parse_overhead, simulate
from tests.effort import examples
from tests.simulation.helpers import Fifo

# Times and rates are dyadic, so that a shift of the clock is exact.
TIMES = st.integers(0, 800).map(lambda k: k / 4)
RATES = st.integers(1, 32).map(lambda k: k / 8)


@st.composite
def jobs_strategy(draw):
    """Return 1 to 8 jobs with modes in the cloud and on the edge."""
    jobs = []
    for index in range(draw(st.integers(1, 8))):
        arrival = draw(TIMES)
        gpus = draw(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=3, unique=True))
        modes = [Mode(site="cloud", gpus=g, rate=draw(RATES)) for g in gpus]
        if draw(st.booleans()):
            modes.append(Mode(site="edge", gpus=1, rate=draw(RATES)))
        jobs.append(
            Job(
                id=f"j{index}",
                arrival=arrival,
                deadline=arrival + draw(TIMES) if draw(st.booleans()) else None,
                work=draw(st.integers(1, 400)) / 4,
                modes=tuple(modes),
            )
        )
    return jobs


@st.composite
def sites_strategy(draw):
    """Return a cloud and an edge site with steps of capacity, 0 included."""
    sites = []
    for name, most in (("cloud", 6), ("edge", 2)):
        times = sorted({0.0, *draw(st.lists(TIMES, max_size=4))})
        steps = tuple((time, draw(st.integers(0, most))) for time in times)
        sites.append(Site(name=name, kind=name, capacity=steps))
    return sites


class Erratic:
    """Any legal decision, drawn from a seed: idle, move, grow, refuse, wake up."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.wake_ups = 0

    def decide(self, state: ClusterState) -> Decision:
        """Return a random decision."""
        draw = self.random
        free = {site.name: site.capacity_at(state.now) for site in state.sites}
        units = {"cloud": lambda mode: mode.gpus, "edge": lambda mode: 1}
        allocation, refused = {}, set()
        for seen in sorted(state.jobs, key=lambda seen: seen.job.id):
            modes = [m for m in seen.job.modes if units[m.site](m) <= free[m.site]]
            if draw.random() < 0.05:
                refused.add(seen.job.id)
            elif modes and draw.random() < 0.8:
                mode = seen.mode if seen.mode in modes and draw.random() < 0.5 else None
                allocation[seen.job.id] = mode = mode or draw.choice(modes)
                free[mode.site] -= units[mode.site](mode)
        self.wake_ups += 1
        wake_up = state.now + draw.choice([0.25, 3.0, 11.0])
        return Decision(
            allocation=allocation,
            refused=frozenset(refused),
            wake_up=wake_up if self.wake_ups < 60 and draw.random() < 0.7 else None,
        )


OVERHEADS = st.sampled_from(["none", "1.5,4", "elasticflow"])
MERGES = st.sampled_from([0.0, 0.0, 5.0])


@settings(max_examples=examples(100))
@given(jobs_strategy(), sites_strategy(), st.integers(0, 999), OVERHEADS, MERGES)
def test_histories_keep_every_rule(jobs, sites, seed, overhead, merge_s):
    """Whatever a policy does: the checker passes, capacity holds, work is the integral of rates."""
    result = simulate(
        jobs, sites, Erratic(seed), overhead=overhead, merge_s=merge_s, check=False, log=True
    )
    rule = parse_overhead(overhead).run_loss
    report = check_history(jobs, sites, result.allocations, result.outcomes, rule, result.stalls)
    assert report.violations == ()
    assert report.met == result.metrics.met
    for site in sites:
        held = [a for a in result.allocations if a.site == site.name]
        for time in {a.start for a in held} | {t for t, _ in site.capacity}:
            used = sum(
                a.gpus if site.kind == "cloud" else 1 for a in held if a.start <= time < a.end
            )
            assert used <= site.capacity_at(time)
    for job, outcome in zip(jobs, result.outcomes, strict=True):
        runs = with_stalls(
            runs_of(job, [a for a in result.allocations if a.job == job.id], None, rule),
            result.stalls.get(job.id, ()),
        )
        if outcome.completion is None:
            assert credit_by(runs, 1e9) < job.required
        else:
            assert credit_by(runs, outcome.completion) == pytest.approx(job.required, rel=1e-9)
    times = [event.time for event in result.events]
    assert times == sorted(set(times))
    gaps = [
        later.time - earlier.time
        for earlier, later in zip(result.events, result.events[1:], strict=False)
        if not later.capacity_changed
    ]
    assert all(gap >= merge_s - 1e-9 for gap in gaps)


@settings(max_examples=examples(40))
@given(jobs_strategy(), sites_strategy(), st.integers(0, 999), OVERHEADS)
def test_same_input_gives_the_same_result(jobs, sites, seed, overhead):
    """Two simulations of the same input differ in wall times only."""
    one, two = (simulate(jobs, sites, Erratic(seed), overhead=overhead) for _ in range(2))
    assert one.allocations == two.allocations
    assert one.outcomes == two.outcomes
    assert one.stalls == two.stalls


def shifted(jobs, sites, by):
    """Return jobs and sites on a clock that is `by` seconds ahead."""
    moved = [
        dataclasses.replace(
            job,
            arrival=job.arrival + by,
            deadline=None if job.deadline is None else job.deadline + by,
        )
        for job in jobs
    ]
    return moved, [
        dataclasses.replace(site, capacity=tuple((t + by, u) for t, u in site.capacity))
        for site in sites
    ]


@settings(max_examples=examples(60))
@given(jobs_strategy(), sites_strategy(), st.sampled_from([-4096.0, 1024.0, 2.0**23]))
def test_a_shift_of_the_clock_changes_the_times_only(jobs, sites, by):
    """Adding a constant to all times adds it to all times of the result."""
    before = simulate(jobs, sites, Fifo(), overhead="2,8")
    after = simulate(*shifted(jobs, sites, by), Fifo(), overhead="2,8")
    assert [(a.job, a.site, a.gpus) for a in after.allocations] == [
        (a.job, a.site, a.gpus) for a in before.allocations
    ]
    for moved, a in zip(after.allocations, before.allocations, strict=True):
        assert (moved.start - by, moved.end - by) == pytest.approx((a.start, a.end), abs=1e-6)
    assert [o.met for o in after.outcomes] == [o.met for o in before.outcomes]


@settings(max_examples=examples(60))
@given(jobs_strategy(), sites_strategy(), st.randoms(use_true_random=False))
def test_the_order_of_the_trace_does_not_matter(jobs, sites, rng):
    """A trace in another order, simultaneous arrivals included, has the same outcomes by job."""
    jobs = [dataclasses.replace(job, arrival=0.0, deadline=job.deadline) for job in jobs]
    mixed = rng.sample(jobs, len(jobs))
    before, after = simulate(jobs, sites, Fifo()), simulate(mixed, sites, Fifo())
    assert {o.job: o for o in before.outcomes} == {o.job: o for o in after.outcomes}
    assert set(before.allocations) == set(after.allocations)
