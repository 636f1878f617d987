"""The epoch problem: what it fills in, its copies, its pickles and its few sums."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given

from edgeflow_opt.errors import InstanceError
from edgeflow_opt.problem import (
    EpochProblem,
    Grid,
    Job,
    Mode,
    Running,
    Site,
)
from tests.problem.examples import rich_problem
from tests.strategies import problems


def test_pickle_leaves_out_the_cached_indices() -> None:
    """Indices are computed again after unpickling instead of being stored."""
    problem = rich_problem()
    size = len(pickle.dumps(problem))
    assert problem.job_index["effort"] == 3
    assert problem.site_index == {"cloud": 0, "edge": 1}
    assert len(pickle.dumps(problem)) == size
    assert pickle.loads(pickle.dumps(problem)).job_index == problem.job_index


@given(problems())
def test_random_instances_pickle(problem: EpochProblem) -> None:
    """Every instance survives pickling."""
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_open_fields_are_filled_in() -> None:
    """The arrival is min(now, deadline), the last site that of the running mode."""
    mode = Mode(site="s", gpus=1, rate=1.0)

    def job(name: str, deadline: float | None, **fields: Any) -> Job:
        return Job(id=name, deadline=deadline, work=1.0, modes=(mode,), **fields)

    problem = EpochProblem(
        grid=Grid((10.0, 20.0)),
        sites=(Site(name="s", kind="cloud", capacity=((0.0, 1),)),),
        jobs=(
            job("later", 15.0),
            job("passed", 5.0),
            job("effort", None),
            job("given", 15.0, arrival=12.0),
            job("runs", 15.0, running=Running(site="s", gpus=1)),
        ),
    )
    assert [j.arrival for j in problem.jobs] == [10.0, 5.0, 10.0, 12.0, 10.0]
    assert [j.last_site for j in problem.jobs] == [None, None, None, None, "s"]


def test_replace_validates() -> None:
    """A copy with changes is checked like any other instance."""
    problem = rich_problem()
    assert problem.replace(jobs=()).jobs == ()
    with pytest.raises(InstanceError, match="at least one site is needed"):
        problem.replace(sites=(), jobs=())


def test_as_moldable_changes_that_only() -> None:
    """The moldable copy differs in the flag of the jobs alone."""
    problem = rich_problem()
    moldable = problem.as_moldable()
    assert not any(job.malleable for job in moldable.jobs)
    back = tuple(
        dataclasses.replace(job, malleable=old.malleable)
        for job, old in zip(moldable.jobs, problem.jobs, strict=True)
    )
    assert moldable.replace(jobs=back) == problem


def test_str_names_the_sizes() -> None:
    """The summary tells jobs, slots, kinds of jobs and units now."""
    text = str(rich_problem())
    assert "6 jobs x 3 slots" in text
    assert "5 with deadline, 1 best effort" in text
    assert "cloud site 'cloud': 4 units now" in text


def test_total_weight_leaves_out_best_effort() -> None:
    """The trivial bound counts jobs with a deadline only."""
    assert rich_problem().total_weight == 6.0
