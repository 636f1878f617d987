"""The flat view of an instance agrees with the objects it is made of."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Running, Site
from edgeflow_opt.problem.arrays import ProblemArrays, arrays_of
from tests.effort import examples
from tests.oracle import optimum
from tests.problem.examples import rich_problem
from tests.strategies import problems


@given(problems())
def test_every_column_is_what_the_objects_say(problem: EpochProblem) -> None:
    """Each entry of each array equals the field or the definition that it stands for."""
    arrays = arrays_of(problem)
    slots = list(itertools.pairwise(problem.grid.boundaries))
    assert arrays.num_jobs == len(problem.jobs)
    assert arrays.num_slots == len(slots)
    assert arrays.num_sites == len(problem.sites)
    assert arrays.lengths.tolist() == [end - start for start, end in slots]
    assert arrays.capacity.tolist() == [
        [site.least_capacity(*slot) for slot in slots] for site in problem.sites
    ]
    assert arrays.is_cloud.tolist() == [site.kind == "cloud" for site in problem.sites]
    names = [site.name for site in problem.sites]
    useful = arrays.useful_lengths()
    m = 0
    for j, job in enumerate(problem.jobs):
        deadline = math.inf if job.deadline is None else job.deadline
        arrival = job.arrival
        assert arrival is not None
        assert arrays.weight[j] == job.weight
        assert (arrays.work[j], arrays.required[j]) == (job.work, job.required)
        assert arrays.deadline[j] == deadline
        assert arrays.has_deadline[j] == (job.deadline is not None)
        assert arrays.first_slot[j] == next(
            (s for s, (start, _) in enumerate(slots) if start >= arrival), len(slots)
        )
        assert arrays.end_slot[j] == next(
            (s for s, (start, _) in enumerate(slots) if start >= deadline), len(slots)
        )
        assert useful[j].tolist() == [max(0.0, min(end, deadline) - start) for start, end in slots]
        assert (arrays.restart_s[j], arrays.migration_s[j]) == (job.restart_s, job.migration_s)
        assert (arrays.must_meet[j], arrays.malleable[j]) == (job.must_meet, job.malleable)
        last = -1 if job.last_site is None else names.index(job.last_site)
        assert arrays.last_site[j] == last
        left = 0.0 if job.running is None else job.running.loss_left_s
        assert arrays.loss_left_s[j] == left
        assert arrays.has_losses[j] == (max(job.restart_s, job.migration_s, left) > 0)
        assert arrays.mode_start[j] == m
        running = -1
        for mode in job.modes:
            site = problem.sites[names.index(mode.site)]
            assert arrays.mode_job[m] == j
            assert names[arrays.mode_site[m]] == mode.site
            assert (arrays.mode_gpus[m], arrays.mode_rate[m]) == (mode.gpus, mode.rate)
            assert arrays.mode_units[m] == site.units(mode)
            assert arrays.mode_cost[m] == mode.gpus * site.price
            most = max(site.least_capacity(*slot) for slot in slots)
            assert arrays.mode_usable[m] == (site.hosts(job) and site.units(mode) <= most)
            assert not arrays.mode_kept[m] or arrays.mode_usable[m]
            if job.running is not None and (mode.site, mode.gpus) == (
                job.running.site,
                job.running.gpus,
            ):
                running = m
            m += 1
        assert arrays.running_mode[j] == running
        if running >= 0:
            assert arrays.mode_kept[running] == arrays.mode_usable[running]
    assert arrays.mode_start[-1] == arrays.num_modes == m


def test_no_jobs() -> None:
    """An instance without jobs has arrays of length 0 of the same kinds."""
    empty = arrays_of(rich_problem().replace(jobs=()))
    full = arrays_of(rich_problem())
    assert (empty.num_jobs, empty.num_modes) == (0, 0)
    assert empty.mode_start.tolist() == [0]
    assert empty.rows.num_rows == full.rows.num_rows == 0
    for field in dataclasses.fields(ProblemArrays):
        if field.name == "rows":
            continue
        assert getattr(empty, field.name).dtype == getattr(full, field.name).dtype
        assert getattr(empty, field.name).ndim == getattr(full, field.name).ndim


@pytest.mark.parametrize(
    ("steps", "least"),
    [
        (((0.0, 5),), [5, 5, 5]),
        (((-9.0, 9), (0.0, 5)), [5, 5, 5]),
        (((-9.0, 9), (-1.0, 5)), [5, 5, 5]),
        (((0.0, 5), (10.0, 3)), [5, 3, 3]),
        (((0.0, 5), (15.0, 3)), [5, 3, 3]),
        (((0.0, 5), (11.0, 3), (12.0, 4)), [5, 3, 4]),
        (((0.0, 5), (12.0, 1), (13.0, 2), (25.0, 7)), [5, 1, 2]),
        (((0.0, 0), (29.0, 7)), [0, 0, 0]),
        (((0.0, 5), (30.0, 0)), [5, 5, 5]),
    ],
)
def test_capacity_of_a_slot_is_the_least_in_it(
    steps: tuple[tuple[float, int], ...], least: list[int]
) -> None:
    """A step at a boundary binds the slot after it only, one inside binds its slot."""
    site = Site(name="s", kind="cloud", capacity=steps)
    problem = EpochProblem(grid=Grid.uniform(0.0, 10.0, 3), sites=(site,), jobs=())
    assert arrays_of(problem).capacity.tolist() == [least]


def _kept(*modes: Mode, kind: str = "cloud", **fields: object) -> list[bool]:
    """Return which of the modes of a job are kept, on two sites of 4 units and slots of 100 s."""
    sites = (
        Site(name="a", kind=kind, capacity=((0.0, 4),)),  # type: ignore[arg-type]
        Site(name="b", kind="cloud", capacity=((0.0, 4),)),
    )
    job = Job(id="j", deadline=200.0, work=10.0, modes=modes, **fields)  # type: ignore[arg-type]
    problem = EpochProblem(grid=Grid.uniform(0.0, 100.0, 2), sites=sites, jobs=(job,))
    kept: list[bool] = arrays_of(problem).mode_kept.tolist()
    return kept


def _mode(site: str, gpus: int, rate: float) -> Mode:
    return Mode(site=site, gpus=gpus, rate=rate)


def test_a_mode_that_is_no_faster_for_more_is_dropped() -> None:
    """More GPUs without more speed are never needed, in whatever order they are given."""
    assert _kept(_mode("a", 1, 2.0), _mode("a", 2, 2.0)) == [True, False]
    assert _kept(_mode("a", 2, 1.5), _mode("a", 1, 2.0)) == [False, True]
    assert _kept(_mode("a", 1, 2.0), _mode("a", 2, 2.1)) == [True, True]


def test_dominance_is_within_a_site() -> None:
    """A better mode elsewhere does not drop one, since capacities and migrations differ."""
    assert _kept(_mode("a", 2, 1.0), _mode("b", 1, 5.0)) == [True, True]


def test_on_an_edge_site_fewer_gpus_are_still_cheaper() -> None:
    """Edge modes take one unit each, so the slower stays for its lower cost alone."""
    assert _kept(_mode("a", 1, 1.0), _mode("a", 2, 2.0), kind="edge") == [True, True]
    assert _kept(_mode("a", 2, 1.0), _mode("a", 1, 1.0), kind="edge") == [False, True]


def test_the_running_mode_is_never_dropped() -> None:
    """Leaving the running mode costs a reconfiguration, so it stays."""
    running = Running(site="a", gpus=2)
    assert _kept(_mode("a", 1, 2.0), _mode("a", 2, 1.0), running=running) == [True, True]


@pytest.mark.parametrize(
    ("fields", "dropped"),
    [
        ({"migration_s": 100.0, "restart_s": 0.0}, True),
        ({"migration_s": 101.0, "restart_s": 0.0}, False),
        ({"migration_s": 110.0, "restart_s": 10.0}, True),
        ({"migration_s": 101.0, "restart_s": 0.0, "malleable": False}, True),
        ({"running": Running(site="a", gpus=1, loss_left_s=11.0), "restart_s": 10.0}, False),
        ({"running": Running(site="a", gpus=1, loss_left_s=10.0), "restart_s": 10.0}, True),
    ],
    ids=str,
)
def test_nothing_is_dropped_where_joining_runs_can_hurt(
    fields: dict[str, object], dropped: bool
) -> None:
    """With a loss longer than a slot and a restart, a worse mode can cut the loss short."""
    assert _kept(_mode("a", 1, 2.0), _mode("a", 2, 2.0), **fields) == [True, not dropped]


def test_a_long_migration_makes_a_worse_mode_worth_using() -> None:
    """A slot in the worse mode ends the migration early: without that mode the job is late."""
    sites = tuple(Site(name=name, kind="cloud", capacity=((0.0, 4),)) for name in ("a", "b"))
    modes = (_mode("a", 1, 1.0), _mode("a", 2, 1.0))
    job = Job(
        id="j", deadline=300.0, work=200.0, modes=modes, last_site="b", migration_s=250.0,
    )  # fmt: skip
    problem = EpochProblem(grid=Grid.uniform(0.0, 100.0, 3), sites=sites, jobs=(job,))
    with_both = optimum(problem)
    one_only = optimum(problem.replace(jobs=(dataclasses.replace(job, modes=modes[:1]),)))
    assert with_both is not None
    assert one_only is not None
    assert with_both.value.met_weight == 1.0
    assert one_only.value.met_weight == 0.0
    assert arrays_of(problem).mode_kept.all()


@settings(max_examples=examples(100))
@given(problems(max_jobs=2, max_slots=4))
def test_dropped_modes_are_never_needed(problem: EpochProblem) -> None:
    """The optimum is the same, level by level, without the modes that are dropped."""
    arrays = arrays_of(problem)
    if arrays.mode_kept.all():
        return
    jobs = []
    for j, job in enumerate(problem.jobs):
        keep = arrays.mode_kept[arrays.mode_start[j] : arrays.mode_start[j + 1]].copy()
        if arrays.running_mode[j] >= 0:
            keep[arrays.running_mode[j] - arrays.mode_start[j]] = True
        if keep.any():
            modes = tuple(mode for mode, kept in zip(job.modes, keep, strict=True) if kept)
            jobs.append(dataclasses.replace(job, modes=modes))
        else:
            jobs.append(job)
    reduced = optimum(problem.replace(jobs=tuple(jobs)))
    full = optimum(problem)
    assert (reduced is None) is (full is None)
    if full is not None and reduced is not None:
        np.testing.assert_allclose(reduced.value.key(), full.value.key(), rtol=1e-9, atol=1e-9)
