"""The relaxation against HiGHS, and the cutting of time into intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgeflow_opt.clairvoyant.intervals import event_times, interval_data, merged
from edgeflow_opt.clairvoyant.refutation import Refuter
from edgeflow_opt.clairvoyant.relaxation import MET, OPEN, OUT, IntervalDual, Relaxed
from edgeflow_opt.problem import Job, Mode, Site
from tests.clairvoyant.helpers import MODES, jobs_strategy, linear_program, sites_strategy
from tests.effort import examples


@settings(max_examples=examples(60))
@given(
    jobs_strategy(weights=st.sampled_from([1.0, 2.5])), sites_strategy(), st.sampled_from([99, 3])
)
def test_the_dual_is_the_linear_program(jobs, sites, intervals):
    """Prices bound the linear program of HiGHS, and come near it; merged intervals as well."""
    data = interval_data(jobs, sites, merged(event_times(jobs, sites), intervals))
    exact = linear_program(data)
    dual = IntervalDual(data)
    fate = np.zeros(data.num_jobs, dtype=np.int64)
    found = dual.minimise(fate, None, 600)
    assert found.bound >= exact - 1e-6
    assert found.bound <= exact + 0.02 * max(1.0, exact)


@settings(max_examples=examples(60))
@given(jobs_strategy(), sites_strategy(), st.integers(1, 5))
def test_merging_only_weakens(jobs, sites, intervals):
    """The linear program on merged intervals is no less than on all event times."""
    times = event_times(jobs, sites)
    fine = linear_program(interval_data(jobs, sites, times))
    coarse = linear_program(interval_data(jobs, sites, merged(times, intervals)))
    assert coarse >= fine - 1e-6


@settings(max_examples=examples(60))
@given(jobs_strategy(), sites_strategy(), st.integers(1, 5))
def test_windows_and_supplies_are_kept(jobs, sites, intervals):
    """The parts of a window add up to it, and the supplies to the integral of the capacity."""
    times = event_times(jobs, sites)
    cuts = merged(times, intervals)
    data = interval_data(jobs, sites, cuts)
    for j, index in enumerate(data.job):
        parts = 0.0
        for t in range(data.first[j], data.end[j]):
            whole = data.boundaries[t + 1] - data.boundaries[t]
            part = data.tail_s[j] if t == data.end[j] - 1 else whole
            part = data.head_s[j] if t == data.first[j] else part
            assert 0.0 <= part <= whole
            parts += part
        assert parts == pytest.approx(jobs[index].deadline - jobs[index].arrival)
    for k, site in enumerate(sites):
        seconds = np.arange(cuts[0], cuts[-1]) if cuts else np.zeros(0)
        expected = sum(site.capacity_at(second) for second in seconds)
        assert data.supply[k].sum() == pytest.approx(expected)


@settings(max_examples=examples(40))
@given(jobs_strategy(most=6), sites_strategy(), st.data())
def test_a_refutation_is_true(jobs, sites, draw):
    """A refuted number of jobs is above the optimum of HiGHS over every choice of met jobs."""
    data = interval_data(jobs, sites, event_times(jobs, sites))
    dual = IntervalDual(data)
    root = dual.minimise(np.zeros(data.num_jobs, dtype=np.int64), None, 200)
    assume(root.bound >= 1.0)
    target = float(draw.draw(st.integers(1, int(root.bound))))
    refuted = Refuter(dual, lambda: False).refuted(target, root)
    best = 0.0
    for mask in range(1 << data.num_jobs):
        chosen = np.array([mask >> j & 1 for j in range(data.num_jobs)], dtype=bool)
        if chosen.sum() <= best:
            continue
        subset = interval_data([jobs[i] for i in data.job[chosen]], sites, event_times(jobs, sites))
        if subset.num_jobs == chosen.sum() and linear_program(subset) > chosen.sum() - 1e-6:
            best = float(chosen.sum())
    assert refuted is (best < target) or not refuted


def test_certified_bounds_err_upwards_by_a_hair():
    """For free all jobs are worth their weight: no less is certified, and next to no more."""
    sites = [Site(name="cloud", kind="cloud", capacity=((0.0, 1),))]
    weights = (0.1, 0.2, 0.7, 1e3)
    jobs = [
        Job(id=str(w), arrival=0.0, deadline=9.0, work=8.0, weight=w, modes=MODES[:1])
        for w in weights
    ]
    data = interval_data(jobs, sites, [0.0, 9.0])
    dual, fate = IntervalDual(data), np.zeros(data.num_jobs, dtype=np.int64)
    free = np.zeros_like(data.supply)
    dual.evaluate(free, fate)
    bound, costs = dual.certify(free, dual.multiplier, fate)
    assert math.fsum(weights) < bound <= math.fsum(weights) * (1 + 1e-12)
    assert (costs <= 0.0).all()


def test_fates_are_assumed():
    """A job that is out frees its capacity; one that is to be met and cannot be proves -inf."""
    sites = [Site(name="cloud", kind="cloud", capacity=((0.0, 1),))]
    jobs = [
        Job(id=name, arrival=0.0, deadline=10.0, work=work, modes=MODES[:1])
        for name, work in (("a", 8.0), ("b", 8.0), ("c", 12.0))
    ]
    dual = IntervalDual(interval_data(jobs, sites, [0.0, 10.0]))
    assert dual.minimise(np.array([OPEN, OPEN, OPEN]), None, 300).bound == pytest.approx(
        1.25, abs=0.01
    )
    assert dual.minimise(np.array([OUT, OPEN, OPEN]), None, 300).bound == pytest.approx(
        1.0, abs=0.01
    )
    assert dual.minimise(np.array([OPEN, OPEN, MET]), None, 10).bound == -np.inf


def test_reduced_costs_fix_a_fate_only_beyond_the_spare():
    """A job is fixed where giving up its fate costs more than lies between bound and target."""
    sites = [Site(name="cloud", kind="cloud", capacity=((0.0, 1),))]
    jobs = [
        Job(id=str(i), arrival=0.0, deadline=9.0, work=8.0, weight=4.0, modes=MODES[:1])
        for i in range(5)
    ]
    dual = IntervalDual(interval_data(jobs, sites, [0.0, 9.0]))
    gain = np.array([1.1, 0.9, -0.9, -1.1, 0.0])
    found = Relaxed(
        prices=np.zeros((1, 1)), bound=3.0, cost=4.0 - gain, share=np.full(5, 0.5),
        multiplier=np.zeros(5), evaluations=1,
    )  # fmt: skip
    fate = np.full(5, OPEN)
    assert Refuter(dual, lambda: False)._fix(2.0, fate, found)
    assert fate.tolist() == [MET, OPEN, OPEN, OUT, OPEN]
    assert not Refuter(dual, lambda: False)._fix(2.0, fate, found)
    # At the target itself any loss is too much, up to rounding.
    assert Refuter(dual, lambda: False)._fix(3.0, fate, found)
    assert fate.tolist() == [MET, MET, OUT, OUT, OPEN]


def test_what_is_needed_is_lowered_by_what_the_clock_cannot_tell():
    """A second on a clock of 1.7e9 s is known to 2.4e-7 s, in which a fast job earns something."""
    sites = [Site(name="cloud", kind="cloud", capacity=((0.0, 1),))]
    deadline, work = 1.7e9, 100.0

    def need(rate: float) -> float:
        modes = (Mode(site="cloud", gpus=1, rate=rate),)
        job = Job(id="a", arrival=deadline - 9.0, deadline=deadline, work=work, modes=modes)
        data = interval_data([job], sites, [deadline - 9.0, deadline])
        return float(data.need[0]) / job.required

    assert need(1e3) == pytest.approx(1.0 - 1e-9 - 4 * math.ulp(deadline) * 1e3 / work, rel=1e-10)
    assert need(1e9) == pytest.approx(1e-6)


def test_event_times_are_those_that_matter():
    """Arrivals, deadlines and changes of capacity between them; a step to the same units is none."""
    sites = [Site(name="cloud", kind="cloud", capacity=((0.0, 1), (3.0, 1), (5.0, 2), (90.0, 1)))]
    jobs = [
        Job(id="a", arrival=1.0, deadline=9.0, work=1.0, modes=MODES[:1]),
        Job(id="b", arrival=2.0, deadline=None, work=1.0, modes=MODES[:1]),
    ]
    assert event_times(jobs, sites) == [1.0, 5.0, 9.0]
    assert merged([1.0, 2.0, 3.0, 4.0, 5.0], 2) == [1.0, 3.0, 5.0]
