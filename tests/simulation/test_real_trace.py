from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeflow_opt.simulation import simulate
from edgeflow_opt.workloads.readers.read import read_trace
from edgeflow_opt.workloads.tides import cluster
from tests.simulation.helpers import Fifo

DATA = os.environ.get("EDGEFLOW_DATA")
pytestmark = pytest.mark.skipif(
    DATA is None, reason="EDGEFLOW_DATA does not point at the folder of public traces"
)


@pytest.mark.parametrize("overhead", ["none", "30,180", "elasticflow"])
def test_a_public_trace_runs_to_its_end(overhead):
    """All 195 jobs of the testbed trace complete, and the checker passes the history."""
    assert DATA is not None
    trace = read_trace(Path(DATA) / "elasticflow_itp" / "testbed195.csv")
    sites = cluster(32, 8, start_s=trace.start)
    metrics = simulate(trace.jobs(), sites, Fifo(), overhead=overhead).metrics
    assert metrics.jobs == 195
    assert metrics.met + metrics.late == 195
    assert metrics.cloud_utilisation is not None
    assert 0.0 < metrics.cloud_utilisation <= 1.0
    # An event is at least one arrival or completion.
    assert metrics.events <= 2 * 195
