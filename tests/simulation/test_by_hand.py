"""Whole simulations whose every figure was computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflow_opt.simulation import simulate
from edgeflow_opt.simulation.ledger import JobLedger
from edgeflow_opt.workloads import cluster
from tests.simulation.helpers import CLOUD, EDGE, ON_EDGE, ONE, Fifo, job


def completions(result):
    """Return the completion times by job."""
    return {o.job: o.completion for o in result.outcomes}


def test_slots_of_a_minute_under_the_overhead_of_elasticflow():
    """Job a begins at 0 and loses 2 + 2 s; b waits from 10 to the slot at 60 s, where a loses 2 more.

    Job b loses 2 + 2 s and ends at 60 + 4 + 30 = 94, a at 100 + 4 + 2 = 106; the next slot would be at
    120 s, until which both hold their GPUs, and nobody is left to decide on.
    """
    jobs = [job("a", 0.0, 999.0, 100.0, modes=(ONE,)), job("b", 10.0, 999.0, 30.0, modes=(ONE,))]
    result = simulate(jobs, [CLOUD, EDGE], Fifo(), overhead="elasticflow", merge_s=60.0, log=True)
    assert [event.time for event in result.events] == [0.0, 60.0]
    assert completions(result) == pytest.approx({"a": 106.0, "b": 94.0})
    assert [(a.start, a.end) for a in result.allocations] == [(0.0, 120.0), (60.0, 120.0)]


def test_a_tide_from_a_file_interrupts_an_edge_job(tmp_path: Path):
    """200 s of work: 0-100 s, away until 300 s, a restart of 10 s, then the other 100 s."""
    file = tmp_path / "tide.csv"
    file.write_text("time_s,units\n0,1\n100,0\n300,1\n")
    sites = cluster(0, 1, tide=file)
    result = simulate(
        [job("a", 0.0, 405.0, 100.0, modes=(ON_EDGE,))], sites, Fifo(), overhead="10,0"
    )
    assert completions(result)["a"] == pytest.approx(410.0)
    assert (result.metrics.late, result.metrics.mean_tardiness) == (1, pytest.approx(5.0))
    # Held 100 + 110 s of the 100 + 110 s in which the server was there.
    assert result.metrics.edge_utilisation == pytest.approx(1.0)


def test_a_load_from_a_file_leaves_whole_servers(tmp_path: Path):
    """Of four servers a load of 0.3 leaves 2, one of 0.9 none: two jobs run, the third waits."""
    file = tmp_path / "load.csv"
    file.write_text("time_s,load\n0,0.3\n50,0.9\n80,0\n")
    sites = cluster(0, 4, tide=file)
    jobs = [job(name, 0.0, 999.0, 20.0, modes=(ON_EDGE,)) for name in "abc"]
    result = simulate(jobs, sites, Fifo())
    assert completions(result) == pytest.approx({"a": 40.0, "b": 40.0, "c": 110.0})


def test_a_daily_tide_is_empty_at_noon():
    """Of 50 servers one day's cosine leaves 48 after midnight, none at noon and 24 at six."""
    _, edge = cluster(0, 50, tide="daily", end_s=86400.0)
    # 49 at midnight, a little less within the first quarter of an hour.
    assert edge.capacity_at(0.0) == 48
    assert edge.capacity_at(43_000.0) == 0
    # Half of the way: 50 (1 - (0.02 + 0.98 / 2)) = 24.5, and the least within the quarter of an hour.
    assert edge.capacity_at(21_600.0 - 1.0) == 24


def test_best_effort_jobs_run_and_do_not_count():
    """One with a deadline and two without: the ratio is of the one alone."""
    one_gpu = [cluster(1)[0], EDGE]
    jobs = [
        job("best", 0.0, None, 50.0, modes=(ONE,)),
        job("timely", 0.0, 100.0, 40.0, modes=(ONE,)),
        job("last", 0.0, None, 10.0, modes=(ONE,)),
    ]
    result = simulate(jobs, one_gpu, Fifo())
    m = result.metrics
    assert completions(result) == pytest.approx({"best": 50.0, "last": 60.0, "timely": 100.0})
    assert (m.jobs, m.met, m.best_effort, m.best_effort_completed) == (1, 1, 2, 2)
    assert m.dsr == 1.0
    assert [o.met for o in result.outcomes] == [None, True, None]


def test_finished_jobs_cost_nothing(monkeypatch):
    """An event looks at the unfinished jobs only: with 300 jobs one by one, at one each."""
    looks = []
    look = JobLedger.look
    monkeypatch.setattr(JobLedger, "look", lambda *a: looks.append(1) or look(*a))
    jobs = [job(str(index), 10.0 * index, None, 5.0) for index in range(300)]
    result = simulate(jobs, [CLOUD, EDGE], Fifo())
    assert len(looks) == result.metrics.events == 300
