from __future__ import annotations

import dataclasses
import math
import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import InstanceError, InvalidScheduleError, PolicyError, UsageError
from edgeflow_opt.policies import ClusterState, Decision, make_policy
from edgeflow_opt.policies.columns import ColumnAllocation
from edgeflow_opt.problem import Allocation, Job, Mode, Outcome, Site
from edgeflow_opt.simulation import FixedLosses, simulate
from edgeflow_opt.workloads import cluster, draw_outages, generate_trace
from tests.effort import examples
from tests.simulation.helpers import (
    CLOUD,
    EDGE,
    ON_EDGE,
    ONE,
    TWO,
    Fifo,
    Scripted,
    by_time,
    job,
)


def completions(result):
    """Return the completion times by job."""
    return {o.job: o.completion for o in result.outcomes}


def spans(result, name):
    """Return what a job held: (start, end, site, gpus)."""
    return [(a.start, a.end, a.site, a.gpus) for a in result.allocations if a.job == name]


def cloud(*steps):
    """Return a cloud of capacity `steps`."""
    return Site(name="cloud", kind="cloud", capacity=tuple(steps))


def test_one_job_runs_to_its_completion():
    """A job alone completes after work / rate seconds, and holds its GPU exactly that long."""
    result = simulate([job("a", 10.0, 40.0, 20.0)], [CLOUD, EDGE], Fifo())
    assert completions(result)["a"] == pytest.approx(30.0)
    assert result.outcomes[0].met is True
    assert spans(result, "a") == [(10.0, completions(result)["a"], "cloud", 1)]
    assert result.metrics.events == 1


def test_jobs_wait_for_a_free_gpu():
    """With one GPU jobs run one after another; the second completes late."""
    jobs = [job("a", 0.0, 100.0, 60.0), job("b", 0.0, 100.0, 60.0, modes=(ONE,))]
    result = simulate(jobs, [cloud((0.0, 1)), EDGE], Fifo())
    assert completions(result) == pytest.approx({"a": 60.0, "b": 120.0})
    assert [o.met for o in result.outcomes] == [True, False]
    assert (result.metrics.met, result.metrics.late) == (1, 1)


def test_a_change_of_mode_costs_a_restart():
    """10 s on one GPU, then two GPUs: 7 s of loss, the 15 iterations left take 10 s more."""
    policy = by_time({0.0: {"a": ONE}, 10.0: {"a": TWO}})
    result = simulate(
        [job("a", 0.0, 30.0, 25.0)], [CLOUD, EDGE], policy, overhead=FixedLosses(7.0, 99.0)
    )
    assert completions(result)["a"] == pytest.approx(27.0)
    assert result.metrics.reconfigurations_per_job == 1.0
    assert result.metrics.migrations_per_job == 0.0


def test_a_move_costs_a_migration_and_resuming_a_restart():
    """Edge 10 s (5 it.), cloud with 20 s of loss, idle, cloud again with 3 s: 5 + 10 + 5 it."""
    policy = by_time({0.0: {"a": ON_EDGE}, 10.0: {"a": ONE}, 40.0: {}, 50.0: {"a": ONE}})
    result = simulate(
        [job("a", 0.0, 99.0, 20.0)], [CLOUD, EDGE], policy, overhead=FixedLosses(3.0, 20.0)
    )
    assert completions(result)["a"] == pytest.approx(58.0)
    assert result.metrics.reconfigurations_per_job == 2.0
    assert result.metrics.migrations_per_job == 1.0


def test_a_run_without_credit_still_counts_as_having_run():
    """A run cut short within its loss earns nothing, and the next one loses again."""
    policy = by_time({0.0: {"a": ONE}, 10.0: {"a": TWO}, 12.0: {"a": ONE}})
    result = simulate(
        [job("a", 0.0, 99.0, 20.0)], [CLOUD, EDGE], policy, overhead=FixedLosses(5.0, 5.0)
    )
    assert completions(result)["a"] == pytest.approx(27.0)


