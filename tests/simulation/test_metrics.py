from __future__ import annotations

import json

import pytest

from edgeflow_opt.problem import Allocation, Outcome, Site
from edgeflow_opt.simulation import DecisionTimes, metrics_of, simulate, simulation_document
from tests.simulation.helpers import CLOUD, EDGE, Fifo, job


def hold(name, start, end, site="cloud", gpus=1):
    """Return an allocation."""
    return Allocation(job=name, start=start, end=end, site=site, gpus=gpus)


JOBS = [
    job("met", 10.0, 50.0, 10.0, weight=2.0),
    job("late", 10.0, 40.0, 10.0),
    job("refused", 20.0, 60.0, 10.0),
    job("waiting", 20.0, 90.0, 10.0),
    job("effort", 20.0, None, 10.0),
]
OUTCOMES = [
    Outcome(job="met", met=True, completion=45.0),
    Outcome(job="late", met=False, completion=70.0),
    Outcome(job="refused", met=False, completion=None),
    Outcome(job="waiting", met=False, completion=None),
    Outcome(job="effort", met=None, completion=110.0),
]
HISTORY = [
    hold("met", 10.0, 20.0, gpus=2),
    hold("met", 20.0, 45.0),
    hold("late", 10.0, 20.0, site="edge"),
    hold("late", 30.0, 70.0),
    hold("effort", 50.0, 60.0),
    hold("effort", 60.0, 110.0),
]


def test_counts_add_up():
    """Met, late, refused and unfinished are the jobs with a deadline; best effort is apart."""
    metrics = metrics_of(JOBS, [CLOUD, EDGE], HISTORY, OUTCOMES, refused={"refused"})
    assert (metrics.met, metrics.late, metrics.refused, metrics.unfinished) == (1, 1, 1, 1)
    assert (metrics.jobs, metrics.best_effort, metrics.best_effort_completed) == (4, 1, 1)
    assert metrics.dsr == 0.25
    assert metrics.met_weight == 2.0


def test_utilisation_runs_from_first_arrival_to_last_completion_or_deadline():
    """Held over usable unit-seconds within [10, 110]: 145 of 400, and 10 of 100."""
    metrics = metrics_of(JOBS, [CLOUD, EDGE], HISTORY, OUTCOMES)
    assert metrics.cloud_utilisation == pytest.approx((20 + 25 + 40 + 60) / 400.0)
    assert metrics.edge_utilisation == pytest.approx(0.1)


def test_utilisation_follows_the_steps_of_capacity():
    """Usable unit-seconds are the integral of the capacity: 2 x 20 + 0 x 20 + 1 x 60."""
    edge = Site(name="edge", kind="edge", capacity=((0.0, 2), (30.0, 0), (50.0, 1)))
    metrics = metrics_of(JOBS, [CLOUD, edge], HISTORY, OUTCOMES)
    assert metrics.edge_utilisation == pytest.approx(10.0 / 100.0)
    assert metrics_of(JOBS, [CLOUD], [], OUTCOMES).edge_utilisation is None


def test_reconfigurations_and_migrations_count_per_job():
    """A change of size, a move, and no change where allocations abut in one mode."""
    metrics = metrics_of(JOBS, [CLOUD, EDGE], HISTORY, OUTCOMES)
    assert metrics.reconfigurations_per_job == pytest.approx(2 / 5)
    assert metrics.migrations_per_job == pytest.approx(1 / 5)


def test_makespan_and_tardiness():
    """Makespan from first arrival to last completion; tardiness over completed deadline jobs."""
    metrics = metrics_of(JOBS, [CLOUD, EDGE], HISTORY, OUTCOMES)
    assert metrics.makespan == 100.0
    assert metrics.mean_tardiness == 15.0


def test_decision_times():
    """Mean, median, 99th percentile, longest and sum."""
    times = DecisionTimes.of([1.0, 2.0, 3.0, 10.0])
    assert (times.mean, times.p50, times.max, times.total) == (4.0, 2.5, 10.0, 16.0)
    assert 3.0 < times.p99 < 10.0
    assert DecisionTimes.of([]).total == 0.0


def test_the_document_has_the_fields_of_the_format():
    """The document is plain JSON with the keys that the format names."""
    result = simulate([job("a", 0.0, 20.0, 10.0)], [CLOUD, EDGE], Fifo())
    document = json.loads(
        json.dumps(simulation_document("tiny", {"overhead": "none"}, [result]), allow_nan=False)
    )
    assert set(document) == {"format", "trace", "settings", "results"}
    assert document["format"] == "edgeflow-simulation/1"
    row = document["results"][0]
    assert set(row) >= {
        "policy", "jobs", "met", "late", "refused", "unfinished", "dsr", "cloud_utilisation",
        "edge_utilisation", "reconfigurations_per_job", "migrations_per_job", "events",
        "decision_s", "best_effort",
    }  # fmt: skip
    assert set(row["decision_s"]) == {"mean", "p50", "p99", "max", "total"}
    assert (row["policy"], row["met"], row["dsr"]) == ("Fifo", 1, 1.0)
