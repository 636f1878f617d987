"""The dual over options: its bound is never below an optimum, and its fixing loses none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.formulations.moldable import build_moldable, one_run_only
from edgeflow_opt.problem import EpochProblem, Grid, Job, Mode, Site
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.moldable import minimise, option_table
from edgeflow_opt.workloads import generate_problem
from tests.effort import examples
from tests.formulations.helpers import maximum
from tests.oracle import optimum
from tests.strategies import problems


@settings(max_examples=examples(35))
@given(problem=problems(max_jobs=4, max_slots=4), iterations=st.sampled_from((1, 5, 60)))
def test_the_bound_is_never_below_the_optimum(problem: EpochProblem, iterations: int) -> None:
    """Whatever the prices, no rounding lets the bound fall below what brute force reaches."""
    rigid = problem.as_moldable()
    dual = minimise(option_table(arrays_of(rigid)), None, iterations)
    best = optimum(rigid)
    if best is None:
        return
    assert dual.bound >= best.value.met_weight


@settings(max_examples=examples(35))
@given(problem=problems(max_jobs=4, max_slots=4), scale=st.sampled_from((1e-9, 1.0, 1e9)))
def test_any_prices_prove_a_bound(problem: EpochProblem, scale: float) -> None:
    """Arbitrary prices, tiny and huge ones too, give a weaker bound but a true one."""
    rigid = problem.as_moldable()
    arrays = arrays_of(rigid)
    shape = (arrays.num_sites, arrays.num_slots)
    prices = scale * np.random.default_rng(7).random(shape)
    dual = minimise(option_table(arrays), prices, 1)
    best = optimum(rigid)
    if best is not None:
        assert dual.bound >= best.value.met_weight


@settings(max_examples=examples(35))
@given(problem=problems(max_jobs=4, max_slots=4), share=st.sampled_from((0.0, 0.5, 0.999)))
def test_what_is_fixed_is_never_missed(problem: EpochProblem, share: float) -> None:
    """Beyond any value below the optimum, the restricted model still holds the optimum."""
    rigid = problem.as_moldable()
    arrays = arrays_of(rigid)
    best = optimum(rigid)
    if best is None or best.value.met_weight == 0.0:
        return
    dual = minimise(option_table(arrays), None, 30)
    built = build_moldable(arrays)
    restricted, _, _ = dual.restrict(built, share * best.value.met_weight)
    found = maximum(restricted.with_objective(built.objectives["met"]))
    assert found == pytest.approx(best.value.met_weight, abs=1e-6)


def test_nothing_is_fixed_by_a_bound_that_the_prices_do_not_prove() -> None:
    """All jobs together are worth less than uneven prices prove: costs at these fix nothing then."""
    modes = (Mode(site="cloud", gpus=1, rate=1.0),)
    jobs = tuple(
        Job(id=name, deadline=20.0, work=5.0, modes=modes, malleable=False) for name in "ab"
    )
    cloud = Site(name="cloud", kind="cloud", capacity=((0.0, 1),))
    problem = EpochProblem(grid=Grid((0.0, 10.0, 20.0)), sites=(cloud,), jobs=jobs)
    arrays = arrays_of(problem)
    dual = minimise(option_table(arrays), np.array([[0.5, 0.0]]), 1)
    assert dual.bound == pytest.approx(2.0)
    built = build_moldable(arrays)
    restricted, _, _ = dual.restrict(built, 1.0)
    assert maximum(restricted.with_objective(built.objectives["met"])) == pytest.approx(2.0)


@pytest.mark.parametrize(("num_jobs", "num_slots", "seed"), [(30, 24, 1), (60, 24, 2)])
def test_the_bound_is_that_of_the_linear_program(num_jobs: int, num_slots: int, seed: int) -> None:
    """The dual comes within 0.2 % of the LP of the moldable model, and never below it."""
    arrays = arrays_of(generate_problem(num_jobs, num_slots, seed, moldable_share=1.0))
    built = build_moldable(arrays)
    lp = maximum(built.model.with_objective(built.objectives["met"]), relaxed=True)
    assert lp is not None
    dual = minimise(option_table(arrays))
    assert lp - 1e-6 <= dual.bound <= 1.002 * lp


@settings(max_examples=examples(25))
@given(problem=problems(max_jobs=3, max_slots=5))
def test_options_left_out_are_dominated(problem: EpochProblem) -> None:
    """Each option left out has a kept one of its job, within its slots and units, on its site."""
    arrays = arrays_of(problem.as_moldable())
    table = option_table(arrays)
    options = table.options
    site, units = arrays.mode_site[options.mode], arrays.mode_units[options.mode]
    worthy = arrays.must_meet | (arrays.weight > 0)
    for option in np.setdiff1d(np.nonzero(worthy[options.job])[0], table.kept):
        kept = table.kept
        better = (options.job[kept] == options.job[option]) & (site[kept] == site[option])
        better &= options.start[kept] >= options.start[option]
        better &= (options.stop[kept] <= options.stop[option]) & (units[kept] <= units[option])
        assert better.any()


@settings(max_examples=examples(25))
@given(problem=problems(max_jobs=3, max_slots=1))
def test_one_slot_is_one_run(problem: EpochProblem) -> None:
    """Every problem of one slot is one of options, malleable or not, with the same optimum."""
    arrays = arrays_of(problem)
    assert one_run_only(arrays)
    built = build_moldable(arrays)
    found = maximum(built.model.with_objective(built.objectives["met"]))
    best = optimum(problem)
    if best is None:
        assert found is None
    else:
        assert found == pytest.approx(best.value.met_weight, abs=1e-6)