def test_jobs_have_their_own_losses_by_default():
    """Without an overhead model the losses are those that the job states."""
    policy = by_time({0.0: {"a": ONE}, 10.0: {"a": TWO}})
    jobs = [job("a", 0.0, 99.0, 25.0, restart_s=4.0)]
    assert completions(simulate(jobs, [CLOUD, EDGE], policy))["a"] == pytest.approx(24.0)
    policy = by_time({0.0: {"a": ONE}, 10.0: {"a": TWO}})
    result = simulate(jobs, [CLOUD, EDGE], policy, overhead="none")
    assert completions(result)["a"] == pytest.approx(20.0)


def test_an_unchanged_mode_goes_on_through_events():
    """Events of other jobs do not interrupt a run: one allocation, no loss."""
    jobs = [job("a", 0.0, 99.0, 50.0), job("b", 7.0, 99.0, 5.0), job("c", 9.0, 99.0, 5.0)]
    result = simulate(jobs, [CLOUD, EDGE], Fifo(), overhead=FixedLosses(30.0, 30.0))
    assert len(spans(result, "a")) == 1
    assert completions(result) == pytest.approx({"a": 50.0, "b": 12.0, "c": 14.0})


def test_a_fall_of_capacity_is_an_event():
    """At 30 s one of two GPUs goes: job b pauses until it is back at 50 s."""
    jobs = [job("a", 0.0, 200.0, 100.0, modes=(ONE,)), job("b", 0.0, 200.0, 40.0, modes=(ONE,))]
    seen = []

    def rule(state: ClusterState) -> Decision:
        seen.append((state.now, state.capacity_changed, state.sites[0].capacity))
        return Fifo().decide(state)

    site = cloud((0.0, 2), (30.0, 1), (50.0, 2))
    result = simulate(jobs, [site, EDGE], Scripted(rule))
    assert spans(result, "b")[0][:2] == (0.0, 30.0)
    assert completions(result) == pytest.approx({"a": 100.0, "b": 60.0})
    assert [s[:2] for s in seen[:3]] == [(0.0, False), (30.0, True), (50.0, True)]
    assert seen[1][2] == ((30.0, 1),)


def test_the_future_is_seen_only_when_revealed():
    """By default the present capacity seems to last; reveal_future shows all steps."""
    site, capacities = cloud((0.0, 2), (30.0, 1)), []

    def rule(state: ClusterState) -> Decision:
        capacities.append(state.sites[0].capacity)
        return Fifo().decide(state)

    for reveal in (False, True):
        simulate([job("a", 5.0, 99.0, 9.0)], [site, EDGE], Scripted(rule), reveal_future=reveal)
    assert capacities == [((5.0, 2),), ((0.0, 2), (30.0, 1))]


def test_simultaneous_events_make_one_decision():
    """An arrival, a completion and a change of capacity at 20 s are one event."""
    jobs = [job("a", 0.0, 99.0, 20.0), job("b", 20.0, 99.0, 20.0), job("c", 20.0, 99.0, 20.0)]
    result = simulate(jobs, [cloud((0.0, 1), (20.0, 2)), EDGE], Fifo(), log=True)
    assert [e.time for e in result.events] == [0.0, 20.0]
    event = result.events[1]
    assert (event.arrived, event.completed, event.capacity_changed) == (("b", "c"), ("a",), True)
    assert completions(result) == pytest.approx({"a": 20.0, "b": 40.0, "c": 40.0})


def test_completions_apart_by_rounding_are_one_event():
    """Jobs that complete at the same time but for rounding lead to one decision."""
    modes = [Mode(site="cloud", gpus=1, rate=rate) for rate in (0.1, 0.3, 0.7)]
    jobs = [
        job(str(index), 1e7 / 3, 2e7, 1000.0 * mode.rate, modes=(mode,))
        for index, mode in enumerate(modes)
    ]
    result = simulate([*jobs, job("z", 1e7 / 3, 2e7, 5000.0)], [CLOUD, EDGE], Fifo(), log=True)
    assert len(result.events) == 2
    assert set(result.events[1].completed) == {"0", "1", "2"}


