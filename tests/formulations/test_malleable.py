"""The malleable model: its optimum is the true one, and its points are the plans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from edgeflow_opt.formulations.malleable import build_malleable, reachable_jobs
from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.formulations.plans import allocations_of, plan_of, trim, usage, walk
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Running, Schedule, Site, evaluate
from edgeflow_opt.problem.arrays import arrays_of
from tests.effort import examples
from tests.formulations.helpers import (
    assert_satisfies,
    best_levels,
    maximum,
    undominated,
    without_rows,
)
from tests.oracle import optimum
from tests.strategies import problems, problems_with_schedules

CLOUD = Site(name="cloud", kind="cloud", capacity=((0.0, 2),))
EDGE = Site(name="edge", kind="edge", capacity=((0.0, 2),))


def _assert_equal_brute_force(problem: EpochProblem, levels: tuple[float, ...] | None) -> None:
    best = optimum(problem)
    if best is None:
        assert levels is None
        return
    assert levels == pytest.approx(best.value.key(), rel=3e-6, abs=3e-6)


@settings(max_examples=examples(60))
@given(problems(max_jobs=3, max_slots=4))
def test_the_optimum_of_all_levels_equals_brute_force(problem: EpochProblem) -> None:
    """Solved by scipy level by level, the rows alone give the optimum of the definitions."""
    _assert_equal_brute_force(problem, best_levels(arrays_of(problem)))


@settings(max_examples=examples(40))
@given(problems(max_jobs=2, max_slots=4, max_sites=1, best_effort=False, memory=False))
def test_dominated_modes_are_never_needed(problem: EpochProblem) -> None:
    """With dominance switched off the optimum of every level is the same, losses included."""
    arrays = arrays_of(problem)
    free = best_levels(undominated(arrays))
    kept = best_levels(arrays)
    assert (free is None) == (kept is None)
    if free is not None:
        assert kept == pytest.approx(free, rel=3e-6, abs=3e-6)


@pytest.mark.parametrize("levels", [("met",), LEVELS, ("met", "progress"), ("met", "cost")])
@settings(max_examples=examples(60))
@given(drawn=problems_with_schedules(max_jobs=3, max_slots=5))
def test_every_valid_plan_is_a_point_of_the_model(
    levels: tuple[str, ...], drawn: tuple[EpochProblem, Schedule]
) -> None:
    """encode() gives a point that obeys all rows, is worth the plan, and decodes to it."""
    problem, schedule = drawn
    arrays = undominated(arrays_of(problem))
    plan = plan_of(problem, arrays, schedule)
    built = build_malleable(arrays, levels)  # type: ignore[arg-type]
    x = built.encode(plan)
    assert_satisfies(built.model, x)
    assert schedule.objective is not None
    truth = dict(zip(LEVELS, schedule.objective.key(), strict=True))
    met_only = levels == ("met",)
    for level in levels:
        value = float(built.objectives[level] @ x)  # type: ignore[index]
        assert value == pytest.approx(truth[level], rel=1e-9, abs=1e-9)  # type: ignore[index]
    expected = plan
    if met_only:
        # Level 1 holds met jobs only, and no slot that begins after the deadline.
        met = walk(arrays, plan).met
        before = np.arange(arrays.num_slots)[None, :] < arrays.end_slot[:, None]
        expected = np.where(met[:, None] & before, plan, -1)
    assert np.array_equal(built.decode(x), expected)


@settings(max_examples=examples(40))
@given(problems_with_schedules(max_jobs=3, max_slots=4))
def test_a_plan_without_its_dominated_modes_obeys_the_rows_of_paths(
    drawn: tuple[EpochProblem, Schedule],
) -> None:
    """Where a plan uses kept modes only, the reduced model holds it too."""
    problem, schedule = drawn
    arrays = arrays_of(problem)
    plan = plan_of(problem, arrays, schedule)
    dropped = (plan >= 0) & ~arrays.mode_kept[np.maximum(plan, 0)]
    plan = np.where(dropped.any(axis=1)[:, None], -1, plan)
    built = build_malleable(arrays, LEVELS)
    x = built.encode(plan)
    assert_satisfies(built.model, x)
    assert np.array_equal(built.decode(x), plan)


@settings(max_examples=examples(40))
@given(problems(max_jobs=4, max_slots=4, must_meet=False))
def test_the_tight_link_lies_between_the_optimum_and_the_loose_bound(problem: EpochProblem) -> None:
    """Optimum <= LP bound with x <= z <= LP bound with x <= 1 <= weight of the reachable jobs."""
    arrays = arrays_of(problem)
    tight, loose = build_malleable(arrays), build_malleable(arrays, ("met", "cost"))
    low = maximum(tight.model.with_objective(tight.objectives["met"]), relaxed=True)
    high = maximum(loose.model.with_objective(loose.objectives["met"]), relaxed=True)
    best = optimum(problem)
    assert best is not None
    assert low is not None
    assert high is not None
    counted = arrays.has_deadline & reachable_jobs(arrays)
    assert best.value.met_weight <= low + 1e-6
    assert low <= high + 1e-6
    assert high <= float(arrays.weight[counted].sum()) + 1e-6


def test_the_tight_link_moves_the_bound() -> None:
    """Three jobs that each need one GPU in all of two slots: bound 1 against 1.5 on one GPU."""
    site = Site(name="cloud", kind="cloud", capacity=((0.0, 1),))
    fast = Mode(site="cloud", gpus=1, rate=1.0)
    jobs = tuple(Job(id=f"j{k}", deadline=10.0, work=10.0, modes=(fast,)) for k in range(3))
    grid = Grid((0.0, 10.0, 20.0))
    jobs += (Job(id="long", deadline=20.0, work=15.0, modes=(fast,)),)
    arrays = arrays_of(EpochProblem(grid=grid, sites=(site,), jobs=jobs))
    tight, loose = build_malleable(arrays), build_malleable(arrays, ("met", "cost"))
    low = maximum(tight.model.with_objective(tight.objectives["met"]), relaxed=True)
    high = maximum(loose.model.with_objective(loose.objectives["met"]), relaxed=True)
    assert low is not None
    assert high is not None
    assert low < high - 0.1


def _long_migration(work: float) -> EpochProblem:
    """One job that comes from the edge with a loss of one slot and a half, then cheap restarts."""
    modes = (
        Mode(site="cloud", gpus=1, rate=1.0),
        Mode(site="edge", gpus=1, rate=0.001),
    )
    job = Job(
        id="j", deadline=300.0, work=work, modes=modes, last_site="edge",
        migration_s=150.0, restart_s=5.0,
    )  # fmt: skip
    return EpochProblem(grid=Grid((0.0, 100.0, 200.0, 300.0)), sites=(CLOUD, EDGE), jobs=(job,))


@pytest.mark.parametrize("levels", [("met",), LEVELS])
def test_no_abutting_rows_forbid_a_cheaper_loss(levels: tuple[str, ...]) -> None:
    """Ending a run in its long loss to begin it again at once is one run: the rows say so.

    By the rule 300 s less 150 s can be credited; with the rows void the model would end the run
    after 100 s, pay 5 s, and credit 195 s.
    """
    problem = _long_migration(work=180.0)
    arrays = arrays_of(problem)
    best = optimum(problem)
    assert best is not None
    assert best.value.met_weight == 0.0
    built = build_malleable(arrays, levels)  # type: ignore[arg-type]
    model = built.model.with_objective(built.objectives["met"])
    assert maximum(model) == pytest.approx(0.0)
    assert maximum(without_rows(model, "no_abutting")) == pytest.approx(1.0)


def test_a_job_that_fits_its_long_loss_exactly_is_met() -> None:
    """150 s of credit after a loss of 150 s within 300 s: met, and one iteration more is not."""
    for work, met in ((150.0, 1.0), (151.0, 0.0)):
        arrays = arrays_of(_long_migration(work))
        built = build_malleable(arrays)
        assert maximum(built.model.with_objective(built.objectives["met"])) == pytest.approx(met)


def test_what_is_left_of_the_running_loss_is_paid_where_the_run_goes_on() -> None:
    """The run that goes on pays loss_left_s, other runs of the same job restart or migrate."""
    modes = (Mode(site="cloud", gpus=1, rate=1.0), Mode(site="cloud", gpus=2, rate=1.0))
    job = Job(
        id="j", deadline=100.0, work=80.0, modes=modes, restart_s=10.0,
        running=Running(site="cloud", gpus=1, loss_left_s=30.0),
    )  # fmt: skip
    arrays = arrays_of(EpochProblem(grid=Grid((0.0, 50.0, 100.0)), sites=(CLOUD,), jobs=(job,)))
    built = build_malleable(arrays, LEVELS)
    stays, changes = np.array([[0, 0]]), np.array([[1, 1]])
    assert built.objectives["met"] @ built.encode(stays) == 0.0
    assert built.objectives["met"] @ built.encode(changes) == 1.0
    assert built.objectives["reconfigurations"] @ built.encode(changes) == -1.0
    assert maximum(built.model.with_objective(built.objectives["met"])) == pytest.approx(1.0)


@settings(max_examples=examples(60))
@given(problems(max_jobs=3, max_slots=4, losses=False, weights=False, must_meet=False))
def test_jobs_that_cannot_be_met_alone_are_told(problem: EpochProblem) -> None:
    """reachable_jobs() equals brute force on each malleable job alone, where nothing is lost."""
    reachable = reachable_jobs(arrays_of(problem))
    for index, job in enumerate(problem.jobs):
        if job.deadline is None:
            assert reachable[index]
            continue
        best = optimum(problem.replace(jobs=(job,)))
        can = best is not None and best.schedule.met == 1
        # A moldable job may need several modes, which the test does not look at.
        assert reachable[index] == can if job.malleable else reachable[index] or not can


@pytest.mark.parametrize("rate", [0.1, 0.3, 1.0, 2.6])
def test_a_job_that_needs_all_its_time_is_within_reach(rate: float) -> None:
    """Work that is done at the deadline and not before is no reason to give a job up."""
    jobs = tuple(
        Job(id=name, deadline=0.7, work=share * 0.7 * rate / (1 - 1e-6),
            modes=(Mode(site="cloud", gpus=1, rate=rate),))
        for name, share in (("all", 1.0), ("more", 1.0 + 1e-7))
    )  # fmt: skip
    grid = Grid(tuple(k / 10 for k in range(8)))
    arrays = arrays_of(EpochProblem(grid=grid, sites=(CLOUD,), jobs=jobs))
    assert reachable_jobs(arrays).tolist() == [True, False]


@settings(max_examples=examples(40))
@given(problems(max_jobs=3, max_slots=4, must_meet=False))
def test_a_solution_decodes_to_a_plan_of_its_worth(problem: EpochProblem) -> None:
    """The optimum of level 1 by scipy decodes to a plan within capacity that meets that weight."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    arrays = arrays_of(problem)
    built = build_malleable(arrays)
    model = built.model
    if not model.num_columns:
        return
    matrix = csr_array(
        (model.values, model.indices, model.starts), shape=(model.num_rows, model.num_columns)
    )
    answer = milp(
        -built.objectives["met"],
        constraints=[LinearConstraint(matrix, model.row_lower, model.row_upper)],
        bounds=Bounds(model.col_lower, model.col_upper),
        integrality=model.integer.astype(np.int64),
    )
    plan = trim(arrays, built.decode(answer.x))
    assert (usage(arrays, plan) <= arrays.capacity).all()
    value, _ = evaluate(problem, allocations_of(problem, arrays, plan))
    assert value.met_weight >= -answer.fun - 1e-6
