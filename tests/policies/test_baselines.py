"""The policies of the literature on states small enough to be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import ClusterState, JobState
from edgeflow_opt.policies.chronus import select_jobs
from edgeflow_opt.policies.registry import make_policy
from edgeflow_opt.policies.themis import fair_shares
from edgeflow_opt.policies.tiresias import gittins_index
from edgeflow_opt.problem import Site
from edgeflow_opt.simulation import simulate
from tests.policies.states import job, running, state, waiting


def held(name: str, where: ClusterState, **options: object) -> dict[str, str]:
    """Return what a fresh policy gives: site and GPUs by job."""
    decision = make_policy(name, **options).decide(where)
    return {job: f"{mode.site}{mode.gpus}" for job, mode in decision.allocation.items()}


def earned(seen: list[JobState], work: float = 60.0) -> None:
    """Take `work` off what the running ones of some jobs have left."""
    for each in seen:
        if each.mode is not None:
            each.required_left -= work


def test_fifo_is_held_up_by_its_head_unless_it_backfills() -> None:
    """A head that does not fit blocks a smaller job behind it; backfilling lets that one start."""
    runs = running(job("r", 9, 99, requested=2), 2)
    where = state(runs, *waiting(job("a", 9, 99, requested=4), job("b", 9, 99, requested=1)))
    assert held("fifo", where) == {"r": "c2"}
    assert held("fifo", where, backfill=True) == {"r": "c2", "b": "c1"}


def test_requested_gpus_shrink_to_a_mode_that_there_is() -> None:
    """Three GPUs become two, eight on a cluster of four become four, no request the least."""
    for requested, mode in ((3, "c2"), (8, "c4"), (None, "c1")):
        assert held("fifo", state(*waiting(job("a", 9, 99, requested=requested)))) == {"a": mode}


def test_srpt_preempts_for_the_shortest_by_time_or_by_service() -> None:
    """The job with least seconds left takes the GPUs; by GPU-seconds the smaller one does."""
    long, short = job("l", 90, 99, requested=1), job("s", 60, 99, requested=4)
    where = state(running(long, 1), *waiting(short), c=4)
    assert held("srpt", where) == {"s": "c4"}  # 20 s against 90 s
    assert held("srpt", where, by="service") == {"s": "c4"}  # 80 GPU-s against 90
    where = state(running(job("l", 70, 99, requested=1), 1), *waiting(short), c=4)
    assert held("srpt", where, by="service") == {"l": "c1"}
    with pytest.raises(UsageError, match="option by: must be one of time, service"):
        make_policy("srpt", by="size")


def test_least_laxity_runs_who_can_wait_least_and_the_hopeless_last() -> None:
    """Laxity 5 goes before laxity 40; one that is late already goes last, or first if asked."""
    jobs = (
        job("a", 10, 50, requested=4),
        job("b", 30, 15, requested=4),
        job("x", 99, 9, requested=4),
    )
    assert held("least-laxity", state(*waiting(*jobs))) == {"b": "c4"}
    assert held("least-laxity", state(*waiting(*jobs)), hopeless="first") == {"x": "c4"}
    waits = make_policy("least-laxity", slice_s=7.0).decide(state(*waiting(*jobs)))
    assert waits.wake_up == 7.0


def test_edf_takes_the_most_even_beyond_the_knee() -> None:
    """The most urgent job takes four GPUs although two are faster; with the knee cap it does not."""
    bent = job("a", 9, 10, rates=((1, 1.0), (2, 1.8), (4, 1.5)))
    where = state(*waiting(job("b", 9, 20), bent))
    assert held("edf", where) == {"a": "c4"}
    assert held("edf-knee", where) == {"a": "c2", "b": "c2"}
    assert held("edf", where, knee_cap=True) == held("edf-knee", where)
    # Who comes last gets the largest level that is left.
    assert held("edf", state(*waiting(job("b", 9, 20), bent), c=7)) == {"a": "c4", "b": "c2"}


def test_tiresias_scans_its_queues_and_wakes_at_the_next_limit() -> None:
    """A new job preempts one of the second queue, and is seen again when it reaches the limit."""
    old = running(job("old", 9999, 99999, requested=4), 4, attained=4000.0)
    where = state(old, *waiting(job("new", 9999, 99999, requested=4)))
    decision = make_policy("tiresias").decide(where)
    assert set(decision.allocation) == {"new"}
    assert decision.wake_up == pytest.approx(3250 / 4)
    # In one queue nobody is preempted, unless the order is that of arrival.
    old.attained_gpu_s = 100.0
    where = state(*waiting(job("new", 9999, 99999, requested=4)), old)
    assert set(make_policy("tiresias").decide(where).allocation) == {"old"}
    assert set(make_policy("tiresias", order="arrival").decide(where).allocation) == {"new"}


def test_gittins_index_by_hand() -> None:
    """Of three past jobs of 1, 2 and 9 units, quantum 2: two in three end, after 5/3 on average."""
    samples = np.array([1.0, 2.0, 9.0])
    index = gittins_index(samples, np.array([0.0, 2.0, 8.0, 9.0]), 2.0)
    assert index == pytest.approx([2 / (1 + 2 + 2), 0.0, 1.0, 0.0])


def test_tiresias_gittins_learns_from_completed_jobs() -> None:
    """After a short job has gone, a job as old as it was counts as less likely to end than a new one."""
    policy = make_policy("tiresias-gittins", least_samples=1, quantum=50.0)
    policy.decide(state(*waiting(job("past", 40, 99, requested=1)), c=1))
    old = running(job("old", 999, 9999, requested=1), 1, attained=100.0)
    where = state(old, *waiting(job("new", 999, 9999, requested=1)), c=1, now=40.0)
    assert set(policy.decide(where).allocation) == {"new"}


def test_gandiva_takes_turns_within_a_group_and_splits_between_groups() -> None:
    """Two of four one-GPU jobs run beside one of two two-GPU jobs; after a slice the others do."""
    policy = make_policy("gandiva")
    jobs = [job(f"s{i}", 9999, None, requested=1) for i in range(4)]
    jobs += [job(f"b{i}", 9999, None, requested=2) for i in range(2)]
    first = policy.decide(state(*waiting(*jobs)))
    assert set(first.allocation) == {"s0", "s1", "b0"}
    assert first.wake_up == 60.0
    seen = [
        running(j, first.allocation[j.id].gpus) if j.id in first.allocation else waiting(j)[0]
        for j in jobs
    ]
    within = policy.decide(state(*seen, now=30.0))
    assert set(within.allocation) == {"s0", "s1", "b0"}
    earned(seen)
    second = policy.decide(state(*seen, now=60.0))
    assert set(second.allocation) == {"s2", "s3", "b1"}


def test_gandiva_starves_no_group() -> None:
    """One four-GPU job beside many small ones gets all GPUs from time to time."""
    policy = make_policy("gandiva")
    jobs = [job(f"s{i}", 9999, None, requested=1) for i in range(8)]
    jobs.append(job("big", 9999, None, requested=4))
    seen: list[JobState] = list(waiting(*jobs))
    turns = dict.fromkeys((j.id for j in jobs), 0)
    for turn in range(60):
        allocation = policy.decide(state(*seen, now=60.0 * turn)).allocation
        for name in allocation:
            turns[name] += 1
        seen = [
            running(j, allocation[j.id].gpus) if j.id in allocation else waiting(j)[0] for j in jobs
        ]
        earned(seen, 60.0 * (turn + 1))
    assert 15 <= turns["big"] <= 25
    assert max(turns[f"s{i}"] for i in range(8)) - min(turns[f"s{i}"] for i in range(8)) <= 2


@pytest.mark.parametrize("name", ["gandiva", "themis"])
def test_turns_go_on_until_a_restart_is_paid(name: str) -> None:
    """A job whose whole turn went into its restart keeps its GPUs; once it has earned, the next has them."""
    policy = make_policy(name)
    a, b = job("a", 9999, None, requested=4), job("b", 9999, None, requested=4)
    (first,) = policy.decide(state(*waiting(a, b))).allocation
    seen = [running(j, 4) if j.id == first else waiting(j)[0] for j in (a, b)]
    for turn in (1, 2):
        assert set(policy.decide(state(*seen, now=60.0 * turn)).allocation) == {first}
    earned(seen, 1.0)
    assert first not in policy.decide(state(*seen, now=180.0)).allocation


@pytest.mark.parametrize("name", ["gandiva", "themis", "chronus", "tiresias", "least-laxity"])
def test_losses_longer_than_turns_let_every_job_end(name: str) -> None:
    """Restarts of ten turns, groups of two sizes, and a job that fits nowhere: all others are done."""
    jobs = [job(f"j{i}", 300, 50.0 * i, requested=1 + i % 4, arrival=5.0 * i) for i in range(6)]
    jobs.append(job("huge", 9, 99, rates=((8, 1.0),)))
    options = {"slice_s": 60.0} if name in ("gandiva", "themis", "least-laxity") else {}
    sites = (Site(name="c", kind="cloud", capacity=((0.0, 4), (100.0, 2), (900.0, 4))),)
    result = simulate(jobs, sites, make_policy(name, **options), overhead="600,600")
    unfinished = [o.job for o in result.outcomes if o.completion is None]
    assert unfinished == ["huge"]


def test_chronus_warrants_jobs_beside_one_that_can_run_no_more() -> None:
    """A warranted job that needs more GPUs than are left takes no room from the next one."""
    policy = make_policy("chronus")
    old = job("old", 200, 500, rates=((4, 3.0),), requested=4)
    policy.decide(state(*waiting(old), arrived="old"))
    new = job("new", 90, 100, requested=1, arrival=5.0)
    late = job("late", 90, 50, requested=1, arrival=5.0)
    where = state(*waiting(old, late, new), c=1, now=5.0, arrived="late new")
    assert set(policy.decide(where).allocation) == {"new"}


def test_themis_shares_minimise_the_worst_ratio() -> None:
    """Equal jobs share equally; no share can be moved without making the worst ratio worse."""
    ones = np.ones(4)
    assert fair_shares(ones, 100 * ones, 0 * ones, 400 * ones, 2.0) == pytest.approx(0.5 * ones)
    gpus, left = np.array([1.0, 2.0, 4.0]), np.array([50.0, 10.0, 80.0])
    age, alone = np.array([30.0, 0.0, 10.0]), np.array([90.0, 40.0, 100.0])
    share = fair_shares(gpus, left, age, alone, 4.0)
    ratio = (age + left / share) / alone
    assert gpus @ share <= 4.0 + 1e-9
    assert ratio[share < 1.0 - 1e-9] == pytest.approx(ratio.max())
    assert gpus @ share == pytest.approx(4.0) or (share == 1.0).any()


def test_themis_runs_the_worst_off_first() -> None:
    """Of two equal jobs the one that has waited longest for its share gets the round."""
    a = job("a", 100, None, requested=4, arrival=0.0)
    b = job("b", 100, None, requested=4, arrival=90.0)
    decision = make_policy("themis").decide(state(*waiting(b, a), now=100.0))
    assert set(decision.allocation) == {"a"}
    assert decision.wake_up == 160.0


def test_chronus_selects_by_an_integer_program(capfd: pytest.CaptureFixture[str]) -> None:
    """Three jobs of 3, 2 and 2 units before a room of 4: the two small ones, unless weights differ."""
    due = np.array([[3.0, 2.0, 2.0]])
    assert select_jobs(due, np.array([4.0]), np.ones(3), 1.0) == [False, True, True]
    assert select_jobs(due, np.array([4.0]), np.array([5.0, 2.0, 2.0]), 1.0) == [True, False, False]
    assert select_jobs(due, np.array([-1.0]), np.ones(3), 1.0) == [False, False, False]
    assert select_jobs(due, np.array([9.0]), np.ones(3), 1.0) == [True, True, True]
    assert capfd.readouterr() == ("", "")


def test_chronus_warrants_what_fits_and_keeps_leases() -> None:
    """Of two jobs that exclude each other one is warranted and runs; the lease is kept until its end."""
    big = job("big", 30, 10, requested=4)
    small = job("small", 27, 12, requested=4)
    where = state(*waiting(big, small), arrived="big small")
    policy = make_policy("chronus", others=False)
    decision = policy.decide(where)
    assert len(decision.allocation) == 1
    assert len(decision.refused) == 1
    policy = make_policy("chronus", lease_s=5.0)
    slack = job("slack", 3, 99, requested=4)
    runs = policy.decide(state(*waiting(slack), arrived="slack"))
    assert runs.wake_up is None
    policy.decide(state(running(slack, 4), *waiting(job("w", 9, None, requested=4)), now=1.0))
    where = state(running(slack, 4), *waiting(big), now=2.0, arrived="big")
    assert set(policy.decide(where).allocation) == {"slack"}


def test_chronus_asks_for_no_wake_up_for_jobs_that_can_never_run() -> None:
    """Without GPUs there is nothing to wait for: no wake-up, and the simulation ends."""
    where = state(*waiting(job("a", 3, 99, requested=2)), c=0, arrived="a")
    assert make_policy("chronus").decide(where).wake_up is None


def test_afs_gives_one_gpu_to_each_and_the_rest_to_the_greatest_gain() -> None:
    """Three GPUs: one each, the third to the job that scales; two GPUs with three jobs: the shortest."""
    flat = job("flat", 10, None, rates=((1, 1.0), (2, 1.1)))
    steep = job("steep", 30, None, rates=((1, 1.0), (2, 2.0)))
    third = job("third", 20, None, rates=((1, 1.0), (2, 1.5)))
    assert held("afs", state(*waiting(flat, steep), c=3)) == {"flat": "c1", "steep": "c2"}
    assert held("afs", state(*waiting(flat, steep, third), c=2)) == {"flat": "c1", "third": "c1"}
    # The longer job wins only if (2 - 1) / 2 > (1.5 - 1) / 1, which is not so: the shorter does.
    assert held("afs", state(*waiting(steep, third), c=3)) == {"steep": "c1", "third": "c2"}


def test_hungarian_matches_where_deadlines_are_met() -> None:
    """Only the job that an edge server completes goes there, the other one to the cloud."""
    pytest.importorskip("scipy")
    slow = job("slow", 20, 15, edge_rate=0.5, rates=((1, 1.0), (2, 1.8)))
    able = job("able", 5, 15, edge_rate=0.5)
    assert held("hungarian", state(*waiting(slow, able), c=2, e=1)) == {"slow": "c2", "able": "e1"}


def test_elasticflow_refuses_a_batch_and_edge_servers_take_the_first_come() -> None:
    """One hopeless arrival refuses its whole batch; an edge server takes the first before that."""
    jobs = waiting(job("x", 999, 9, edge_rate=0.5), job("a", 4, 9, edge_rate=0.5))
    where = state(*jobs, e=1, arrived="x a")
    assert make_policy("elasticflow").decide(where).refused == {"x", "a"}
    assert make_policy("elasticflow", admission="per_job").decide(where).refused == {"x"}
    assert held("elasticflow-edge", where) == {"x": "e1", "a": "c4"}
    only = make_policy("elasticflow-edge", only_if_met=True, admission="none").decide(where)
    assert only.allocation["a"].site == "e"


def test_elasticflow_follows_its_plan_where_asked() -> None:
    """A two-level plan changes later: the policy asks to be woken then, after a slot at the earliest."""
    where = state(*waiting(job("a", 30, 20)))
    options = {"elastic": False, "share": "two_level"}
    assert make_policy("elasticflow", **options).decide(where).wake_up is None
    # Two GPUs do all the work from 20 - 30 / 1.8 on; one GPU before does no harm.
    followed = make_policy("elasticflow", slot_s=1.0, **options).decide(where)
    assert followed.wake_up == pytest.approx(20 - 30 / 1.8, abs=1e-3)
    assert make_policy("elasticflow", slot_s=9.0, **options).decide(where).wake_up == 9.0


@pytest.mark.parametrize(
    ("policy", "options", "message"),
    [
        ("gandiva", {"slice_s": 0.0}, "option slice_s"),
        ("gandiva", {"node_gpus": -1}, "option node_gpus"),
        ("themis", {"slice_s": -1.0}, "option slice_s"),
        ("chronus", {"lease_s": 0.0}, "option lease_s"),
        ("tiresias", {"first_limit": 9000.0}, "options first_limit, second_limit"),
        ("tiresias", {"order": "size"}, "option order"),
        ("tiresias", {"promote": -1.0}, "option promote"),
        ("tiresias-gittins", {"quantum": 0.0}, "option quantum"),
        ("tiresias-gittins", {"least_samples": 0}, "option least_samples"),
        ("least-laxity", {"hopeless": "never"}, "option hopeless"),
        ("least-laxity", {"slice_s": -1.0}, "option slice_s"),
        ("elasticflow", {"slot_s": -1.0}, "option slot_s"),
        ("elasticflow", {"admission": "all"}, "option admission"),
        ("elasticflow", {"rule_1": False}, "option 'rule_1' is not one of policy"),
        # Of the wrong kind.
        ("gandiva", {"slice_s": None}, "option slice_s: must be a number, got None"),
        ("gandiva", {"slice_s": True}, "option slice_s: must be a number, got True"),
        ("gandiva", {"node_gpus": "8"}, "option node_gpus: must be a whole number.*'8'"),
        ("gandiva", {"node_gpus": 1.5}, "option node_gpus: must be a whole number.*1.5"),
        ("chronus", {"lease_s": "x"}, "option lease_s: must be a number"),
        ("edf", {"knee_cap": "maybe"}, "option knee_cap: must be true or false, got 'maybe'"),
        ("exact", {"solver_params": 5}, "option solver_params: must be an object.*or null, got 5"),
        ("exact", {"time_limit_s": -1.0}, "option time_limit_s: must be a number of seconds above"),
        ("exact", {"levels": 9}, "option levels: must be from 1 to 5"),
        ("exact", {"workers": 0}, "option workers: must be at least 1"),
    ],
)
def test_bad_options_are_named(policy: str, options: dict[str, object], message: str) -> None:
    """An option out of its range, or of another kind, is a usage error that names it."""
    with pytest.raises(UsageError, match=message):
        make_policy(policy, **options)
