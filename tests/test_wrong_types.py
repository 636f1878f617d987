"""Whatever a field or an argument is given, it works, or one error of the package names it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgeflow_opt as ef
from edgeflow_opt.errors import InputError, InstanceError, UsageError
from edgeflow_opt.policies.exact import rolling_grid
from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    Job,
    LevelReport,
    Mode,
    Objective,
    Running,
    Site,
    Weights,
    problem_from_dict,
    problem_to_dict,
    schedule_to_dict,
)
from edgeflow_opt.problem.constraints.anti_affinity import AntiAffinity
from edgeflow_opt.problem.constraints.gpu_budget import GpuBudget
from edgeflow_opt.problem.constraints.group_quota import GroupQuota
from edgeflow_opt.problem.constraints.least_met import LeastMet
from edgeflow_opt.service import (
    CapacityChanged,
    EpochSession,
    JobArrived,
    JobCancelled,
    JobCompleted,
    JobPlaced,
    JobProgressed,
    JobRevised,
    RateCorrected,
    SessionOptions,
)
from edgeflow_opt.service.settings import ServiceSettings
from edgeflow_opt.service.state import ClusterView
from edgeflow_opt.simulation import simulate
from edgeflow_opt.simulation.analyser.options import Analyser
from edgeflow_opt.simulation.overhead import FixedLosses
from edgeflow_opt.solvers.capacity_prices import CapacityPrices
from edgeflow_opt.solvers.greedy import GreedyOptions
from edgeflow_opt.workloads.outages import Outage
from edgeflow_opt.workloads.rates import RateCatalog, RateProfile
from edgeflow_opt.workloads.trace import Trace, TraceJob


class _Odd:
    """An object of no meaning, and a class that can be called."""

    def __init__(self, *_: Any) -> None:
        pass


#: What is put into every field. Generators are made anew by each use.
ODD_VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "a dict": lambda: {"met": 1},
    "no dict": dict,
    "a text": lambda: "x",
    "no text": str,
    "bytes": lambda: b"x",
    "a list": lambda: [1],
    "no list": list,
    "lists": lambda: [[0.0, 4]],
    "a tuple": lambda: (1,),
    "no tuple": tuple,
    "tuples": lambda: ((0,),),
    "a set": lambda: {1},
    "a generator": lambda: iter((1,)),
    "nan": lambda: math.nan,
    "infinity": lambda: math.inf,
    "400 digits": lambda: 10**400,
    "5000 digits": lambda: 10**5000,
    "true": lambda: True,
    "zero": lambda: 0,
    "below zero": lambda: -1.0,
    "complex": lambda: 1j,
    "numpy float": lambda: np.float64(2),
    "numpy float32": lambda: np.float32(2),
    "numpy integer": lambda: np.int64(2),
    "numpy bool": lambda: np.bool_(True),
    "numpy text": lambda: np.str_("cloud"),
    "an array": lambda: np.array([1.0, 2.0]),
    "a scalar array": lambda: np.array(2.0),
    "a matrix": lambda: np.array([[0.0, 4.0]]),
    "array of texts": lambda: np.array(["cloud"]),
    "an object": _Odd,
    "a class": lambda: _Odd,
}

MODES = (
    Mode(site="cloud", gpus=1, rate=1.0),
    Mode(site="cloud", gpus=2, rate=1.5),
    Mode(site="edge", gpus=1, rate=0.5),
)
IDLE = Job(id="j", deadline=100.0, work=50.0, modes=MODES, arrival=0.0)
JOB = dataclasses.replace(IDLE, running=Running(site="cloud", gpus=1), last_site="cloud")
CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 4), (50.0, 2)), gpus_per_node=4)
EDGE = Site(name="edge", kind="edge", capacity=((0.0, 1),))
GRID = Grid((0.0, 50.0, 100.0))
SUM = Objective(mode="weighted", weights=Weights(met=1.0, cost=0.001))
PROBLEM = EpochProblem(grid=GRID, sites=(CLOUD, EDGE), jobs=(JOB,))
SCHEDULE = dataclasses.replace(
    ef.solve(PROBLEM, "greedy", time_limit_s=None).schedule,
    levels=(LevelReport(level="met", value=1.0, bound=None, optimal=False),),
)
TRACE_JOB = TraceJob(
    id="t", submission=0.0, deadline=9e3, model="bert", batch=64, gpus=2, iterations=100.0,
    duration=60.0,
)  # fmt: skip
NO_RUNGS = SessionOptions(rungs=())


def _epoch(**changes: Any) -> None:
    """Make an instance, send it through its document, and solve it."""
    parts = {"grid": GRID, "sites": (CLOUD, EDGE), "jobs": (JOB,), "objective": SUM, **changes}
    problem = EpochProblem(**parts)
    assert problem_from_dict(problem_to_dict(problem)) == problem
    hash((problem.sites, problem.jobs, problem.grid))
    result = ef.solve(problem, "greedy", time_limit_s=None)
    assert ef.check(problem, result.schedule).valid


def _constrained(constraint: Any) -> None:
    problem = PROBLEM.replace(constraints=(constraint,))
    assert problem_from_dict(problem_to_dict(problem)) == problem
    ef.check(problem, SCHEDULE)


def _simulate(**changes: Any) -> None:
    simulate(**{"jobs": (IDLE,), "sites": (CLOUD, EDGE), "policy": "edf", **changes})


def _told(*events: Any) -> None:
    view = ClusterView.of(PROBLEM).after(events)
    view.problem(Grid((view.clock, view.clock + 100.0)))


def _session(**changes: Any) -> EpochSession:
    return EpochSession(
        **{"sites": (CLOUD, EDGE), "options": NO_RUNGS, "isolated": False, **changes}
    )


def _with(part: Any, **changes: Any) -> Any:
    return dataclasses.replace(part, **changes)


def _replayed(trace: Trace) -> None:
    """Simulate a trace, and send it through what else is made of it."""
    str(trace)
    trace.with_deadlines(1.0, 2.0).scale_arrivals(2.0).offered_load(4)
    simulate(trace.jobs(edge_site=None), (_with(CLOUD, capacity=((-1e15, 4),)),), "edf")


def _begun_from(prices: CapacityPrices) -> None:
    """Send prices through their document, and spread them over the slots of an instance."""
    assert CapacityPrices.from_json(prices.to_json()) == prices
    prices.on_slots(PROBLEM)


def _catalog(profile: RateProfile) -> RateCatalog:
    return RateCatalog(profiles=(profile,), default_edge_ratio=0.5)


#: A data class: an example, and what it is used for.
PARTS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "Grid": (GRID, lambda x: _epoch(grid=x)),
    "Site": (CLOUD, lambda x: _epoch(sites=(x, EDGE))),
    "Job": (JOB, lambda x: _epoch(jobs=(x,))),
    "Mode": (MODES[0], lambda x: _epoch(jobs=(_with(JOB, modes=(x, *MODES[1:])),))),
    "Running": (JOB.running, lambda x: _epoch(jobs=(_with(JOB, running=x),))),
    "Weights": (SUM.weights, lambda x: _epoch(objective=_with(SUM, weights=x))),
    "Objective": (SUM, lambda x: _epoch(objective=x)),
    "GroupQuota": (GroupQuota(gpus=2, jobs=("j",), site="cloud"), _constrained),
    "GpuBudget": (
        GpuBudget(gpu_seconds=2, jobs=("j",), site="cloud", start=0.0, end=50.0),
        _constrained,
    ),
    "AntiAffinity": (AntiAffinity(jobs=("j",), most=1, site="cloud"), _constrained),
    "LeastMet": (LeastMet(jobs=("j",), least=1), _constrained),
    "SolveOptions": (
        ef.SolveOptions(time_limit_s=None), lambda x: ef.solve(PROBLEM, "greedy", x)
    ),
    "simulated Job": (IDLE, lambda x: _simulate(jobs=(x,))),
    "simulated Site": (CLOUD, lambda x: _simulate(sites=(x, EDGE))),
    "simulated Mode": (MODES[0], lambda x: _simulate(jobs=(_with(IDLE, modes=(x, *MODES[1:])),))),
    "SessionOptions": (NO_RUNGS, lambda x: _session(options=x).decide(0.0, 1.0)),
    "JobArrived": (JobArrived(time=1.0, job=_with(IDLE, id="k")), _told),
    "JobCompleted": (JobCompleted(time=1.0, job="j"), _told),
    "JobCancelled": (JobCancelled(time=1.0, job="j"), _told),
    "JobProgressed": (JobProgressed(time=1.0, job="j", work_left=5.0), _told),
    "JobPlaced": (
        JobPlaced(time=1.0, job="j", site="cloud", gpus=1, loss_left_s=0.0), _told
    ),
    "JobRevised": (JobRevised(time=1.0, job="j", deadline=50.0, weight=1.0), _told),
    "RateCorrected": (RateCorrected(time=1.0, job="j", site="cloud", gpus=1, rate=1.0), _told),
    "CapacityChanged": (CapacityChanged(time=1.0, site="cloud", capacity=((0.0, 3),)), _told),
    "arrived Job": (
        _with(IDLE, id="k"), lambda x: _told(JobArrived(time=1.0, job=x))
    ),
    "Outage": (
        Outage(start=10.0, end=20.0, site="cloud", first_unit=0, units=1),
        lambda x: _simulate(outages=(x,)),
    ),
    "Analyser": (Analyser(rate_error=0.1), lambda x: _simulate(analyser=x)),
    "FixedLosses": (FixedLosses(1.0, 2.0), lambda x: _simulate(overhead=x)),
    "GreedyOptions": (GreedyOptions(), lambda x: x),
    "RateProfile": (RateProfile(model="m", batch=1, rates=((1, 1.0), (2, 1.5))), _catalog),
    "TraceJob": (TRACE_JOB, lambda x: _replayed(Trace(entries=(x,)))),
    "Trace": (Trace(entries=(TRACE_JOB,), name="t", skipped=1), lambda x: _replayed(x)),
    "CapacityPrices": (
        CapacityPrices(
            sites=("cloud", "edge"), boundaries=(0.0, 100.0), per_unit_second=((0.1,), (0.2,))
        ),
        _begun_from,
    ),
    "ServiceSettings": (ServiceSettings(), lambda x: x),
    "RateCatalog": (
        _catalog(RateProfile(model="m", batch=1, rates=((1, 1.0), (2, 1.5)))), lambda x: x
    ),
}  # fmt: skip


def _write(schedule: Any) -> None:
    ef.check(PROBLEM, schedule)
    schedule_to_dict(schedule)
    ef.write_schedule(schedule, Path("schedule.json"))


#: The same for what results are made of.
RESULTS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "Schedule": (SCHEDULE, _write),
    "Allocation": (
        SCHEDULE.allocations[0],
        lambda x: _write(_with(SCHEDULE, allocations=(x, *SCHEDULE.allocations[1:]))),
    ),
    "Outcome": (SCHEDULE.outcomes[0], lambda x: _write(_with(SCHEDULE, outcomes=(x,)))),
    "ObjectiveValue": (SCHEDULE.objective, lambda x: _write(_with(SCHEDULE, objective=x))),
    "LevelReport": (SCHEDULE.levels[0], lambda x: _write(_with(SCHEDULE, levels=(x,)))),
}

#: A function: which of its arguments are tried.
CALLS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "EpochProblem": (_epoch, ("grid", "sites", "jobs", "objective", "constraints")),
    "an item of sites": (lambda sites: _epoch(sites=(sites, EDGE)), ("sites",)),
    "an item of jobs": (lambda jobs: _epoch(jobs=(jobs,)), ("jobs",)),
    "an item of modes": (lambda modes: _epoch(jobs=(_with(JOB, modes=(modes,)),)), ("modes",)),
    "an item of constraints": (lambda constraints: _constrained(constraints), ("constraints",)),
    "a step": (
        lambda capacity: _epoch(sites=(_with(CLOUD, capacity=(capacity,)), EDGE)), ("capacity",)
    ),
    "units": (
        lambda capacity: _epoch(sites=(_with(CLOUD, capacity=((0.0, capacity),)), EDGE)),
        ("capacity",),
    ),
    "a boundary": (lambda grid: _epoch(grid=Grid((0.0, grid))), ("grid",)),
    "Grid.uniform": (
        lambda **x: Grid.uniform(**{"now": 0.0, "slot_s": 50.0, "num_slots": 2, **x}),
        ("now", "slot_s", "num_slots"),
    ),
    "solve": (
        lambda **x: ef.solve(**{"problem": PROBLEM, "solver": "greedy", **x}),
        ("problem", "solver", "options"),
    ),
    "check": (
        lambda **x: ef.check(**{"problem": PROBLEM, "schedule": SCHEDULE, **x}),
        ("problem", "schedule"),
    ),
    "evaluate": (
        lambda **x: ef.evaluate(**{"problem": PROBLEM, "allocations": (), **x}),
        ("problem", "allocations"),
    ),
    "write_problem": (lambda problem: ef.write_problem(problem, Path("x.json")), ("problem",)),
    "write_schedule": (lambda schedule: ef.write_schedule(schedule, Path("x.json")), ("schedule",)),
    "simulate": (
        _simulate,
        (
            "jobs", "sites", "policy", "overhead", "merge_s", "reveal_future", "outages",
            "placement", "analyser", "check", "log", "name",
        ),
    ),
    "EpochSession": (_session, ("sites", "now", "jobs", "objective", "options")),
    "decide": (
        lambda **x: _session().decide(**{"now": 0.0, "time_limit_s": 1.0, **x}),
        ("now", "time_limit_s"),
    ),
    "update": (lambda events: _session().update(events), ("events",)),
    "an event": (lambda event: _session().update([event]), ("event",)),
    "clairvoyant_bound": (
        lambda **x: ef.clairvoyant_bound(
            **{"jobs": (IDLE,), "sites": (CLOUD, EDGE), "schedule": False, **x}
        ),
        ("jobs", "sites", "time_limit_s", "max_intervals", "seed", "workers", "deterministic"),
    ),
    "rolling_grid": (
        lambda **x: rolling_grid(**{"now": 0.0, "end": 100.0, "slot_s": 50.0, "max_slots": 4, **x}),
        ("now", "end", "slot_s", "max_slots"),
    ),
}  # fmt: skip


def _complaint(call: Callable[[], Any]) -> str | None:
    """Return the message of the error that the package raises; None where it raises none."""
    try:
        call()
    except (InputError, UsageError) as problem:
        return str(problem)
    return None


#: Words by which messages name what is called otherwise in Python.
ALSO = {
    "boundaries": "grid",
    "params": "parameter",
    "arrival": "now",
    "allocations": "schedule",
    "events": "event",
    "rungs": "solver",
    "units": "unit",
    "rates": "rate",
    "default_edge_ratio": "edge ratio",
}


def _assert_named(field: str, odd: str, complaint: str | None) -> None:
    named = complaint is None or field in complaint or ALSO.get(field, field) in complaint
    assert named, f"{odd} for {field}: {complaint}"


@pytest.mark.parametrize("name", [*PARTS, *RESULTS])
def test_a_field_of_a_wrong_type_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every field of every public data class."""
    monkeypatch.chdir(tmp_path)
    example, use = {**PARTS, **RESULTS}[name]
    assert _complaint(lambda: use(example)) is None
    for part in dataclasses.fields(example):
        for odd, make in ODD_VALUES.items():
            complaint = _complaint(lambda: use(_with(example, **{part.name: make()})))  # noqa: B023
            _assert_named(part.name, odd, complaint)


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_a_wrong_type_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every function that takes such objects."""
    monkeypatch.chdir(tmp_path)
    call, arguments = CALLS[name]
    for argument in arguments:
        for odd, make in ODD_VALUES.items():
            complaint = _complaint(lambda: call(**{argument: make()}))  # noqa: B023
            _assert_named(argument, odd, complaint)


def test_lists_and_numbers_of_numpy_are_as_good_as_plain_ones(tmp_path: Path) -> None:
    """An instance from lists, arrays and generators equals that of tuples, and can be written."""
    modes = [Mode(site=str(m.site), gpus=np.int64(m.gpus), rate=np.float32(m.rate)) for m in MODES]  # type: ignore[arg-type]
    job = dataclasses.replace(IDLE, modes=modes, work=np.float64(50.0), must_meet=np.bool_(False))
    sites = [dataclasses.replace(CLOUD, capacity=[[0.0, 4], np.array([50, 2])]), EDGE]
    found = EpochProblem(grid=Grid(np.linspace(0.0, 100.0, 3)), sites=sites, jobs=iter([job]))  # type: ignore[arg-type]
    assert found == EpochProblem(grid=GRID, sites=(CLOUD, EDGE), jobs=(IDLE,))
    assert type(found.jobs[0].modes[0].gpus) is int
    ef.write_problem(found, tmp_path / "epoch.json")
    assert ef.read_problem(tmp_path / "epoch.json") == found


def test_a_dict_for_a_data_class_is_one_fault_with_the_way_out() -> None:
    """The remedies fit Python, and those for documents too."""
    weights: Any = {"met": 1}
    with pytest.raises(InstanceError, match=r"weights: must be a Weights, got .*Weights\(met=1, c"):
        PROBLEM.replace(objective=Objective(mode="weighted", weights=weights))
    with pytest.raises(InstanceError, match=r'in a document \{"met": 1, .* in Python Weights\(met'):
        PROBLEM.replace(objective=Objective(mode="weighted"))
    mode: Any = {"site": "cloud", "gpus": 1, "rate": 1.0}
    with pytest.raises(InstanceError, match=r"modes\[0\]: must be a Mode, got .* by Mode\(…\)"):
        PROBLEM.replace(jobs=(dataclasses.replace(IDLE, modes=(mode,)),))
