"""The small instance in which one edge server makes the difference."""

from __future__ import annotations

import pytest

from edgeflow_opt import solve
from edgeflow_opt.policies import make_policy
from edgeflow_opt.simulation import simulate
from edgeflow_opt.workloads.motivating import (
    motivating_jobs,
    motivating_problem,
    motivating_sites,
)


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
@pytest.mark.parametrize(("edge_servers", "met"), [(0, 7), (1, 9)])
def test_one_edge_server_lifts_seven_to_nine(solver: str, edge_servers: int, met: int) -> None:
    """Both exact solvers prove 7 without and 9 with the server."""
    result = solve(motivating_problem(edge_servers), solver, time_limit_s=30, levels=1)
    assert (result.value, result.bound, result.status) == (met, met, "optimal")


def test_policies_gain_from_the_server() -> None:
    """Whole-trace simulation: no policy beats the optimum, and selection gains with the server."""
    gains = {}
    for name in ("edgeflow", "edgeflow-select", "elasticflow-edge"):
        met = [
            simulate(motivating_jobs(), motivating_sites(servers), make_policy(name)).metrics.met
            for servers in (0, 1)
        ]
        assert met[0] <= 7
        assert met[1] <= 9
        gains[name] = met[1] - met[0]
    assert gains["edgeflow-select"] >= 1