def test_wake_ups_come_at_their_time_unless_an_event_comes_before():
    """A wake-up asked for 10 s is dropped when an arrival at 5 s asks for another."""
    times = []

    def rule(state: ClusterState) -> Decision:
        times.append(state.now)
        allocation = {seen.job.id: ONE for seen in state.jobs}
        return Decision(allocation=allocation, wake_up={0.0: 10.0, 5.0: 12.0}.get(state.now))

    simulate([job("a", 0.0, 99.0, 20.0), job("b", 5.0, 99.0, 30.0)], [CLOUD, EDGE], Scripted(rule))
    assert times == pytest.approx([0.0, 5.0, 12.0, 20.0])


def test_refused_jobs_never_run():
    """A refused job leaves the state for good and counts as refused."""
    seen = []

    def rule(state: ClusterState) -> Decision:
        seen.append([s.job.id for s in state.jobs])
        return Decision(
            allocation={s.job.id: ONE for s in state.jobs if s.job.id != "b"},
            refused=frozenset({"b"} & {s.job.id for s in state.jobs}),
        )

    jobs = [job("a", 0.0, 99.0, 20.0), job("b", 0.0, 99.0, 30.0), job("c", 5.0, 99.0, 30.0)]
    result = simulate(jobs, [CLOUD, EDGE], Scripted(rule))
    assert seen[0] == ["a", "b"]
    assert all("b" not in names for names in seen[1:])
    assert result.refused == {"b"}
    assert (result.metrics.met, result.metrics.refused) == (2, 1)
    assert result.outcomes[1] == Outcome(job="b", met=False, completion=None)


def test_a_job_that_never_runs_is_unfinished():
    """A policy that does nothing ends the simulation with unfinished jobs."""
    idle = Scripted(lambda state: Decision(allocation={}))
    result = simulate([job("a", 0.0, 9.0, 1.0), job("b", 3.0, None, 1.0)], [CLOUD, EDGE], idle)
    assert result.allocations == ()
    assert (result.metrics.unfinished, result.metrics.best_effort) == (1, 1)
    assert [o.met for o in result.outcomes] == [False, None]
    assert result.metrics.makespan is None


def test_an_empty_trace_is_simulated():
    """No job: no event, no ratio."""
    result = simulate([], [CLOUD, EDGE], Fifo())
    assert result.outcomes == ()
    assert result.metrics.events == 0
    assert result.metrics.dsr is None


def test_no_edge_server_means_no_utilisation():
    """A site without a unit is not utilised at 0 but not at all."""
    none = Site(name="edge", kind="edge", capacity=((0.0, 0),))
    result = simulate([job("a", 0.0, 20.0, 10.0)], [CLOUD, none], Fifo())
    assert result.metrics.edge_utilisation is None
    assert result.metrics.cloud_utilisation == pytest.approx(10.0 / 80.0)


def test_a_deadline_met_exactly_is_met():
    """Completion at the deadline is on time; a deadline a moment sooner is missed."""
    exact = Job(id="a", arrival=10.0, deadline=10.0 + 20.0 * (1 - 1e-6), work=20.0, modes=(ONE,))
    assert simulate([exact], [CLOUD, EDGE], Fifo()).metrics.met == 1
    assert exact.deadline is not None
    sooner = dataclasses.replace(exact, deadline=exact.deadline - 1e-9)
    result = simulate([sooner], [CLOUD, EDGE], Fifo())
    assert result.metrics.late == 1
    assert result.metrics.mean_tardiness == pytest.approx(1e-9, rel=1e-3)


def test_merged_events_wait_for_the_slot():
    """With merge_s = 10 the arrival at 4 s waits until 10 s, a completion counts at its time."""
    jobs = [job("a", 0.0, 99.0, 6.0), job("b", 4.0, 99.0, 8.0)]
    result = simulate(jobs, [CLOUD, EDGE], Fifo(), merge_s=10.0, log=True)
    assert [e.time for e in result.events] == [0.0, 10.0]
    assert completions(result) == pytest.approx({"a": 6.0, "b": 18.0})
    assert spans(result, "a") == [(0.0, 10.0, "cloud", 1)]


def test_a_fall_of_capacity_does_not_wait_for_the_slot():
    """Merging never lets jobs hold units that are gone."""
    jobs = [job("a", 0.0, 99.0, 30.0, modes=(ONE,)), job("b", 0.0, 99.0, 30.0, modes=(ONE,))]
    site = cloud((0.0, 2), (3.0, 1))
    result = simulate(jobs, [site, EDGE], Fifo(), merge_s=10.0, log=True)
    assert result.events[1].time == 3.0
    assert spans(result, "b")[0] == (0.0, 3.0, "cloud", 1)


