"""A public trace, from the file to checked histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflow_opt.policies import make_policy
from edgeflow_opt.simulation import simulate
from edgeflow_opt.workloads import cluster, read_trace
from tests.simulation.helpers import Fifo


@pytest.mark.parametrize("overhead", ["none", "30,180", "elasticflow"])
def test_a_public_trace_runs_to_its_end(data_folder: Path, overhead: str) -> None:
    """All 195 jobs of the testbed trace complete, and the checker passes the history."""
    trace = read_trace(data_folder / "elasticflow_itp" / "testbed195.csv")
    sites = cluster(32, 8, start_s=trace.start)
    metrics = simulate(trace.jobs(), sites, Fifo(), overhead=overhead).metrics
    assert metrics.jobs == 195
    assert metrics.met + metrics.late == 195
    assert metrics.cloud_utilisation is not None
    assert 0.0 < metrics.cloud_utilisation <= 1.0
    # An event is at least one arrival or completion.
    assert metrics.events <= 2 * 195


def test_selection_meets_more_of_a_public_trace_than_the_published_rule(data_folder: Path) -> None:
    """On 32 GPUs and 8 edge servers edgeflow meets 59 jobs as published, selecting over 140."""
    trace = read_trace(data_folder / "elasticflow_itp" / "testbed195.csv")
    sites = cluster(32, 8, start_s=trace.start)
    published = simulate(trace.jobs(), sites, "edgeflow").metrics.met
    assert published == pytest.approx(59, abs=2)
    assert simulate(trace.jobs(), sites, "edgeflow-select").metrics.met > 140


def test_the_exact_policy_runs_a_public_trace(data_folder: Path) -> None:
    """The first jobs of the testbed trace are planned exactly, and the checker passes the history."""
    trace = read_trace(data_folder / "elasticflow_itp" / "testbed195.csv").head(25)
    sites = cluster(8, 2, start_s=trace.start)
    metrics = simulate(trace.jobs(), sites, make_policy("exact", time_limit_s=0.1)).metrics
    assert metrics.met + metrics.late == 25
    assert metrics.met >= simulate(trace.jobs(), sites, "edgeflow").metrics.met
