"""Traces: what they turn into, and what can be changed about them."""

from __future__ import annotations

import dataclasses
import math
import pickle

import pytest

from edgeflow_opt.errors import TraceError, UsageError
from edgeflow_opt.problem import EpochProblem, Grid
from edgeflow_opt.workloads import DEFAULT_CATALOG, Trace, TraceJob, cluster, generate_trace

JOB = TraceJob(
    id="a", submission=100.0, deadline=700.0, model="bert", batch=64, gpus=2,
    iterations=6030.66, duration=600.0,
)  # fmt: skip


def job(**changes: object) -> TraceJob:
    """Return the job above with changes."""
    return dataclasses.replace(JOB, **changes)  # type: ignore[arg-type]


def test_jobs_carry_what_the_trace_says() -> None:
    """arrival, deadline, work, modes, losses and memory arrive in the job of the problem."""
    catalog = DEFAULT_CATALOG.with_memory({"bert": 9.0})
    (found,) = Trace(entries=(JOB,)).jobs(
        catalog, "c", "e", max_gpus=4, restart_s=10, migration_s=30, malleable=False
    )
    assert (found.id, found.arrival, found.deadline, found.work) == ("a", 100.0, 700.0, 6030.66)
    assert [(m.site, m.gpus) for m in found.modes] == [("c", 1), ("c", 2), ("c", 4), ("e", 1)]
    assert (found.memory_gib, found.restart_s, found.migration_s) == (9.0, 10, 30)
    assert not found.malleable


def test_jobs_without_an_edge_site_have_cloud_modes_only() -> None:
    """edge_site None leaves the edge out."""
    (found,) = Trace(entries=(JOB,)).jobs(edge_site=None)
    assert {m.site for m in found.modes} == {"cloud"}


def test_jobs_unknown_to_the_catalog_are_named_together() -> None:
    """All jobs whose rates are unknown are in one error."""
    trace = Trace(entries=(JOB, job(id="b", model="x"), job(id="c", batch=3)))
    with pytest.raises(TraceError, match=r"2 faults(.|\n)*job 'b'(.|\n)*job 'c'"):
        trace.jobs()


def test_a_generated_trace_makes_a_valid_problem() -> None:
    """Jobs of a trace and sites of a cluster fit together, without any edge server too."""
    trace = generate_trace(30, 1, best_effort_share=0.2)
    for servers in (0, 4):
        sites = cluster(16, servers, tide="daily", start_s=trace.start, end_s=trace.end)
        problem = EpochProblem(
            grid=Grid.uniform(trace.start, 3600.0, 24), sites=sites, jobs=trace.jobs(max_gpus=16)
        )
        assert (len(problem.jobs), len(problem.sites)) == (30, 2)


def test_deadlines_are_redrawn_within_the_range_and_by_seed() -> None:
    """with_deadlines: factors within [LO, HI], same for a seed, best effort untouched."""
    trace = generate_trace(200, 1, best_effort_share=0.1)
    tight = trace.with_deadlines(1.0, 1.2, seed=5)
    factors = [j.deadline_factor for j in tight if j.deadline_factor is not None]
    assert 1.0 - 1e-9 <= min(factors) < 1.02
    assert 1.18 < max(factors) <= 1.2 + 1e-9
    assert len(factors) == 180
    assert tight == trace.with_deadlines(1.0, 1.2, seed=5)
    assert tight != trace.with_deadlines(1.0, 1.2, seed=6)


def test_arrival_scaling_keeps_distances_to_deadlines() -> None:
    """scale_arrivals multiplies gaps, and moves deadlines along."""
    trace = Trace(entries=(JOB, job(id="b", submission=400.0, deadline=500.0)))
    scaled = trace.scale_arrivals(4.0)
    assert [j.submission for j in scaled] == [100.0, 1300.0]
    assert [j.deadline for j in scaled] == [700.0, 1400.0]
    assert trace.scale_arrivals(1.0) == trace


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
def test_senseless_scalings_are_refused(factor: float) -> None:
    """The multiplier must be a positive number."""
    with pytest.raises(UsageError, match="must be a number above 0"):
        Trace(entries=(JOB,)).scale_arrivals(factor)


@pytest.mark.parametrize("bounds", [(2.0, 1.0), (-1.0, 1.0), (0.5, math.inf), (math.nan, 1.0)])
def test_senseless_deadline_ranges_are_refused(bounds: tuple[float, float]) -> None:
    """The range must be 0 <= LO <= HI."""
    with pytest.raises(UsageError, match="range of the factor"):
        Trace(entries=(JOB,)).with_deadlines(*bounds)


def test_offered_load_is_the_stated_formula() -> None:
    """6030.66 iterations at 6.03066/s are 1000 GPU-seconds; over 2 GPUs times 600 s."""
    trace = Trace(entries=(JOB,))
    assert trace.one_gpu_seconds() == pytest.approx(1000.0)
    assert trace.offered_load(2) == pytest.approx(1000.0 / 1200.0)
    assert trace.offered_load(0) == math.inf
    assert trace.arrival_load(2) == math.inf
    two = Trace(entries=(JOB, job(id="b", submission=300.0)))
    assert two.arrival_load(2) == pytest.approx(2000.0 / (2 * 400.0))
    assert Trace(entries=()).offered_load(2) == Trace(entries=()).arrival_load(2) == 0.0


def test_head_and_subset() -> None:
    """Head takes the first, subset the named ones; unknown names are refused."""
    trace = generate_trace(10, 1)
    assert trace.head(3).entries == trace.entries[:3]
    assert [j.id for j in trace.subset({"7", "2"})] == ["2", "7"]
    with pytest.raises(UsageError, match="no job has the id 'x'"):
        trace.subset(["x"])
    with pytest.raises(UsageError, match="head of -1"):
        trace.head(-1)


def test_bad_jobs_are_refused_together() -> None:
    """A trace built in Python keeps the rules of a file."""
    with pytest.raises(TraceError, match="4 faults") as caught:
        Trace(
            entries=(
                JOB,
                job(iterations=-1.0),
                job(id="b", deadline=1.0),
                job(id="c", duration=math.nan),
            )
        )
    assert "job 'a', id: must be unique" in str(caught.value)


def test_traces_are_values() -> None:
    """A trace equals its pickle and can be hashed."""
    trace = generate_trace(10, 1)
    assert pickle.loads(pickle.dumps(trace)) == trace
    assert hash(trace) == hash(generate_trace(10, 1))
