"""Outages in a simulation: whom they hit, and that nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.policies import ClusterState, Decision
from edgeflow_opt.problem import Site, check_history
from edgeflow_opt.simulation import parse_overhead, simulate
from edgeflow_opt.workloads import Outage, draw_outages, with_outages
from tests.effort import examples
from tests.simulation.helpers import EDGE, ON_EDGE, ONE, TWO, Fifo, Scripted, job
from tests.simulation.test_properties import Erratic, jobs_strategy

CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 4),), gpus_per_node=2)


def outage(start, end, first=0, units=2, site="cloud"):
    """Return an outage of a node of two GPUs."""
    return Outage(start=float(start), end=float(end), site=site, first_unit=first, units=units)


def completions(result):
    """Return the completion times by job."""
    return {o.job: o.completion for o in result.outcomes}


def test_a_failed_node_pauses_a_job_and_keeps_its_work():
    """Two nodes of two, a job on each; one fails at 10 s: b waits for a, and has done 10 s of it."""
    jobs = [job(name, 0.0, 999.0, 34.0, modes=(TWO,)) for name in "ab"]
    result = simulate(jobs, [CLOUD, EDGE], Fifo(), outages=[outage(10, 30)], log=True)
    done = 34.0 / TWO.rate
    # The first in the queue goes on, on the node that is left.
    assert completions(result) == pytest.approx({"a": done, "b": done + done - 10.0})
    assert result.metrics.interruptions == 1
    assert next(e.time for e in result.events if e.capacity_changed) == 10.0


def test_a_job_that_is_hit_and_goes_on_pays_for_a_restart():
    """Two jobs of one GPU on four; the node of both fails at 10 s: each loses the restart of 7 s."""
    jobs = [job(name, 0.0, 999.0, 40.0, modes=(ONE,)) for name in "ab"]
    seen = []

    def rule(state: ClusterState) -> Decision:
        seen.append([s.loss_left_s for s in state.jobs])
        return Decision(allocation={s.job.id: ONE for s in state.jobs})

    result = simulate(
        jobs, [CLOUD, EDGE], Scripted(rule), overhead="7,99", outages=[outage(10, 30)]
    )
    assert completions(result) == pytest.approx({"a": 47.0, "b": 47.0})
    assert seen[1] == [7.0, 7.0]
    assert result.metrics.interruptions == 2
    # They go on in their modes: one run each, and a stall.
    assert result.metrics.reconfigurations_per_job == 0.0
    assert result.stalls == {"a": ((10.0, 7.0),), "b": ((10.0, 7.0),)}


@pytest.mark.parametrize("placement", [None, "free"])
@pytest.mark.parametrize("merge_s", [0.0, 50.0])
@pytest.mark.parametrize("units_back", [2, 3])
def test_maintenance_that_goes_from_node_to_node_hits_whom_it_reaches(
    placement, merge_s, units_back
):
    """One node comes back as the other goes: no unit less, yet the job there is hit, and at once."""
    cloud = Site(name="cloud", kind="cloud", capacity=((0.0, 4),), gpus_per_node=2)
    more = [(10.0, 20.0, 3, 1)] if units_back == 3 else [(10.0, 20.0, 2, 2)]
    rounds = [Outage(start=0.0, end=10.0, site="cloud", first_unit=0, units=2)]
    rounds += [Outage(start=a, end=b, site="cloud", first_unit=f, units=u) for a, b, f, u in more]
    result = simulate(
        [job("a", 0.0, 999.0, 40.0, modes=(TWO,))], [cloud, EDGE], Fifo(), overhead="7,99",
        outages=rounds, merge_s=merge_s, placement=placement, log=True,
    )  # fmt: skip
    assert completions(result) == pytest.approx({"a": 40.0 / TWO.rate + 7.0})
    assert result.metrics.interruptions == 1
    assert [e.time for e in result.events][:2] == [0.0, 10.0]


def test_jobs_on_other_nodes_are_not_hit():
    """The node that no job holds fails: nobody loses anything."""
    jobs = [job(name, 0.0, 999.0, 40.0, modes=(ONE,)) for name in "ab"]
    result = simulate(
        jobs, [CLOUD, EDGE], Fifo(), overhead="7,99", outages=[outage(10, 30, first=2)]
    )
    assert completions(result) == pytest.approx({"a": 40.0, "b": 40.0})
    assert result.metrics.interruptions == 0


def test_a_job_that_is_moved_pays_for_the_move_only():
    """Hit at 10 s and moved to the edge: a migration of 5 s, no restart on top."""

    def rule(state: ClusterState) -> Decision:
        return Decision(allocation={"a": ONE if state.now < 10.0 else ON_EDGE})

    result = simulate(
        [job("a", 0.0, 999.0, 20.0)], [CLOUD, EDGE], Scripted(rule), overhead="7,5",
        outages=[outage(10, 30)],
    )  # fmt: skip
    assert completions(result)["a"] == pytest.approx(10.0 + 5.0 + 10.0 / ON_EDGE.rate)
    assert result.stalls == {}


def test_the_stall_of_an_event_comes_on_top():
    """Under ElasticFlow's overhead one that is hit stalls 2 s for the event and 2 s for its restart."""
    result = simulate(
        [job("a", 0.0, 999.0, 40.0, modes=(ONE,))], [CLOUD, EDGE], Fifo(), overhead="elasticflow",
        outages=[outage(10, 1000)],
    )  # fmt: skip
    assert result.stalls["a"] == ((0.0, 2.0), (10.0, 4.0))
    assert completions(result)["a"] == pytest.approx(40.0 + 2.0 + 2.0 + 4.0)


