"""Placement within simulations."""

from __future__ import annotations

import dataclasses

import pytest

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Allocation, Mode, Site
from edgeflow_opt.simulation import simulate
from edgeflow_opt.simulation.placement import PLACEMENT_MODES, PlacedRun, placement_violations
from edgeflow_opt.workloads import cluster, draw_outages, generate_trace
from edgeflow_opt.workloads.outages import Outage
from tests.simulation.helpers import Fifo, by_time, job

CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 4),), gpus_per_node=2)
ONE = Mode(site="cloud", gpus=1, rate=1.0)
TWO = Mode(site="cloud", gpus=2, rate=2.0)


def crossed(mode: str, overhead: str = "10,20"):
    """Simulate: four jobs on one GPU each, one of each node ends at 10, then a job of two comes."""
    jobs = [
        job("a", 0.0, 100.0, 10.0, modes=(ONE,)),
        job("b", 0.0, 100.0, 50.0, modes=(ONE,)),
        job("c", 0.0, 100.0, 10.0, modes=(ONE,)),
        job("d", 0.0, 100.0, 50.0, modes=(ONE,)),
        job("e", 20.0, 100.0, 40.0, modes=(TWO,)),
    ]
    return simulate(jobs, [CLOUD], Fifo(), placement=mode, overhead=overhead)


def completions(result) -> dict[str, float]:
    """Return when each job completes, rounded."""
    return {o.job: round(o.completion, 6) for o in result.outcomes}


def test_free_moves_cost_nothing() -> None:
    """A job is moved to make room, which is counted and costs no time."""
    result = crossed("free")
    assert completions(result) == {"a": 10.0, "b": 50.0, "c": 10.0, "d": 50.0, "e": 40.0}
    assert result.placement.repacks == 1
    assert result.placement.repacks_per_job == 0.2
    assert result.metrics.reconfigurations_per_job == 0.0
    # Two free GPUs on two nodes from 10 to 20 s, none from 20 to 40, two on one from 40 to 50.
    assert result.placement.fragmentation == pytest.approx(0.25)


def test_a_repacked_job_pays_a_restart() -> None:
    """The job that makes room loses its restart, the one that comes nothing."""
    result = crossed("repack")
    times = completions(result)
    assert sorted((times["b"], times["d"])) == [50.0, 60.0]
    assert times["e"] == 40.0
    assert result.placement.repacks == 1
    assert sum(len(s) for s in result.stalls.values()) == 1


def test_where_nobody_moves_the_job_waits() -> None:
    """A job of two without a node to itself waits until one is free."""
    result = crossed("fixed")
    assert completions(result)["e"] == 70.0
    assert result.placement.delayed_jobs == 1
    assert result.placement.repacks == 0


def test_a_spread_job_runs_at_once() -> None:
    """The job lies on two nodes, which is counted."""
    result = crossed("spread")
    assert completions(result)["e"] == 40.0
    assert result.placement.spread_runs == 1
    (spread,) = [p for p in result.placements if p.spread]
    assert (spread.job, len(spread.gpus)) == ("e", 2)


def test_a_job_that_fits_nowhere_shrinks() -> None:
    """A job that could also run on one GPU does so rather than wait."""
    jobs = [
        job("a", 0.0, 100.0, 10.0, modes=(ONE,)),
        job("b", 0.0, 100.0, 50.0, modes=(ONE,)),
        job("c", 0.0, 100.0, 10.0, modes=(ONE,)),
        job("d", 0.0, 100.0, 50.0, modes=(ONE,)),
        job("e", 20.0, 100.0, 40.0, modes=(TWO, ONE)),
    ]
    result = simulate(jobs, [CLOUD], Fifo(), placement="fixed")
    assert result.placement.shrunk_jobs == 1
    assert result.placement.delayed_jobs == 0
    # 30 s on one GPU, then the policy gives it two again.
    assert completions(result)["e"] == 55.0
    result = simulate(jobs, [CLOUD], Fifo(), placement="wait")
    assert (result.placement.shrunk_jobs, result.placement.delayed_jobs) == (0, 1)
    assert completions(result)["e"] == 70.0


def test_a_job_that_cannot_grow_keeps_what_it_has() -> None:
    """A wish for more that no node can fulfil begins no new run."""
    jobs = [
        job("a", 0.0, 200.0, 100.0, modes=(ONE, TWO)),
        job("b", 0.0, 200.0, 100.0, modes=(ONE,)),
        job("c", 0.0, 200.0, 100.0, modes=(ONE,)),
    ]
    first = {"a": ONE, "b": ONE, "c": ONE}
    plan = by_time({0.0: first, 10.0: first | {"a": TWO}, 30.0: first})
    result = simulate(jobs, [CLOUD], plan, placement="fixed", overhead="5,5")
    (held,) = [a for a in result.allocations if a.job == "a"]
    assert (held.start, held.end, held.gpus) == (0.0, 100.0, 1)
    assert result.placement.shrunk_jobs == 1


