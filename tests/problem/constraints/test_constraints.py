"""Constraints as data: documents, faults, rows and the checker."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import InstanceError, UsageError
from edgeflow_opt.formulations.linear_rows import obeys_rows, within_rows
from edgeflow_opt.formulations.plans import plan_of
from edgeflow_opt.problem import (
    Constraint,
    EpochProblem,
    Grid,
    Job,
    Mode,
    Objective,
    Schedule,
    Site,
    SolveStatus,
    Weights,
    check,
    json_schema,
    problem_from_dict,
    problem_to_dict,
)
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.problem.constraints.anti_affinity import AntiAffinity
from edgeflow_opt.problem.constraints.gpu_budget import GpuBudget
from edgeflow_opt.problem.constraints.group_quota import GroupQuota
from edgeflow_opt.problem.constraints.least_met import LeastMet
from edgeflow_opt.problem.constraints.rows import LinearRows
from edgeflow_opt.solvers import solve
from tests.problem.constraints.drawn import constraints
from tests.strategies import problems_with_schedules

QUICK = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)


def _problem(*some: Constraint, jobs: int = 4) -> EpochProblem:
    """Return jobs that all meet their deadlines at once on 1 GPU each, under constraints."""
    modes = (Mode(site="cloud", gpus=1, rate=1.0), Mode(site="edge", gpus=1, rate=0.5))
    return EpochProblem(
        grid=Grid.uniform(0.0, 60.0, 4),
        sites=(
            Site(name="cloud", kind="cloud", capacity=((0.0, 8),)),
            Site(name="edge", kind="edge", capacity=((0.0, 2),)),
        ),
        jobs=tuple(
            Job(id=f"j{k}", deadline=120.0, work=100.0, modes=modes, weight=1.0 + k)
            for k in range(jobs)
        ),
        constraints=some,
    )


NAMES = ("j0", "j1", "j2", "j3")


@pytest.mark.parametrize(
    ("constraint", "met"),
    [
        (GroupQuota(gpus=2, jobs=NAMES, site="cloud"), 2),
        (GroupQuota(gpus=0, jobs=("j0", "j1")), 2),
        (AntiAffinity(jobs=("j1", "j2", "j3")), 2),
        (GpuBudget(gpu_seconds=240.0), 2),
        (GpuBudget(gpu_seconds=0.0, start=60.0, end=90.0), 0),
    ],
)
def test_a_broken_constraint_is_seen_and_then_kept(constraint: Constraint, met: int) -> None:
    """A schedule made without it fails the checker by its name; those made with it meet what fits."""
    free = solve(_problem(), "auto").schedule
    assert free.met == 4
    problem = _problem(constraint)
    assert check(problem, free).kinds() == {constraint.type}
    for solver in ("cpsat", "highs", "auto", "greedy"):
        result = solve(problem, solver)
        assert check(problem, result.schedule).valid
        assert result.schedule.met == met
    assert constraint.type in str(problem)


@pytest.mark.parametrize("solver", ["cpsat", "highs", "auto"])
@pytest.mark.parametrize("weightless", [1, 2])
def test_jobs_without_weight_can_be_demanded(solver: str, weightless: int) -> None:
    """They are worth nothing, but meeting them may be what lets others be met."""
    problem = _problem(GroupQuota(gpus=2, jobs=NAMES), LeastMet(jobs=("j0",), least=1))
    jobs = tuple(
        dataclasses.replace(job, weight=0.0) if k < weightless else job
        for k, job in enumerate(problem.jobs)
    )
    result = solve(problem.replace(jobs=jobs), solver)
    assert (result.status, result.value) == (SolveStatus.OPTIMAL, 4.0)
    assert [outcome.job for outcome in result.schedule.outcomes if outcome.met] == ["j0", "j3"]


@pytest.mark.parametrize("solver", ["cpsat", "highs", "auto"])
def test_jobs_that_earn_nothing_can_be_demanded_of_a_sum(solver: str) -> None:
    """Where only cost counts, who is met at least cost is open, not decided by prices."""
    weights = Weights(met=0.0, cost=0.01, reconfigurations=1e-9)
    problem = _problem(LeastMet(jobs=NAMES, least=1)).replace(
        objective=Objective(mode="weighted", weights=weights)
    )
    result = solve(problem, solver)
    assert (result.status, result.schedule.met) == (SolveStatus.OPTIMAL, 1)
    assert result.value == pytest.approx(-1.2)


def test_a_number_of_jobs_can_be_demanded() -> None:
    """Light jobs are met instead of heavy ones where a promise needs it; too much is infeasible."""
    quota = GroupQuota(gpus=2, jobs=NAMES)
    light = LeastMet(jobs=("j0", "j1"), least=2)
    free = solve(_problem(quota), "cpsat").schedule
    assert check(_problem(light), free).kinds() == {"least_met"}
    for solver in ("cpsat", "highs", "auto"):
        result = solve(_problem(quota, light), solver)
        assert (result.status, result.value) == ("optimal", 3.0)
        too_much = _problem(quota, LeastMet(jobs=NAMES, least=3))
        assert solve(too_much, solver).status == "infeasible"
    assert solve(_problem(quota, light), "greedy").status == "no_solution"


@QUICK
@given(drawn=problems_with_schedules(), data=st.data())
def test_rows_and_checker_say_the_same(
    drawn: tuple[EpochProblem, Schedule], data: st.DataObject
) -> None:
    """On any valid schedule the rows of a constraint hold where its checker finds nothing."""
    problem, schedule = drawn
    problem = problem.replace(constraints=(data.draw(constraints(problem)),))
    arrays = arrays_of(problem)
    plan = plan_of(problem, arrays, schedule)
    kinds = check(problem, schedule).kinds()
    assert kinds <= {problem.constraints[0].type}
    assert obeys_rows(arrays, plan) == (not kinds)
    left = within_rows(arrays, plan)
    assert ((left == plan) | (left < 0)).all()
    assert obeys_rows(arrays, left) or problem.constraints[0].type == "least_met"


@QUICK
@given(drawn=problems_with_schedules(), data=st.data())
def test_documents_round_trip(drawn: tuple[EpochProblem, Schedule], data: st.DataObject) -> None:
    """Constraints survive JSON and pickling, and the document obeys the published schema."""
    some = tuple(data.draw(constraints(drawn[0])) for _ in range(2))
    problem = drawn[0].replace(constraints=some)
    document = json.loads(json.dumps(problem_to_dict(problem)))
    jsonschema.validate(document, json_schema("edgeflow-epoch/1"))
    assert problem_from_dict(document) == problem
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_an_instance_without_constraints_is_written_as_before() -> None:
    """The key is left out where there are none: older readers refuse unknown keys."""
    assert "constraints" not in problem_to_dict(_problem())


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"type": "group_qouta"}, "type: must be a constraint of the package or of an installed"),
        ({}, "type: is missing"),
        ({"type": 3}, "type: must be a text"),
        ({"type": "group_quota"}, r"\(group_quota\), gpus: is missing"),
        ({"type": "group_quota", "gpus": "2"}, "gpus: must be a whole number"),
        ({"type": "group_quota", "gpus": -1}, "gpus: must be a whole number from 0"),
        ({"type": "group_quota", "gpus": 1, "jobs": ["who"]}, "must name jobs of the instance"),
        ({"type": "group_quota", "gpus": 1, "jobs": ["j0", "j0"]}, "once only"),
        ({"type": "group_quota", "gpus": 1, "site": "moon"}, "must name a site"),
        ({"type": "group_quota", "gpus": 1, "x": 1}, "'x': is not a known key"),
        ({"type": "gpu_budget", "gpu_seconds": 1, "start": 5, "end": 5}, "end: must be after"),
        ({"type": "least_met", "jobs": ["j0"], "least": 2}, "least: must be at most 1"),
        ("group_quota", r"constraints\[0\]: must be a JSON object"),
    ],
)
def test_documents_at_fault(document: Any, words: str) -> None:
    """A constraint that makes no sense is told by place, field and rule."""
    whole = {**problem_to_dict(_problem()), "constraints": [document]}
    with pytest.raises(InstanceError, match=words):
        problem_from_dict(whole)


def test_all_faults_are_told_together() -> None:
    """Faults of constraints stand beside those of jobs."""
    document = problem_to_dict(_problem())
    document["constraints"] = [{"type": "nothing"}, {"type": "least_met", "jobs": []}]
    document["jobs"][0]["work"] = -1.0
    with pytest.raises(InstanceError, match=r"(?s)3 faults.*work.*'nothing'.*least: is missing"):
        problem_from_dict(document)


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        (
            GpuBudget(gpu_seconds=-1.0, start=5.0, end=5.0, jobs=("who",), site="moon"),
            ["gpu_seconds", "end", "jobs", "site"],
        ),
        (GpuBudget(gpu_seconds=True, start=5.0, end=math.nan), ["gpu_seconds", "end"]),
        (
            GroupQuota(gpus=-1, jobs=("who", "j0", "j0"), site="moon"),
            ["gpus", "jobs", "jobs", "site"],
        ),
        (
            AntiAffinity(most=-1, jobs=(3, "who"), site="moon"),  # type: ignore[arg-type]
            ["jobs", "jobs", "most", "site"],
        ),
        (LeastMet(least=-1, jobs=("who", "j0", "j0")), ["jobs", "jobs", "least"]),
        (LeastMet(least=7, jobs=("who",)), ["jobs", "least"]),
    ],
)
def test_all_faults_of_a_constraint_are_told_together(
    constraint: Constraint, fields: list[str]
) -> None:
    """Every parameter at fault is told, and each fault once."""
    with pytest.raises(InstanceError, match=f"{len(fields)} faults") as caught:
        _problem().replace(constraints=(constraint,))
    assert [fault.field for fault in caught.value.faults] == fields


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Own(Constraint):
    """At most one GPU of all at a time, or nonsense."""

    type: ClassVar[str] = "own"

    how: str = "well"

    def rows(self, problem: EpochProblem, arrays: Any) -> Any:
        """Return what `how` says."""
        one = np.zeros(1, dtype=np.int64)
        if self.how == "raises":
            raise KeyError("sites")
        if self.how == "nothing":
            return None
        if self.how == "demands":
            return LinearRows(upper=one, row=one, mode=one, slot=one, value=-np.ones(1))
        if self.how == "beyond":
            return LinearRows(upper=one, row=one, mode=one, slot=one + 99, value=np.ones(1))
        if self.how == "uneven":
            return LinearRows(upper=one, row=one, mode=one)
        if self.how == "endless":
            return LinearRows(upper=np.array([np.nan]))
        return GroupQuota(gpus=1).rows(problem, arrays)

    def violations(self, problem: EpochProblem, *args: Any) -> Iterator[Any]:
        """Yield what a quota says."""
        if self.how == "unsure":
            raise ZeroDivisionError
        for found in GroupQuota(gpus=1).violations(problem, *args):
            yield dataclasses.replace(found, kind=self.type)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raises", "rows cannot be had .KeyError"),
        ("nothing", "must return LinearRows, got NoneType"),
        ("demands", "value must be at least 0"),
        ("beyond", "slot must be numbers from 0 to 3"),
        ("uneven", "slot must have 1 entries"),
        ("endless", "must be finite"),
        ("unsure", "cannot be checked against it .ZeroDivisionError"),
    ],
)
def test_a_constraint_that_fails_is_named(how: str, words: str) -> None:
    """Rows that make no sense, and a check that fails, are one clear error by place and type."""
    with pytest.raises(UsageError, match=rf"constraints\[0\] \(own\).*{words}"):
        solve(_problem(Own(how=how)), "highs")


def test_a_constraint_of_ones_own_needs_no_entry_point() -> None:
    """In Python an object is enough; only a document needs to find it by name."""
    result = solve(_problem(Own()), "auto")
    assert (result.status, result.value) == ("optimal", 4.0)
    document = problem_to_dict(_problem(Own()))
    assert list(document["constraints"]) == [{"type": "own"}]
    with pytest.raises(InstanceError, match="'own'; install the package that brings it"):
        problem_from_dict(document)


def test_what_is_no_constraint_is_refused() -> None:
    """Only dataclasses derived from Constraint are taken."""
    with pytest.raises(InstanceError, match=r"constraints\[0\]: must be a dataclass derived"):
        _problem("group_quota")  # type: ignore[arg-type]


def test_the_example_of_the_guide() -> None:
    """The constraint that the guide shows is as it says: all trials or none."""
    guide = Path(__file__).parents[3] / "docs" / "guides" / "constraints.md"
    source = guide.read_text().split("# my_rules/together.py\n")[1].split("```")[0]
    room: dict[str, Any] = {"__name__": "my_rules.together"}
    sys.modules["my_rules.together"] = types.ModuleType("my_rules.together")
    try:
        exec(source, room)
        trials = room["AllOrNone"](jobs=("j0", "j1", "j2"))
    finally:
        del sys.modules["my_rules.together"]
    quota = GroupQuota(gpus=2, jobs=NAMES)
    assert solve(_problem(quota), "highs").value == 7.0
    for solver in ("highs", "cpsat", "auto"):
        result = solve(_problem(quota, trials), solver)
        assert (result.status, result.value) == ("optimal", 4.0)
    assert solve(_problem(trials), "cpsat").value == 10.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Crashing(GroupQuota):
    """A quota that cannot even look at its parameters."""

    type: ClassVar[str] = "crashing"

    def faults(self, grid: Any, sites: Any, jobs: Any) -> Iterator[Any]:
        """Fail."""
        raise ZeroDivisionError("by the plug-in")


def test_a_constraint_that_crashes_over_its_parameters_is_a_fault_of_the_instance() -> None:
    """It is named by its place and type, with what it raised, and the others are looked at."""
    message = r"constraints\[0\] .crashing.: cannot be looked at .ZeroDivisionError: by the plug-in"
    with pytest.raises(InstanceError, match=message) as caught:
        _problem(Crashing(gpus=1), GroupQuota(gpus=-1))
    assert [fault.object for fault in caught.value.faults] == [
        "constraints[0] (crashing)",
        "constraints[1] (group_quota)",
    ]
