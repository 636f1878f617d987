from __future__ import annotations

import pytest

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies import ClusterState, Decision
from edgeflow_opt.problem import Site
from edgeflow_opt.problem.runs import RunKind
from edgeflow_opt.simulation import (
    NO_OVERHEAD,
    ElasticFlowLosses,
    FixedLosses,
    JobLosses,
    parse_overhead,
    simulate,
)
from tests.simulation.helpers import CLOUD, EDGE, ONE, TWO, Fifo, Scripted, by_time, job


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("none", NO_OVERHEAD),
        ("jobs", JobLosses()),
        ("elasticflow", ElasticFlowLosses()),
        ("30,180", FixedLosses(30.0, 180.0)),
        (" 0, 1.5", FixedLosses(0.0, 1.5)),
    ],
)
def test_models_by_name(text, model):
    """Every model has a name; two numbers are fixed losses."""
    assert parse_overhead(text) == model


@pytest.mark.parametrize("text", ["", "some", "1", "1,2,3", "-1,2", "nan,1", "1,inf", "1,x"])
def test_unknown_models_are_refused(text):
    """Anything else is refused with an example of what is meant."""
    with pytest.raises(UsageError, match=r"option overhead: must be none.*for example 30,180"):
        parse_overhead(text)


def test_no_overhead_overrides_the_losses_of_jobs():
    """Under `none` and fixed losses what a job states itself does not count."""
    stated = job("a", 0.0, 9.0, 1.0, restart_s=50.0)
    assert NO_OVERHEAD.run_loss(stated, RunKind.RESTARTED, 2) == 0.0
    assert NO_OVERHEAD.as_seen(stated, 2, 8).restart_s == 0.0
    assert JobLosses().run_loss(stated, RunKind.RESTARTED, 2) == 50.0


def test_elasticflow_formula():
    """2 s per event, 7 s from 256 GPUs up, and 2 (log2 g + 1) s for a new placement."""
    model, any_job = ElasticFlowLosses(), job("a", 0.0, 9.0, 1.0)
    assert (model.event_loss(255), model.event_loss(256)) == (2.0, 7.0)
    assert [model.run_loss(any_job, RunKind.FIRST, g) for g in (1, 2, 8)] == [2.0, 4.0, 8.0]
    assert model.run_loss(any_job, RunKind.CONTINUED, 8) == 0.0
    assert model.as_seen(any_job, 8, 256).restart_s == 15.0
    assert model.as_seen(any_job, 0, 32).migration_s == 4.0


def test_elasticflow_overhead_by_hand():
    """Job a loses 2+2 s at its start and 2 s at each of four later events; b and c are short."""
    jobs = [job("a", 0.0, 99.0, 30.0), job("b", 10.0, 99.0, 1.0), job("c", 20.0, 99.0, 1.0)]
    result = simulate(jobs, [CLOUD, EDGE], Fifo(), overhead="elasticflow", log=True)
    # b: begins at 10 with 4 s of loss, completes at 15: an event too, as is that of c at 25.
    assert [e.time for e in result.events] == pytest.approx([0.0, 10.0, 15.0, 20.0, 25.0])
    completion = {o.job: o.completion for o in result.outcomes}
    assert completion == pytest.approx({"a": 30.0 + 4.0 + 4 * 2.0, "b": 15.0, "c": 25.0})
    assert [t for t, _ in result.stalls["a"]] == pytest.approx([0.0, 10.0, 15.0, 20.0, 25.0])
    assert {seconds for _, seconds in result.stalls["a"]} == {2.0}
    assert len([a for a in result.allocations if a.job == "a"]) == 1


def test_stalls_that_are_not_paid_add_up():
    """Wake-ups every second stall a job for ever longer; only the time after them earns."""
    policy = by_time({0.0: {"a": ONE}, 1.0: {"a": ONE}, 2.0: {"a": ONE}})
    result = simulate([job("a", 0.0, 99.0, 10.0)], [CLOUD, EDGE], policy, overhead="elasticflow")
    # 2 + 2 at 0, 2 more at 1 and at 2: 8 s in all, none of them earning.
    assert result.outcomes[0].completion == pytest.approx(18.0)


def test_a_large_cluster_stalls_longer():
    """In a cluster of 256 cloud GPUs every event costs 7 s."""
    large = Site(name="cloud", kind="cloud", capacity=((0.0, 256),))
    result = simulate([job("a", 0.0, 99.0, 10.0)], [large, EDGE], Fifo(), overhead="elasticflow")
    assert result.outcomes[0].completion == pytest.approx(19.0)


def test_policies_see_the_losses_of_the_model():
    """A policy sees the fixed losses, or ElasticFlow's at the GPUs held, and the stall to come."""
    seen = []

    def rule(state: ClusterState) -> Decision:
        first = state.jobs[0]
        seen.append((first.job.restart_s, first.job.migration_s, first.loss_left_s))
        return Decision(allocation={"a": TWO}, wake_up=10.0 if state.now == 0.0 else None)

    jobs = [job("a", 0.0, 99.0, 60.0, restart_s=1.0)]
    simulate(jobs, [CLOUD, EDGE], Scripted(rule), overhead="30,180")
    simulate(jobs, [CLOUD, EDGE], Scripted(rule), overhead="elasticflow")
    assert seen == [(30.0, 180.0, 0.0)] * 2 + [(4.0, 4.0, 0.0), (6.0, 6.0, 2.0)]
