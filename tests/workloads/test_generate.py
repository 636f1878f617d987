"""Generators: reproducible, calibrated, valid."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import SolveStatus
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers import solve
from edgeflow_opt.workloads import (
    DEFAULT_CATALOG,
    demo_problem,
    demo_trace,
    generate_problem,
    generate_trace,
)
from edgeflow_opt.workloads.generate import GPU_MIXES


def test_traces_are_reproducible() -> None:
    """Same seed, same trace; another seed, another; a Generator is drawn from."""
    assert generate_trace(50, 3) == generate_trace(50, 3)
    assert generate_trace(50, 3) != generate_trace(50, 4)
    assert generate_trace(50, np.random.default_rng(3)) == generate_trace(50, 3)


def test_a_trace_is_pinned() -> None:
    """The first jobs of seed 1 stay what they are, here and on any platform."""
    found = [(j.submission, j.model, j.batch, j.gpus, j.iterations) for j in generate_trace(3, 1)]
    assert found == [
        (0.0, "vgg16", 64, 1, 46673.0),
        (810.0, "resnet50", 256, 1, 8165.0),
        (852.0, "gpt2", 128, 1, 13606.0),
    ]


def test_durations_and_sizes_follow_the_measured_figures() -> None:
    """Median within 5 %, log-deviation within 0.05, GPU shares within 0.015, models even."""
    trace = generate_trace(6000, 2)
    logs = [math.log(j.duration) for j in trace]
    assert math.exp(statistics.median(logs)) == pytest.approx(7855, rel=0.05)
    assert statistics.pstdev(logs) == pytest.approx(1.3, abs=0.05)
    for gpus, share in GPU_MIXES["itp"].items():
        if gpus <= 16:
            found = sum(j.gpus == gpus for j in trace) / len(trace)
            assert found == pytest.approx(share, abs=0.015)
    for profile in DEFAULT_CATALOG.profiles:
        share = sum((j.model, j.batch) == (profile.model, profile.batch) for j in trace) / 6000
        assert share == pytest.approx(1 / 14, abs=0.015)


def test_generated_rows_keep_the_identities_of_the_public_traces() -> None:
    """Duration = iterations / rate, and deadline factors in the range, uniform."""
    trace = generate_trace(2000, 2, gpu_mix="philly")
    for job in trace:
        rate = DEFAULT_CATALOG.rates(job.model, job.batch)[job.gpus]
        assert job.duration == pytest.approx(job.iterations / rate, abs=1e-3)
    factors = [j.deadline_factor for j in trace if j.deadline_factor is not None]
    assert min(factors) >= 0.49
    assert max(factors) <= 1.51
    assert statistics.mean(factors) == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("diurnal", [0.0, 0.9])
@pytest.mark.parametrize("load", [0.3, 2.0])
def test_load_is_what_was_asked_for(load: float, diurnal: float) -> None:
    """The load while jobs arrive is within 10 % of the one asked for."""
    trace = generate_trace(3000, 5, load=load, cloud_gpus=16, diurnal=diurnal)
    assert trace.arrival_load(16) == pytest.approx(load, rel=0.1)
    assert max(j.gpus for j in trace) <= 16


def test_arrival_rate_is_what_was_asked_for() -> None:
    """2000 jobs at 100 an hour take about 20 hours, from start_s on."""
    trace = generate_trace(2000, 5, arrivals_per_hour=100.0, start_s=500.0)
    assert trace.start == 500.0
    assert trace.entries[-1].submission - 500.0 == pytest.approx(72000, rel=0.08)


def test_diurnal_arrivals_peak_at_the_peak_hour() -> None:
    """With amplitude 1 the six hours around the peak have far more jobs than those opposite."""
    trace = generate_trace(4000, 5, arrivals_per_hour=20.0, diurnal=1.0, peak_hour=6.0)
    hours = [j.submission / 3600.0 % 24 for j in trace]
    # Integrals of 1 + cos over the two quarters of the day: 0.475 and 0.025 of all jobs.
    assert sum(3 <= h < 9 for h in hours) / 4000 == pytest.approx(0.475, abs=0.04)
    assert sum(15 <= h < 21 for h in hours) / 4000 == pytest.approx(0.025, abs=0.02)


def test_best_effort_share_is_exact() -> None:
    """A share of 0.25 of 40 jobs is 10 jobs without deadline."""
    assert sum(j.deadline is None for j in generate_trace(40, 1, best_effort_share=0.25)) == 10


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"num_jobs": 0}, "num_jobs: must be a whole number of at least 1"),
        ({"load": 0.0}, "load: must be a number above 0"),
        ({"load": 1.0, "arrivals_per_hour": 2.0}, "not both"),
        ({"arrivals_per_hour": math.nan}, "arrivals_per_hour: must be a number above 0"),
        ({"deadline_factors": (2.0, 1.0)}, "deadline_factors: must be a range"),
        ({"gpu_mix": "x"}, "gpu_mix: 'x' is not known; known are itp, testbed, philly"),
        ({"gpu_mix": {0: 1.0}}, "gpu_mix: needs whole GPU counts"),
        ({"gpu_mix": {}}, "gpu_mix: needs whole GPU counts"),
        ({"diurnal": 1.5}, "diurnal: must be a share"),
        ({"best_effort_share": -0.1}, "best_effort_share: must be a share"),
        ({"cloud_gpus": 0}, "cloud_gpus: must be a whole number of at least 1"),
        ({"median_duration_s": -1.0}, "median_duration_s: must be a number above 0"),
    ],
)
def test_senseless_trace_options_are_refused(options: dict[str, Any], rule: str) -> None:
    """Each option out of range is named with its value."""
    with pytest.raises(UsageError, match=rule):
        generate_trace(**{"num_jobs": 5, **options})


def test_problems_are_reproducible() -> None:
    """Same seed, same problem; another seed, another."""
    assert generate_problem(20, 12, 3) == generate_problem(20, 12, 3)
    assert generate_problem(20, 12, 3) != generate_problem(20, 12, 4)


@given(
    num_jobs=st.integers(1, 25),
    num_slots=st.integers(1, 30),
    seed=st.integers(0, 2**32),
    load=st.floats(0.05, 10),
    shares=st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=5, max_size=5),
    losses=st.sampled_from([(0.0, 0.0), (10.0, 60.0), (700.0, 0.0)]),
    tide=st.booleans(),
)
def test_every_generated_problem_is_valid(
    num_jobs: int, num_slots: int, seed: int, load: float, shares: list[float],
    losses: tuple[float, float], tide: bool,
) -> None:  # fmt: skip
    """Any mix of options gives an instance that its own rules accept, with exact shares."""
    running = min(shares[0], 0.5)
    problem = generate_problem(
        num_jobs, num_slots, seed, load=load, tide=tide, arrival_spread=shares[1],
        restart_s=losses[0], migration_s=losses[1], running_share=running,
        suspended_share=0.5 * shares[1], best_effort_share=shares[2], moldable_share=shares[3],
        must_meet_share=shares[4], weights=(1, 5),
    )  # fmt: skip
    assert sum(j.best_effort for j in problem.jobs) == round(shares[2] * num_jobs)
    assert sum(not j.malleable for j in problem.jobs) == round(shares[3] * num_jobs)
    assert {j.weight for j in problem.jobs} <= {1.0, 2.0, 3.0, 4.0, 5.0}
    used = {site.name: 0 for site in problem.sites}
    for job in problem.jobs:
        if job.running is not None:
            used[job.running.site] += job.running.gpus
    assert all(used[site.name] <= site.capacity_at(0.0) for site in problem.sites)


def test_problem_family_has_the_stated_figures() -> None:
    """Load, edge share, edge ratios, durations and the tide are as documented."""
    problem = generate_problem(1000, 24, 1, load=1.6)
    cloud, edge = problem.sites
    work = sum(j.work / j.modes[0].rate for j in problem.jobs)
    assert work / (cloud.capacity_at(0) * 7200) == pytest.approx(1.6, rel=0.01)
    assert edge.capacity_at(0.0) == round(cloud.capacity_at(0.0) / 4)
    assert edge.capacity_at(3600.0) == 0
    ratios = [
        j.modes[-1].rate / j.modes[0].rate for j in problem.jobs if j.modes[-1].site == "edge"
    ]
    assert len(ratios) / 1000 == pytest.approx(0.8, abs=0.04)
    assert 0.4 <= min(ratios) < 0.41
    assert 0.64 < max(ratios) <= 0.65001
    assert all(m.gpus <= 16 for j in problem.jobs for m in j.modes)
    assert all(j.deadline is not None and j.deadline <= 7200 for j in problem.jobs)


def test_rates_of_the_problem_family_are_sub_linear() -> None:
    """More GPUs bring more, but less than in proportion."""
    for job in generate_problem(50, 24, 1).jobs:
        rates = [m.rate for m in job.modes if m.site == "cloud"]
        for slower, faster in itertools.pairwise(rates):
            assert slower < faster < 2 * slower


def test_given_capacities_are_kept() -> None:
    """cloud_gpus and edge_servers override the load; without tide the edge is constant."""
    problem = generate_problem(10, 12, 1, cloud_gpus=7, edge_servers=0, tide=False)
    assert [site.capacity for site in problem.sites] == [((0.0, 7),), ((0.0, 0),)]


def test_running_jobs_are_within_the_capacity_and_in_number() -> None:
    """With room for all, the asked share runs, and others are suspended with a last site."""
    problem = generate_problem(
        40, 24, 2, cloud_gpus=400, running_share=0.5, suspended_share=0.25, restart_s=20.0
    )
    running = [j for j in problem.jobs if j.running is not None]
    assert len(running) == 20
    assert all(j.running is not None and 0 <= j.running.loss_left_s <= 20 for j in running)
    assert sum(j.running is None and j.last_site is not None for j in problem.jobs) == 10


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"load": -1.0}, "load: must be a number above 0"),
        ({"num_slots": 0}, "num_slots: must be a whole number"),
        ({"slot_s": math.inf}, "slot_s: must be a number above 0"),
        ({"running_share": 0.7, "suspended_share": 0.7}, "running_share . suspended_share"),
        ({"must_meet_share": 2.0}, "must_meet_share: must be a share"),
        ({"restart_s": -1.0}, "restart_s: must be a range"),
        ({"weights": (3, 1)}, "weights: must be whole numbers"),
        ({"cloud_gpus": 0}, "cloud_gpus: must be a whole number of at least 1"),
        ({"edge_servers": -1}, "edge_servers: must be a whole number of at least 0"),
    ],
)
def test_senseless_problem_options_are_refused(options: dict[str, Any], rule: str) -> None:
    """Each option out of range is named with its value."""
    with pytest.raises(UsageError, match=rule):
        generate_problem(**{"num_jobs": 5, "num_slots": 4, **options})


def test_demo_problem_is_small_and_the_same_each_time() -> None:
    """The built-in instance has the promised sizes, cloud and edge, and jobs that use both."""
    problem = demo_problem()
    assert problem == demo_problem()
    most = {site.name: max(units for _, units in site.capacity) for site in problem.sites}
    assert all(m.gpus <= most["cloud"] for j in problem.jobs for m in j.modes if m.site == "cloud")
    assert 24 <= len(problem.jobs) <= 30
    assert problem.grid.num_slots == 24
    assert [site.kind for site in problem.sites] == ["cloud", "edge"]
    view = arrays_of(problem)
    assert view.capacity[1].min() < view.capacity[1].max()
    assert {len({m.site for m in job.modes}) for job in problem.jobs} == {1, 2}


def test_demo_problem_shows_what_exact_solving_is_worth() -> None:
    """The optimum of the built-in instance is 26 jobs, and the greedy loses at least 2 of them."""
    optimum = solve(demo_problem(), "price", time_limit_s=30)
    assert (optimum.schedule.status, optimum.schedule.met) == (SolveStatus.OPTIMAL, 26)
    assert solve(demo_problem(), "greedy").schedule.met <= 24


def test_demo_trace_is_overloaded_and_the_same_each_time() -> None:
    """The built-in trace has 40 jobs and makes valid jobs."""
    trace = demo_trace()
    assert trace == demo_trace()
    assert len(trace) == len(trace.jobs(max_gpus=16)) == 40
    assert 0.5 < trace.arrival_load(16) < 3.0