def allocation_of(**modes):
    """Return a policy that always gives `modes`."""
    return Scripted(lambda state: Decision(allocation=modes))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (allocation_of(a=Mode(site="cloud", gpus=8, rate=1.0)), "job 'a' is given .*not one of"),
        (allocation_of(a=Mode(site="cloud", gpus=1, rate=2.0)), "job 'a' is given .*not one of"),
        (allocation_of(b=ONE), "job 'b', which is not an unfinished job"),
        (allocation_of(a="cloud"), "job 'a' is given 'cloud'"),
        (allocation_of(big=ON_EDGE), "needs 40 GiB, a unit of site 'edge' has 16 GiB"),
        (
            Scripted(lambda s: Decision(allocation=dict.fromkeys(["a", "big", "c"], TWO))),
            "site 'cloud' has 4 units, but 6 are given to 3 jobs",
        ),
        (
            Scripted(lambda s: Decision(allocation={"a": ONE}, refused=frozenset({"a"}))),
            "both refused and given",
        ),
        (
            Scripted(lambda s: Decision(allocation={}, refused=frozenset({"x"}))),
            "refuses job 'x'",
        ),
        (Scripted(lambda s: Decision(allocation={}, wake_up=s.now)), "wake_up must be"),
        (Scripted(lambda s: Decision(allocation={}, wake_up=math.inf)), "wake_up must be"),
        (Scripted(lambda s: {}), "must return a Decision"),
        (Scripted(lambda s: 1 / 0), "failed with ZeroDivisionError"),
    ],
)
def test_a_broken_policy_is_named(policy, message):
    """Every rule of the cluster is enforced, with policy, time, job or site and amounts."""
    edge = Site(name="edge", kind="edge", capacity=((0.0, 1),), memory_gib=16.0)
    jobs = [
        job("a", 5.0, 99.0, 9.0),
        job("big", 5.0, 99.0, 9.0, memory_gib=40.0),
        job("c", 5.0, 99.0, 9.0),
        job("b", 50.0, 99.0, 9.0),
    ]
    with pytest.raises(PolicyError, match=f"policy 'broken' at 5.0 s.*{message}"):
        simulate(jobs, [CLOUD, edge], policy, name="broken")


def test_a_policy_that_wakes_for_ever_is_stopped():
    """Wake-ups without end, and nothing running, are an error and not an endless loop."""
    insomniac = Scripted(lambda s: Decision(allocation={}, wake_up=s.now + 1.0))
    with pytest.raises(PolicyError, match="woken 10001 times in a row"):
        simulate([job("a", 0.0, 9.0, 1.0)], [CLOUD, EDGE], insomniac)


def test_an_interrupt_goes_through():
    """Ctrl-C inside a policy is not wrapped, swallowed or turned into a result."""

    def rule(state: ClusterState) -> Decision:
        raise KeyboardInterrupt("stop")

    with pytest.raises(KeyboardInterrupt, match="stop"):
        simulate([job("a", 0.0, 9.0, 1.0)], [CLOUD, EDGE], Scripted(rule))


def test_a_policy_cannot_cheat_by_changing_the_state():
    """What a policy writes into the state does not reach the accounts."""

    def rule(state: ClusterState) -> Decision:
        for seen in state.jobs:
            seen.required_left = 0.001
            seen.mode = TWO
        return Decision(allocation={seen.job.id: ONE for seen in state.jobs})

    result = simulate([job("a", 0.0, 99.0, 20.0)], [CLOUD, EDGE], Scripted(rule))
    assert completions(result)["a"] == pytest.approx(20.0)