def test_a_withdrawn_edge_server_hands_its_job_back():
    """Of two edge servers one goes at 10 s: its job waits, or runs where the policy says."""
    edge = Site(name="edge", kind="edge", capacity=((0.0, 2),))
    jobs = [job(name, 0.0, 999.0, 20.0, modes=(ON_EDGE,)) for name in "ab"]
    away = outage(10, 25, first=0, units=1, site="edge")
    result = simulate(jobs, [CLOUD, edge], Fifo(), outages=[away])
    alone = 20.0 / ON_EDGE.rate
    assert completions(result) == pytest.approx({"a": alone, "b": alone + 15.0})
    assert result.metrics.interruptions == 1


@settings(max_examples=examples(80))
@given(
    jobs_strategy(), st.integers(0, 999), st.sampled_from(["none", "1.5,4", "elasticflow"]),
    st.sampled_from([0.0, 5.0]),
)  # fmt: skip
def test_nothing_is_lost(jobs, seed, overhead, merge_s):
    """Under random outages every count is conserved, and the checker passes the history."""
    edge = Site(name="edge", kind="edge", capacity=((0.0, 2), (90.0, 1)))
    sites = [CLOUD, edge]
    outages = [
        *draw_outages(sites, "cloud", 40.0, 15.0, start_s=0.0, end_s=400.0, seed=seed),
        *draw_outages(sites, "edge", 30.0, 20.0, start_s=0.0, end_s=400.0, seed=seed),
    ]
    result = simulate(
        jobs, sites, Erratic(seed), overhead=overhead, merge_s=merge_s, outages=outages, check=False
    )
    report = check_history(
        jobs, with_outages(sites, outages), result.allocations, result.outcomes,
        parse_overhead(overhead).run_loss, result.stalls,
    )  # fmt: skip
    assert report.violations == ()
    m = result.metrics
    assert m.met + m.late + m.refused + m.unfinished == m.jobs
    again = simulate(
        jobs, sites, Erratic(seed), overhead=overhead, merge_s=merge_s, outages=outages
    )
    assert again.outcomes == result.outcomes


@settings(max_examples=examples(20))
@given(jobs_strategy(), st.integers(0, 99))
def test_every_job_completes_when_the_nodes_come_back(jobs, seed):
    """A queue that serves all in turn finishes every job, however often nodes fail."""
    edge = Site(name="edge", kind="edge", capacity=((0.0, 2),))
    outages = draw_outages([CLOUD, edge], "cloud", 50.0, 20.0, start_s=0.0, end_s=900.0, seed=seed)
    result = simulate(jobs, [CLOUD, edge], Fifo(), outages=outages)
    able = {j.id for j in jobs if any(m.gpus <= 4 for m in j.modes)}
    assert {o.job for o in result.outcomes if o.completion is not None} == able
