"""Every rule of an instance is enforced, with a message that says what to do."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflow_opt.errors import InstanceError
from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    Job,
    Mode,
    Objective,
    Running,
    Site,
    Weights,
)
from edgeflow_opt.problem.validation import faults_of
from edgeflow_opt.problem.values import shown
from tests.problem.examples import rich_problem
from tests.strategies import problems

MODE = Mode(site="cloud", gpus=1, rate=1.0)
CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 4),))
EDGE = Site(name="edge", kind="edge", capacity=((0.0, 2),))
JOB = Job(id="j", deadline=100.0, work=50.0, modes=(MODE,))
GRID = Grid((0.0, 50.0, 100.0))


def _job(**fields: Any) -> dict[str, Any]:
    return {"jobs": (dataclasses.replace(JOB, **fields),)}


def _site(**fields: Any) -> dict[str, Any]:
    return {"sites": (dataclasses.replace(CLOUD, **fields), EDGE)}


def _weighted(**fields: Any) -> dict[str, Any]:
    return {"objective": Objective(mode="weighted", weights=Weights(**fields))}


def _running(**fields: Any) -> Running:
    return Running(**{"site": "cloud", "gpus": 1, **fields})


HUGE = 10**400
TOO_LARGE = "magnitude must be at most 1e15"

# What is changed, and the whole message that must come of it (as a pattern).
CASES: list[tuple[dict[str, Any], str]] = [
    ({"grid": Grid((0.0,))}, r"instance, grid: needs at least two boundaries, got \[0.0\]; give"),
    ({"grid": Grid(())}, r"instance, grid: needs at least two boundaries, got \[\]; give now"),
    ({"grid": Grid((0.0, 5.0, 5.0))}, r"grid\[2\]: must be above grid\[1\] = 5.0, got 5.0; sort"),
    ({"grid": Grid((0.0, 5e-324))}, r"grid\[1\]: magnitude must be at least 1e-100, or 0, got 5e"),
    (
        {"grid": Grid((-1e-100, 0.0, 9e-100, math.nextafter(9e-100, 1.0)))},
        r"grid\[3\]: a slot must be at least 1e-100 s long, got 9e-100|9.0",
    ),
    (_job(work=1e-300), r"job 'j', work: magnitude must be at least 1e-100, or 0, got 1e-300; cho"),
    ({"grid": Grid((0.0, 5.0, 4.0))}, r"grid\[2\]: must be above grid\[1\] = 5.0, got 4.0; sort"),
    ({"grid": Grid((0.0, math.nan))}, r"instance, grid\[1\]: must be a finite number, got nan"),
    ({"grid": Grid((-math.inf, 1.0))}, r"instance, grid\[0\]: must be a finite number, got -inf"),
    ({"grid": Grid((0.0, 2e15))}, rf"grid\[1\]: {TOO_LARGE}, got 2000000000000000.0; choose"),
    ({"grid": Grid((0.0, "5"))}, r"instance, grid\[1\]: must be a number, got '5'"),  # type: ignore[arg-type]
    ({"sites": (), "jobs": ()}, r"instance, sites: at least one site is needed"),
    ({"sites": (CLOUD, CLOUD)}, r"site 'cloud', name: must be unique, is used 2 times; rename"),
    ({**_site(name=""), "jobs": ()}, r"site '', name: must be a text that is not empty, got ''"),
    (
        {**_site(name="\ud800"), "jobs": ()},
        r"name: must be text that can be written as UTF-8, got '\\ud800'; drop",
    ),
    (_site(kind="fog"), r"site 'cloud', kind: must be 'cloud' or 'edge', got 'fog'"),
    (_site(gpus_per_node=0), r"site 'cloud', gpus_per_node: must be above 0, got 0"),
    (_site(gpus_per_node=1.5), r"site 'cloud', gpus_per_node: must be a whole number, got 1.5"),
    (_site(memory_gib=-1.0), r"site 'cloud', memory_gib: must be at least 0, got -1.0"),
    (_site(price=-0.5), r"site 'cloud', price: must be at least 0, got -0.5"),
    (_site(capacity=()), r"site 'cloud', capacity: needs at least one step \[time, units\]"),
    (_site(capacity=((1.0, 4),)), r"capacity\[0\]\[0\]: must be at or before now = 0.0, got 1.0"),
    (_site(capacity=((0.0, 4), (0.0, 3))), r"capacity\[1\]\[0\]: must be above the step before"),
    (_site(capacity=((0.0, 4), (-1.0, 3))), r"above the step before it, 0.0, got -1.0; sort the"),
    (_site(capacity=((0.0, -1),)), r"capacity\[0\]\[1\]: must be at least 0, got -1"),
    (_site(capacity=((0.0, 1.5),)), r"capacity\[0\]\[1\]: must be a whole number, got 1.5"),
    (_site(capacity=((math.nan, 1),)), r"capacity\[0\]\[0\]: must be a finite number, got nan"),
    (_site(capacity=((0.0, True),)), r"capacity\[0\]\[1\]: must be a number, got True"),
    ({"jobs": (JOB, JOB, JOB)}, r"job 'j', id: must be unique, is used 3 times; rename all but"),
    (_job(id=""), r"job '', id: must be a text that is not empty, got ''"),
    (_job(id=7), r"job 7, id: must be a text that is not empty, got 7"),
    (_job(deadline=math.nan), r"job 'j', deadline: must be a finite number, got nan"),
    (_job(deadline=-2e15), rf"job 'j', deadline: {TOO_LARGE}"),
    (_job(arrival=100.5), r"job 'j', arrival: must not be after the deadline 100.0, got 100.5;"),
    (_job(arrival=math.inf), r"job 'j', arrival: must be a finite number, got inf"),
    (_job(work=0.0), r"job 'j', work: must be above 0, got 0.0"),
    (_job(work=-1.0), r"job 'j', work: must be above 0, got -1.0"),
    (_job(work=1e308), rf"job 'j', work: {TOO_LARGE}, got 1e\+308; choose a larger unit"),
    (_job(work=HUGE), rf"job 'j', work: {TOO_LARGE}, got 1000000"),
    (_job(work=-(10**5000)), rf"job 'j', work: {TOO_LARGE}, got a number of thousands of digits"),
    (_job(work=True), r"job 'j', work: must be a number, got True"),
    (_job(work="50"), r"job 'j', work: must be a number, got '50'"),
    (_job(weight=-1.0), r"job 'j', weight: must be at least 0, got -1.0"),
    (_job(weight=math.nan), r"job 'j', weight: must be a finite number, got nan"),
    (_job(memory_gib=-0.1), r"job 'j', memory_gib: must be at least 0, got -0.1"),
    (_job(restart_s=-1.0), r"job 'j', restart_s: must be at least 0, got -1.0"),
    (_job(migration_s=-1.0), r"job 'j', migration_s: must be at least 0, got -1.0"),
    (_job(migration_s=math.inf), r"job 'j', migration_s: must be a finite number, got inf"),
    (_job(must_meet=True, deadline=None), r"job 'j', must_meet: needs a deadline, got deadline nu"),
    (_job(must_meet=1), r"job 'j', must_meet: must be true or false, got 1"),
    (_job(malleable=None), r"job 'j', malleable: must be true or false, got None"),
    (_job(modes=()), r"job 'j', modes: needs at least one mode"),
    (_job(modes=(MODE, MODE)), r"job 'j', modes\[1\]: each \(site, gpus\) may stand once only"),
    (
        _job(modes=(MODE, dataclasses.replace(MODE, gpus=1.0))),
        r"modes\[1\]: each \(site, gpus\) may stand once only, got \(cloud, 1.0\) again; drop one",
    ),
    (
        _job(modes=(dataclasses.replace(MODE, site="moon"),)),
        r"modes\[0\].site: must name a site of the instance, got 'moon'; sites are \['cloud', 'edg",
    ),
    (_job(modes=(dataclasses.replace(MODE, gpus=0),)), r"modes\[0\].gpus: must be above 0, got 0"),
    (
        _job(modes=(dataclasses.replace(MODE, gpus=1.5),)),
        r"job 'j', modes\[0\].gpus: must be a whole number, got 1.5",
    ),
    (
        _job(modes=(dataclasses.replace(MODE, gpus=True),)),
        r"job 'j', modes\[0\].gpus: must be a number, got True",
    ),
    (
        _job(modes=(dataclasses.replace(MODE, rate=0.0),)),
        r"job 'j', modes\[0\].rate: must be above 0, got 0.0",
    ),
    (
        _job(modes=(dataclasses.replace(MODE, rate=math.nan),)),
        r"job 'j', modes\[0\].rate: must be a finite number, got nan",
    ),
    (_job(last_site="moon"), r"job 'j', last_site: must name a site of the instance, got 'moon'"),
    (
        _job(running=_running(gpus=3)),
        r"running: must be one of the job's modes \(site and gpus\), got \(cloud, 3\); add that",
    ),
    (
        _job(running=_running(), last_site="edge"),
        r"last_site: must equal the site of running, 'cloud', got 'edge'; leave last_site out",
    ),
    (
        _job(running=_running(), arrival=10.0),
        r"running: a job that arrives after now = 0.0 cannot be running, got arrival 10.0; set",
    ),
    (
        _job(running=_running(loss_left_s=-1.0)),
        r"job 'j', running.loss_left_s: must be at least 0, got -1.0",
    ),
    ({"objective": Objective(mode="best")}, r"objective, mode: must be 'lexicographic' or 'weigh"),  # type: ignore[arg-type]
    ({"objective": Objective(weights=Weights())}, r"objective, weights: go with mode 'weighted'"),
    ({"objective": Objective(mode="weighted")}, r"weights: mode 'weighted' needs weights; give"),
    (_weighted(cost=-1.0), r"objective, weights.cost: must be at least 0, got -1.0"),
    (_weighted(met=math.nan), r"objective, weights.met: must be a finite number, got nan"),
]


@pytest.mark.parametrize(("change", "message"), CASES, ids=[case[1][:50] for case in CASES])
def test_broken_rule_is_refused(change: dict[str, Any], message: str) -> None:
    """One broken rule gives one fault, naming object, field, rule, value and way out."""
    parts: dict[str, Any] = {"grid": GRID, "sites": (CLOUD, EDGE), "jobs": (JOB,), **change}
    with pytest.raises(InstanceError, match=message) as caught:
        EpochProblem(**parts)
    assert len(caught.value.faults) == 1
    assert caught.value.exit_code == 5


LEGAL: list[dict[str, Any]] = [
    {"jobs": ()},
    _job(deadline=-5.0),
    _job(deadline=0.0),
    _job(deadline=None),
    _job(arrival=100.0),
    _job(arrival=-1e15, deadline=1e15),
    _job(weight=0.0),
    _job(running=_running(), arrival=0.0),
    _job(running=_running(), last_site="cloud"),
    _job(last_site="edge"),
    _job(memory_gib=1e15),
    _job(modes=(MODE, dataclasses.replace(MODE, gpus=2), dataclasses.replace(MODE, site="edge"))),
    _job(modes=(dataclasses.replace(MODE, gpus=2.0),)),
    _job(modes=(dataclasses.replace(MODE, gpus=10**6),)),
    _job(work=7),
    _site(capacity=((-100.0, 0), (-50.0, 3), (50.0, 1))),
    _site(capacity=((0.0, 0),)),
    _site(capacity=((0.0, 3.0),)),
    _site(price=0.0, memory_gib=0.0, gpus_per_node=8),
    _weighted(met=0.0),
]


@pytest.mark.parametrize("change", LEGAL, ids=str)
def test_legal_extremes_are_accepted(change: dict[str, Any]) -> None:
    """What the rules allow is not refused, at their edges either."""
    parts: dict[str, Any] = {"grid": GRID, "sites": (CLOUD, EDGE), "jobs": (JOB,), **change}
    assert EpochProblem(**parts).now == 0.0


def test_all_faults_are_reported_together() -> None:
    """Faults of grid, sites, jobs and objective come in one error, in that order."""
    with pytest.raises(InstanceError, match="8 faults") as caught:
        EpochProblem(
            grid=Grid((0.0, -1.0)),
            sites=(dataclasses.replace(CLOUD, price=-1.0), EDGE, EDGE),
            jobs=(
                dataclasses.replace(JOB, work=0.0, weight=-1.0, modes=()),
                dataclasses.replace(JOB, id="k", deadline=math.nan),
            ),
            objective=Objective(mode="weighted"),
        )
    text = str(caught.value)
    order = ["grid[1]", "price", "site 'edge'", "work", "weight", "modes", "job 'k'", "objective"]
    assert [text.index(word) for word in order] == sorted(text.index(word) for word in order)
    assert {fault.object for fault in caught.value.faults} == {
        "instance", "site 'cloud'", "site 'edge'", "job 'j'", "job 'k'", "objective",
    }  # fmt: skip


def test_many_faults_are_counted() -> None:
    """Beyond twenty the message counts the faults, and the error still holds all."""
    jobs = tuple(dataclasses.replace(JOB, id=f"j{i}", work=0.0) for i in range(50))
    with pytest.raises(InstanceError, match="50 faults") as caught:
        EpochProblem(grid=GRID, sites=(CLOUD,), jobs=jobs)
    assert "and 30 more" in str(caught.value)
    assert len(caught.value.faults) == 50


@given(problems())
def test_valid_instances_have_no_faults(problem: EpochProblem) -> None:
    """A completed instance is valid again."""
    assert faults_of(problem.grid, problem.sites, problem.jobs, problem.objective) == []


BREAKS: dict[str, Callable[[Job], Job]] = {
    "work": lambda job: dataclasses.replace(job, work=-job.work),
    "weight": lambda job: dataclasses.replace(job, weight=math.inf),
    "restart_s": lambda job: dataclasses.replace(job, restart_s=-0.5),
    "modes": lambda job: dataclasses.replace(job, modes=(*job.modes, job.modes[0])),
}


@given(problem=problems(), field=st.sampled_from(sorted(BREAKS)))
def test_one_bad_job_among_good_ones_is_named(problem: EpochProblem, field: str) -> None:
    """Whatever else an instance holds, the job and field at fault are named, and nothing else."""
    bad = BREAKS[field](problem.jobs[-1])
    with pytest.raises(InstanceError, match=re.escape(f"job '{bad.id}', {field}")) as caught:
        problem.replace(jobs=(*problem.jobs[:-1], bad))
    assert len(caught.value.faults) == 1


def test_shown_is_short_and_quick() -> None:
    """Values of any size and depth are shown by their beginning."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    wide = {f"key{index}": index for index in range(100_000)}
    for value in ("x" * 10**7, list(range(10**6)), wide, deep, 10**5000, {"a": deep}):
        assert len(shown(value)) <= 61
    assert shown(wide).startswith("{'key0': 0, 'key1': 1")
    assert shown("short") == "'short'"
    assert shown(rich_problem().jobs[0].id) == "'plain'"


def test_a_job_nearly_done_may_not_be_worth_more_than_one_done_in_time() -> None:
    """Weights of progress and leftover above that of met are refused, equal ones are not."""
    parts: dict[str, Any] = {"grid": GRID, "sites": (CLOUD, EDGE), "jobs": (JOB,)}
    with pytest.raises(InstanceError, match=r"weights.met: must be at least .* = 1.25"):
        EpochProblem(**parts, **_weighted(met=1.0, progress=0.75, leftover=0.5))
    assert EpochProblem(**parts, **_weighted(met=1.0, progress=0.5, leftover=0.5))