def test_the_state_shows_what_a_job_has_and_needs():
    """Work left, run, loss left, site and GPU-seconds are exact at every event."""
    states = []

    def rule(state: ClusterState) -> Decision:
        seen = state.jobs[0]
        states.append(
            (seen.required_left, seen.mode, seen.run_start, seen.loss_left_s, seen.last_site,
             seen.attained_gpu_s)
        )  # fmt: skip
        mode = {0.0: ONE, 10.0: TWO, 12.0: TWO, 30.0: None}[state.now]
        wake_up = {0.0: 10.0, 10.0: 12.0, 12.0: 30.0}.get(state.now)
        return Decision(allocation={"a": mode} if mode else {}, wake_up=wake_up)

    simulate(
        [job("a", 0.0, 99.0, 40.0)], [CLOUD, EDGE], Scripted(rule), overhead=FixedLosses(5.0, 9.0)
    )
    assert states == [
        (pytest.approx(40.0), None, 0.0, 0.0, None, 0.0),
        (pytest.approx(30.0), ONE, 0.0, 0.0, "cloud", 10.0),
        (pytest.approx(30.0), TWO, 10.0, 3.0, "cloud", 14.0),
        (pytest.approx(7.5), TWO, 10.0, 0.0, "cloud", 50.0),
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"arrival": None}, "job 'a', arrival: a simulation needs it"),
        ({"must_meet": True}, "must_meet: no online policy can warrant it"),
        ({"malleable": False}, "malleable: the simulated cluster re-allocates"),
        ({"last_site": "cloud"}, "last_site: a simulated job has not run before"),
        ({"work": math.nan}, "work: must be a finite number"),
        ({"modes": (Mode(site="moon", gpus=1, rate=1.0),)}, "must name a site"),
    ],
)
def test_bad_jobs_are_refused(fields, message):
    """Jobs that break a rule are refused before anything is simulated."""
    with pytest.raises(InstanceError, match=message):
        simulate([dataclasses.replace(job("a", 0.0, 9.0, 1.0), **fields)], [CLOUD, EDGE], Fifo())


def test_all_faults_are_named_together():
    """Two bad jobs and a bad site make one error with three faults."""
    jobs = [job("a", 5.0, 1.0, 1.0), job("b", 0.0, 1.0, -1.0)]
    bad = Site(name="edge", kind="edge", capacity=((99.0, 1),))
    with pytest.raises(InstanceError, match="3 faults") as caught:
        simulate(jobs, [CLOUD, bad], Fifo())
    assert len(caught.value.faults) == 3


@pytest.mark.parametrize("merge_s", [-1.0, math.nan, math.inf])
def test_bad_options_are_refused(merge_s):
    """merge_s must be a finite number of seconds, at least 0."""
    with pytest.raises(UsageError, match="option merge_s"):
        simulate([], [CLOUD, EDGE], Fifo(), merge_s=merge_s)


def test_an_unknown_policy_is_refused():
    """A policy may be given by name; an unknown name is a usage error."""
    with pytest.raises(UsageError, match="policy 'fyfo' is not known"):
        simulate([], [CLOUD, EDGE], "fyfo")


def test_a_wrong_history_does_not_leave(monkeypatch):
    """If the accounts were wrong, the checker would say so and nothing would be returned."""
    from edgeflow_opt.simulation.ledger import JobLedger

    end = JobLedger.end

    def lazy_end(self, time):
        if self.mode is None:
            return
        end(self, time)
        last = self.allocations[-1]
        self.allocations[-1] = Allocation(
            job=last.job, start=last.start, end=last.end - 1.0, site=last.site, gpus=last.gpus
        )

    monkeypatch.setattr(JobLedger, "end", lazy_end)
    with pytest.raises(InvalidScheduleError, match="the history of policy 'Fifo' fails"):
        simulate([job("a", 0.0, 99.0, 20.0)], [CLOUD, EDGE], Fifo())
    assert simulate([job("a", 0.0, 99.0, 20.0)], [CLOUD, EDGE], Fifo(), check=False).metrics.met


def test_what_a_policy_raises_on_purpose_and_ctrl_c_come_through():
    """An error of the package is not wrapped, and Ctrl-C inside a kernel is Ctrl-C."""

    def refuse(state):
        raise UsageError("told by the policy")

    def interrupted(state):
        raise SystemError("in a kernel") from KeyboardInterrupt()

    with pytest.raises(UsageError, match=r"^told by the policy$"):
        simulate([job("a", 0.0, 99.0, 20.0)], [CLOUD, EDGE], Scripted(refuse))
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        simulate([job("a", 0.0, 99.0, 20.0)], [CLOUD, EDGE], Scripted(interrupted))