@pytest.mark.parametrize("mode", PLACEMENT_MODES)
@pytest.mark.parametrize("policy", ["edgeflow", "elasticflow", "tiresias", "afs"])
def test_histories_pass_the_check(mode: str, policy: str) -> None:
    """Under outages and losses every placement is sound; where moving is free nothing changes."""
    trace = generate_trace(40, 3, cloud_gpus=20, load=1.2)
    sites = cluster(20, 2, start_s=trace.start, end_s=trace.end)
    outages = draw_outages(
        sites, "cloud", 20_000.0, 3_000.0, start_s=trace.start, end_s=trace.end, seed=1
    )
    given = {"overhead": "30,180", "outages": outages}
    result = simulate(trace.jobs(), sites, policy, placement=mode, **given)
    assert result.placements
    row = result.to_dict()["placement"]
    assert row["mode"] == mode
    if mode in ("fixed", "wait", "spread"):
        assert row["repacks"] == 0
    if mode in ("free", "repack"):
        assert row["delayed_jobs"] == row["shrunk_jobs"] == 0
    plain = simulate(trace.jobs(), sites, policy, overhead="30,180")
    free = simulate(trace.jobs(), sites, policy, overhead="30,180", placement="free")
    assert plain.outcomes == free.outcomes
    assert "placement" not in plain.to_dict()


def test_an_outage_hits_those_who_hold_its_gpus() -> None:
    """Where placement is known, the job on the failed node is hit, and no other."""
    jobs = [job(name, 0.0, 500.0, 100.0, modes=(ONE,)) for name in "abcd"]
    outage = Outage(start=10.0, end=20.0, site="cloud", first_unit=2, units=1)
    given = {"outages": [outage], "overhead": "7,7"}
    result = simulate(jobs[:3], [CLOUD], Fifo(), placement="repack", **given)
    assert result.metrics.interruptions == 1
    (hit,) = [name for name, stalls in result.stalls.items() if stalls]
    on = next(p for p in result.placements if p.job == hit)
    assert 2 in on.gpus
    # Driven off by an outage is no repack.
    assert result.placement.repacks == 0


def test_the_check_sees_every_fault() -> None:
    """GPUs held twice, too few, away, unsaid on two nodes, or not covering a run are found."""
    runs = [
        Allocation(job="a", start=0.0, end=10.0, site="cloud", gpus=2),
        Allocation(job="b", start=0.0, end=10.0, site="cloud", gpus=1),
    ]

    def kinds(*pieces: tuple[str, float, float, tuple[int, ...]], **fields) -> set[str]:
        placed = [
            PlacedRun(job=j, site="cloud", start=s, end=e, gpus=g, **fields)
            for j, s, e, g in pieces
        ]
        outage = Outage(start=20.0, end=30.0, site="cloud", first_unit=0, units=1)
        return {v.kind for v in placement_violations([CLOUD], runs, placed, [outage])}

    b = ("b", 0.0, 10.0, (2,))
    assert kinds(("a", 0.0, 10.0, (0, 1)), b) == set()
    assert kinds(("a", 0.0, 4.0, (0, 1)), ("a", 4.0, 10.0, (0, 1)), b) == set()
    assert kinds(("a", 0.0, 10.0, (0, 1)), ("b", 0.0, 10.0, (1,))) == {"placement_overlap"}
    assert kinds(("a", 0.0, 10.0, (0,)), b) == {"placement_count"}
    assert kinds(("a", 0.0, 9.0, (0, 1)), b) == {"placement_count"}
    assert kinds(("a", 0.0, 10.0, (0, 3)), b) == {"placement_spread"}
    assert kinds(("a", 0.0, 10.0, (0, 3)), b, spread=True) == set()
    assert kinds(("a", 0.0, 10.0, (0, 1)), ("b", 0.0, 10.0, (4,))) == {"placement_gpu"}
    assert kinds(("a", 0.0, 10.0, (0, 1)), b, ("c", 20.0, 30.0, (0,))) == {
        "placement_gpu", "placement_count",
    }  # fmt: skip
    assert kinds(("a", 0.0, 10.0, (0, 1)), b, ("c", 5.0, 5.0, (3,))) == {"placement_interval"}


def test_unknown_modes_and_nodes_are_refused() -> None:
    """A mode that does not exist, or a site that does not tell its nodes, is named."""
    with pytest.raises(UsageError, match="placement: must be one of free, repack"):
        simulate([], [CLOUD], Fifo(), placement="tetris")
    with pytest.raises(UsageError, match="'cloud' does not tell its gpus_per_node"):
        simulate([], [dataclasses.replace(CLOUD, gpus_per_node=None)], Fifo(), placement="free")
