"""The online policies edgeflow and edgeflow-select on states small enough to be computed by hand."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import ClusterState, JobState
from edgeflow_opt.policies.registry import make_policy
from edgeflow_opt.problem import Site
from edgeflow_opt.simulation import simulate
from edgeflow_opt.solvers.greedy import GreedyOptions
from tests.effort import examples
from tests.policies.states import traces
from tests.solvers.greedy.helpers import job

CURVE = (("c", 1, 1.0), ("c", 2, 1.8), ("c", 4, 3.0))


def state(*jobs: JobState, now: float = 0.0, arrived: str = "", **units: int) -> ClusterState:
    """Return a cluster state; sites whose name begins with e are edge sites."""
    sites = tuple(
        Site(name=n, kind="edge" if n[0] == "e" else "cloud", capacity=((0.0, u),))
        for n, u in units.items()
    )
    return ClusterState(now=now, jobs=jobs, sites=sites, arrived=frozenset(arrived.split()))


def fresh(*args: object, **fields: object) -> JobState:
    """Return the state of a job that never ran."""
    made = job(*args, **fields)
    return JobState(job=made, required_left=made.required)


def held(policy_name: str, where: ClusterState, **options: object) -> dict[str, str]:
    """Return what each job holds, as site and GPUs."""
    decision = make_policy(policy_name, **options).decide(where)
    return {name: f"{mode.site}{mode.gpus}" for name, mode in decision.allocation.items()}


def test_job_holds_its_least_share():
    """Work 50 by 40 s needs two GPUs."""
    where = state(fresh("a", 40, 50, *CURVE), c=4)
    assert held("edgeflow", where, elastic=False) == {"a": "c2"}


def test_left_over_gpus_are_handed_on():
    """The other two GPUs are free, and the job can use them."""
    assert held("edgeflow", state(fresh("a", 40, 50, *CURVE), c=4)) == {"a": "c4"}


def test_deadlines_are_absolute():
    """At time 20 the same work needs four GPUs."""
    where = state(fresh("a", 40, 50, *CURVE), c=4, now=20.0)
    assert held("edgeflow", where, elastic=False) == {"a": "c4"}


@pytest.mark.parametrize(
    ("servers", "ends", "expected", "met"),
    [
        (0, "no_server", {"a": "c2"}, 0),
        (1, "no_server", {"a": "e1", "b": "c2"}, 1),
        (2, "no_server", {"a": "e1", "b": "e1"}, 0),
        (2, "none_late", {"a": "e1", "b": "c2"}, 1),
        (9, "none_late", {"a": "e1", "b": "c2"}, 1),
    ],
)
def test_where_rule_3_ends(servers: int, ends: str, expected: dict[str, str], met: int) -> None:
    """The example of the docstring: b is late only since a is before it, and goes with it or stays."""
    modes = (*CURVE, ("e", 1, 0.5))
    jobs = [fresh("a", 10, 20, *modes), fresh("b", 12, 10, *modes)]
    where = state(*jobs, c=2, e=servers)
    assert held("edgeflow", where, rule_3_ends=ends) == expected
    trace = [dataclasses.replace(seen.job, arrival=0.0) for seen in jobs]
    policy = make_policy("edgeflow", rule_3_ends=ends)
    assert simulate(trace, where.sites, policy).metrics.met == met


def test_hopeless_job_blocks_the_published_rule_and_not_the_selecting_one():
    """As published the late job takes all GPUs; with selection it gets none."""
    where = state(fresh("h", 10, 100, *CURVE), fresh("g", 40, 50, *CURVE), c=4)
    assert held("edgeflow", where) == {"h": "c4"}
    assert held("edgeflow-select", where) == {"g": "c4"}


def test_edge_job_stays_while_servers_last():
    """Rule 1 keeps the first of two edge jobs when one server is left."""
    jobs = []
    for name in "ab":
        begun = fresh(name, 40, 20, ("c", 1, 1.0), ("e", 1, 1.0))
        jobs.append(dataclasses.replace(begun, mode=begun.job.modes[1], last_site="e"))
    assert held("edgeflow", state(*jobs, c=1, e=1)) == {"a": "e1", "b": "c1"}


def test_selection_moves_a_job_to_the_edge_where_that_makes_room_for_another():
    """Two jobs need the one GPU; the edge completes only the earlier, so both are met."""
    early = fresh("early", 30, 20, ("c", 1, 1.0), ("e", 1, 0.8))
    late = fresh("late", 40, 30, ("c", 1, 1.0), ("e", 1, 0.1))
    assert held("edgeflow-select", state(early, late, c=1, e=1)) == {"early": "e1", "late": "c1"}


def test_selection_leaves_jobs_in_the_cloud_where_all_fit():
    """With a second GPU nobody needs the slower edge server."""
    early = fresh("early", 30, 20, ("c", 1, 1.0), ("e", 1, 0.8))
    late = fresh("late", 40, 30, ("c", 1, 1.0), ("e", 1, 0.1))
    assert held("edgeflow-select", state(early, late, c=2, e=1)) == {"early": "c1", "late": "c1"}


def test_decisions_hold_no_numbers_of_numpy():
    """Names, modes and times of a decision are those of the state, and no wake-up is asked for."""
    where = state(fresh("a", 40, 50, *CURVE), fresh("b", 1, 99, *CURVE), c=4, arrived="a b")
    for name in ("edgeflow", "edgeflow-select"):
        decision = make_policy(name, admission="per_job").decide(where)
        assert decision.wake_up is None
        assert {type(j) for j in (*decision.allocation, *decision.refused)} == {str}
        assert decision.allocation["a"] in where.jobs[0].job.modes


def test_known_fall_of_capacity_is_planned_for():
    """With GPUs that go at 20 s the job must hold more of them before."""
    site = Site(name="c", kind="cloud", capacity=((0.0, 4), (20.0, 0)))
    where = ClusterState(now=0.0, jobs=[fresh("a", 40, 50, *CURVE)], sites=[site])
    assert held("edgeflow", where, elastic=False) == {"a": "c4"}


def test_admission_refuses_arrivals_only():
    """The old late job stays; the new one that cannot be met is refused."""
    where = state(fresh("old", 1, 9, *CURVE), fresh("new", 5, 99, *CURVE), c=4, arrived="new")
    assert make_policy("edgeflow", admission="per_job").decide(where).refused == {"new"}
    assert make_policy("edgeflow").decide(where).refused == frozenset()


def test_memory_keeps_a_job_off_the_edge():
    """A job that needs 16 GiB does not go to a server of 8."""
    where = state(fresh("a", 40, 10, ("c", 1, 1.0), ("e", 1, 1.0), memory_gib=16.0), c=2, e=1)
    small = tuple(dataclasses.replace(site, memory_gib=8.0) for site in where.sites[1:])
    assert held("edgeflow", where) == {"a": "e1"}
    where = dataclasses.replace(where, sites=(where.sites[0], *small))
    assert held("edgeflow", where) == {"a": "c1"}


def test_tables_follow_jobs_that_change_between_events():
    """One policy object serves later events, with other jobs and other modes of the same job."""
    policy = make_policy("edgeflow", elastic=False)
    first = policy.decide(state(fresh("a", 40, 50, *CURVE), c=4))
    second = policy.decide(state(fresh("a", 40, 50, ("c", 3, 3.0)), fresh("b", 9, 9, *CURVE), c=4))
    assert first.allocation["a"].gpus == 2
    assert {name: mode.gpus for name, mode in second.allocation.items()} == {"a": 3, "b": 1}


def test_without_jobs_nothing_is_held():
    """An empty cluster gives an empty decision."""
    assert held("edgeflow-select", state(c=4)) == {}


def test_options_are_those_of_the_solver():
    """The registry lists the fields of GreedyOptions, and refuses other names and bad values."""
    import inspect

    from edgeflow_opt.policies.edgeflow import EdgeFlowPolicy

    names = [field.name for field in dataclasses.fields(GreedyOptions)]
    assert list(inspect.signature(EdgeFlowPolicy).parameters) == names
    with pytest.raises(UsageError, match="option 'lat' is not one of policy 'edgeflow'"):
        make_policy("edgeflow", lat="first")
    with pytest.raises(UsageError, match="option late: must be one of"):
        make_policy("edgeflow", late="never")


@pytest.mark.parametrize("policy_name", ["edgeflow", "edgeflow-select"])
@pytest.mark.parametrize("now", [0.0, 1e9, 1e12])
@pytest.mark.parametrize("left", [50.0, 1e-3, 1e-7, 1e-12])
def test_a_job_that_is_nearly_done_runs_on_any_clock(policy_name: str, now: float, left: float):
    """However little is left, and however large the time is, the job holds GPUs and the call ends."""
    made = job("a", now + 40, 50, *CURVE)
    other = fresh("b", now + 30, 20, *CURVE)
    where = state(JobState(job=made, required_left=left), other, c=4, now=now)
    assert set(held(policy_name, where)) == {"a", "b"}


@pytest.mark.parametrize("policy_name", ["edgeflow", "edgeflow-select"])
def test_decisions_do_not_depend_on_the_clock(policy_name: str):
    """The same state later on the clock gets the same allocation."""
    allocations = []
    for now in (0.0, 2.0**30):
        jobs = [fresh(f"j{k}", now + 20 + 7 * k, 10 + 11 * k, *CURVE) for k in range(6)]
        allocations.append(held(policy_name, state(*jobs, c=8, now=now)))
    assert allocations[0] == allocations[1]


class Twice:
    """A policy that decides by plans made as far as need be, and by plans of everything."""

    def __init__(self, name: str, options: dict[str, object]) -> None:
        self.short, self.whole = (make_policy(name, **options) for _ in range(2))
        self.compared = 0

    def decide(self, state: ClusterState):
        """Return the decision, after a comparison of the two."""
        decision = self.short.decide(state)
        assert decision == self.whole.plan(state).decision
        self.compared += 1
        return decision


@settings(max_examples=examples(100))
@given(
    traces(),
    st.sampled_from(("edgeflow", "edgeflow-select")),
    st.integers(1, 4),
    st.integers(0, 2),
    st.fixed_dictionaries(
        {},
        optional={
            "late": st.sampled_from(("first", "last", "nothing")),
            "admission": st.sampled_from(("none", "elasticflow", "per_job")),
            "hopeless_by": st.sampled_from(("max_gpus", "free_gpus", "plan")),
            "edge_order": st.sampled_from(("list", "deadline")),
            "rule_1": st.booleans(),
            "rule_2": st.booleans(),
            "rule_3": st.booleans(),
            "fill": st.booleans(),
            "elastic": st.booleans(),
        },
    ),
)
def test_what_is_left_out_of_plans_changes_no_decision(jobs, name, gpus, servers, options):
    """At every event of a trace the decision is that of the plans of all jobs to their ends."""
    sites = (
        Site(name="c", kind="cloud", capacity=((0.0, gpus),)),
        Site(name="e", kind="edge", capacity=((0.0, servers),)),
    )
    policy = Twice(name, options)
    simulate(jobs, sites, policy)
    assert policy.compared >= 1


@pytest.mark.parametrize(("waits", "met"), [(True, {"a", "b", "c"}), (False, {"a", "c"})])
def test_jobs_wait_on_the_edge_for_the_cloud(waits: bool, met: set[str]) -> None:
    """Half of b is done on the edge while a holds the cloud, so that c has room beside it."""
    modes = (("c", 1, 1.0), ("e", 1, 0.4))
    jobs = (
        job("a", 10, 10, *modes, arrival=0.0),
        job("b", 18, 8, *modes, arrival=0.0),
        job("c", 14, 4, *modes, arrival=10.0),
    )
    sites = state(c=1, e=1).sites
    policy = make_policy("edgeflow-select", wait_on_edge=waits)
    result = simulate(jobs, sites, policy)
    assert {outcome.job for outcome in result.outcomes if outcome.met} == met
    assert ("e" in {a.site for a in result.allocations if a.start < 10.0}) == waits
    where = state(fresh("a", 10, 10, *modes), fresh("b", 18, 8, *modes), c=1, e=1)
    expected = {"a": "c1", "b": "e1"} if waits else {"a": "c1"}
    assert held("edgeflow-select", where, wait_on_edge=waits) == expected


def test_a_move_that_costs_more_than_it_saves_is_not_made() -> None:
    """With 5 s lost by moving to the cloud, 4 s of work on the edge are not worth it."""
    modes = (("c", 1, 1.0), ("e", 1, 0.4))
    losing = [job(n, d, w, *modes, migration_s=5.0) for n, d, w in (("a", 10, 10), ("b", 30, 8))]
    where = state(*(JobState(job=j, required_left=j.required) for j in losing), c=1, e=1)
    assert held("edgeflow-select", where) == {"a": "c1"}