def test_a_result_is_picklable_and_frozen():
    """A result survives pickling unchanged."""
    result = simulate([job("a", 0.0, 99.0, 20.0)], [CLOUD, EDGE], Fifo(), log=True)
    assert pickle.loads(pickle.dumps(result)) == result
    with pytest.raises(AttributeError, match="policy"):
        result.policy = "x"  # type: ignore[misc]


def test_on_event_hears_every_event():
    """The callback gets the records that the log keeps."""
    heard = []
    jobs = [job("a", 0.0, 99.0, 20.0), job("b", 3.0, 99.0, 20.0)]
    result = simulate(jobs, [CLOUD, EDGE], Fifo(), log=True, on_event=heard.append)
    assert tuple(heard) == result.events
    assert len(heard) == result.metrics.events == 3


class Columns(Scripted):
    """A policy that gives every job a mode by columns."""

    def __init__(self, places, modes, wake_in_s=None):
        super().__init__(self.say)
        self.places, self.modes, self.wake_in_s = places, modes, wake_in_s

    def say(self, state):
        """Return the allocation."""
        columns = state.jobs.columns()
        places, modes = np.array(self.places), np.array(self.modes)
        wake_up = None if self.wake_in_s is None else state.now + self.wake_in_s
        return Decision(allocation=ColumnAllocation(columns, places, modes), wake_up=wake_up)


@pytest.mark.parametrize(
    ("places", "modes", "message"),
    [
        ([0, 1], [1, 1], "has 2 units, but 4 are given to 2 jobs"),
        ([0], [-1], "job 'a' has no mode -1"),
        ([1], [3], "job 'b' has no mode 3"),
        ([1, 1], [0, 0], "job 'b' is given twice"),
        ([2], [0], "place 2 is none of 2 jobs"),
    ],
)
def test_allocations_in_columns_keep_the_rules(places, modes, message):
    """A decision in columns is checked like any other; what breaks a rule is named."""
    jobs = [job("a", 0.0, 100.0, 10.0), job("b", 0.0, 100.0, 10.0)]
    with pytest.raises(PolicyError, match=message):
        simulate(jobs, [cloud((0.0, 2)), EDGE], Columns(places, modes))


@pytest.mark.parametrize("wake_in_s", [0.0, -1.0, math.inf, math.nan])
def test_a_policy_that_decides_in_columns_wakes_in_time_to_come(wake_in_s):
    """A wake-up now would come again and again at the same time."""
    with pytest.raises(PolicyError, match="wake_up must be a finite time after now or None, got"):
        simulate([job("a", 0.0, 100.0, 10.0)], [CLOUD, EDGE], Columns([0], [0], wake_in_s))


@settings(max_examples=examples(15), deadline=None)
@given(seed=st.integers(0, 10_000), name=st.sampled_from(["edgeflow", "edgeflow-select"]))
def test_columns_and_objects_lead_to_the_same_history(seed, name):
    """Columns, objects, or now these and now those: decisions and accounts are the same.

    Outages hit jobs, whose losses befall them while they run: these are booked by object.
    """
    trace = generate_trace(20, seed, load=1.5, cloud_gpus=8)
    span = trace.end - trace.start
    sites = cluster(8, 2, tide="daily", start_s=trace.start, end_s=trace.end)
    outages = draw_outages(
        sites, "edge", span / 4, span / 20, start_s=trace.start, end_s=trace.end, seed=seed
    )
    jobs = [dataclasses.replace(j, restart_s=20.0, migration_s=60.0) for j in trace.jobs()]
    draw = random.Random(seed)
    histories = []
    for share in (0.0, 0.5, 1.0):
        policy = make_policy(name)

        def rule(state, policy=policy, share=share):
            if draw.random() < share:
                state = dataclasses.replace(state, jobs=tuple(state.jobs))
            return policy.decide(state)

        histories.append(simulate(jobs, sites, Scripted(rule), outages=outages, log=True))
    for one in histories[1:]:
        assert one.allocations == histories[0].allocations
        assert one.outcomes == histories[0].outcomes
        assert one.stalls == histories[0].stalls
        assert [e.running for e in one.events] == [e.running for e in histories[0].events]
