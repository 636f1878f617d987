"""Level 1 of problems whose jobs have one run each: dual prices, construction, ruin and recreate."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.errors import SolverFaultError
from edgeflow_opt.formulations.moldable import plan_of_options
from edgeflow_opt.formulations.plans import empty_plan, plan_of, usage, walk
from edgeflow_opt.problem import LevelReport, Limit, SolveStatus
from edgeflow_opt.solvers.base import Draft
from edgeflow_opt.solvers.bounds import rounded_down
from edgeflow_opt.solvers.moldable.dual import ITERATIONS, minimise, option_table
from edgeflow_opt.solvers.moldable.kernels import construct, ruin_and_recreate, take

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import BoolArray, IntArray, ProblemArrays
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.moldable.dual import OptionDual, OptionTable

#: Moves of a deterministic solve: this many per job, and at least so many.
_MOVES_PER_JOB, _LEAST_MOVES = 200, 20_000
#: Moves without a gain, per job, after which the search ends where a limit is far.
_PATIENCE, _LEAST_PATIENCE = 4000, 200_000
#: Moves between two looks at the clock at first, and wall seconds of a chunk later.
_CHUNK, _CHUNK_S = 200, 0.02
#: Mean slack of a move, as a share of the mean weight.
_TEMPERATURE = 0.002
#: Share of the mean price that is added to all prices, so that units without a price are not wasted.
_LEAST_PRICE = 0.02


def solve_options(
    problem: EpochProblem, arrays: ProblemArrays, options: SolveOptions, control: SolveControl
) -> Draft:
    """Return the best plan found and the bound proven before `control` says stop.

    Parameters
    ----------
    problem, arrays
        An instance that :func:`edgeflow_opt.formulations.moldable.one_run_only` accepts.
    options
        ``params`` may have ``iterations`` of the dual and ``moves`` of the search.
    """
    statistics: dict[str, Any] = {}
    weights = arrays.weight[arrays.has_deadline]
    bound = float(weights.sum())
    # Turning the plan into a checked schedule takes time of its own, in plain Python.
    left = control.left_s
    reserve_s = min(0.2 * left, 0.02 + 1.2e-4 * arrays.num_jobs) if left < 1e9 else 0.0

    def stopped() -> bool:
        return control.interrupted or control.left_s <= reserve_s

    search: OptionSearch | None = None
    hit: Limit | None = None
    with control.interruptible():
        table = option_table(arrays)
        statistics["num_options"] = len(table.kept)
        iterations = int(options.params.get("iterations", ITERATIONS))
        dual = minimise(table, None, iterations, stopped)
        statistics |= {"hull_bound": dual.bound, "hull_evaluations": dual.evaluations}
        statistics["hull_s"] = control.elapsed_s
        if dual.bound < 0.0:
            # No schedule is worth less than nothing: jobs that must be met cannot all be.
            return Draft(status=SolveStatus.INFEASIBLE, statistics=statistics)
        bound = rounded_down(dual.bound, weights)
        control.report("price", bound=bound)
        search = OptionSearch(table, dual, options.seed)
        search.construct()
        statistics["constructed"] = search.value
        _start_elsewhere(problem, arrays, options, control, search)
        if search.complete:
            control.report("price", value=search.value)
        hit = _improve(search, bound, options, control, stopped)
    if search is None:
        # Interrupted before there was a plan.
        return _draft(arrays, empty_plan(arrays), bound, control.limit, statistics)
    statistics["moves"] = search.moves
    plan = search.plan(left_over=options.levels >= 2)
    limit = control.limit or (Limit.TIME if stopped() else hit)
    return _draft(arrays, plan, bound, limit, statistics)


class OptionSearch:
    """A choice of options under construction, with the prices that guide it.

    Parameters
    ----------
    table
        The options.
    dual
        Prices and costs.
    seed
        Of everything random, at least 0.
    """

    def __init__(self, table: OptionTable, dual: OptionDual, seed: int) -> None:
        arrays, data = table.arrays, table.data
        self._table = table
        self._cost = np.maximum(0.0, dual.option_costs)
        supply = float((arrays.capacity * arrays.lengths).sum())
        mean = float((arrays.capacity * dual.prices).sum()) / supply if supply > 0 else 0.0
        seconds = arrays.boundaries[data.stop] - arrays.boundaries[data.start]
        guide = self._cost + max(_LEAST_PRICE * mean, 1e-12) * data.units * seconds
        job = table.options.job[table.kept]
        self._order = np.lexsort((guide, job)).astype(np.int64)
        must = arrays.must_meet & arrays.has_deadline
        total = float(arrays.weight[arrays.has_deadline].sum())
        #: A job that must be met counts more than all others together.
        self.worth = arrays.weight + np.where(must, total + 1.0, 0.0)
        candidates = np.nonzero(np.diff(data.first) > 0)[0]
        ratio = dual.job_costs[candidates] / np.maximum(self.worth[candidates], 1e-300)
        self._jobs = candidates[np.argsort(ratio, kind="stable")].astype(np.int64)
        mean_weight = float(arrays.weight[candidates].mean()) if len(candidates) else 0.0
        self._temperature = _TEMPERATURE * mean_weight
        self._available = arrays.capacity.copy()
        self._held = np.full(arrays.num_jobs, -1, dtype=np.int64)
        # Any odd multiple of a large odd number is not 0 and spreads small seeds over all bits.
        self._random = np.array([(2 * seed + 1) * 0x9E3779B97F4A7C15 % 2**64], dtype=np.uint64)
        self.moves = 0
        """Moves made so far."""

    @property
    def met(self) -> BoolArray:
        """(n,) the jobs that hold an option."""
        held: BoolArray = self._held >= 0
        return held

    @property
    def value(self) -> float:
        """Weight of the jobs met."""
        return float(self._table.arrays.weight[self.met].sum())

    @property
    def complete(self) -> bool:
        """Whether every job that must be met is."""
        return bool(self.met[self._table.arrays.must_meet].all())

    def construct(self) -> None:
        """Give every job without an option its cheapest one that fits, the cheapest jobs first."""
        construct(self._table.data, self._jobs, self._order, self._available, self._held)

    def improve(self, moves: int) -> float:
        """Make `moves` moves and return the rise of the worth of the jobs met."""
        self.moves += moves
        if not len(self._jobs):
            return 0.0
        return float(
            ruin_and_recreate(
                self._table.data, self._jobs, self._order, self._cost, self.worth, moves,
                self._temperature, self._random, self._available, self._held,
            )
        )  # fmt: skip

    def adopt(self, plan: IntArray) -> None:
        """Begin from `plan`, a valid plan matrix, where it is worth more; then fill what is left.

        A job that it meets holds the option of the same mode and start, if that is kept, else any
        of that job within its run.
        """
        table, arrays = self._table, self._table.arrays
        done = walk(arrays, plan)
        if float(self.worth[done.met].sum()) <= float(self.worth[self.met].sum()) + 1e-9:
            return
        begin = np.argmax(plan >= 0, axis=1)
        job = table.options.job[table.kept]
        mode = plan[job, begin[job]]
        data = table.data
        within = done.met[job] & (data.site == arrays.mode_site[mode]) & (data.start >= begin[job])
        within &= (data.units <= arrays.mode_units[mode]) & (data.stop <= done.last_slot[job] + 1)
        held = np.full(arrays.num_jobs, -1, dtype=np.int64)
        chosen = np.nonzero(within)[0][::-1]
        held[job[chosen]] = chosen
        old = self._available.copy(), self._held.copy(), float(self.worth[self.met].sum())
        self._available[:], self._held[:] = arrays.capacity, held
        for option in held[held >= 0]:
            take(data, option, self._available, np.int64(-1))
        self.construct()
        if float(self.worth[self.met].sum()) <= old[2]:
            self._available[:], self._held[:] = old[0], old[1]

    def plan(self, left_over: bool) -> IntArray:
        """Return the plan matrix.

        Parameters
        ----------
        left_over
            Whether jobs that are not met, and best-effort jobs, get the units that are left.
        """
        table, arrays = self._table, self._table.arrays
        chosen = table.kept[self._held[self._held >= 0]]
        plan = plan_of_options(arrays, table.options, chosen)
        return _filled(arrays, plan) if left_over else plan


def _filled(arrays: ProblemArrays, plan: IntArray) -> IntArray:
    """Give what `plan` leaves over to jobs that it does not meet, late ones first."""
    from edgeflow_opt.solvers.price.pricing_data import pricing_data
    from edgeflow_opt.solvers.price.search_kernels import fill_left_over

    data = pricing_data(arrays)
    met = walk(arrays, plan).met
    rows = np.full_like(plan, -1)
    available = arrays.capacity - usage(arrays, plan)
    need = arrays.work.copy()
    order = np.argsort(-arrays.weight / arrays.work, kind="stable")
    fill_left_over(data.tables, order[arrays.has_deadline[order]], True, rows, available, met, need)
    fill_left_over(data.tables, order, False, rows, available, met, need)
    given = rows >= 0
    filled = plan.copy()
    filled[given] = data.mode_id[rows[given]]
    return filled


def _start_elsewhere(
    problem: EpochProblem,
    arrays: ProblemArrays,
    options: SolveOptions,
    control: SolveControl,
    search: OptionSearch,
) -> None:
    """Begin from the warm start, or from the greedy's plan, where it is worth more."""
    from edgeflow_opt.solvers.greedy import SOLVER

    if options.warm_start is not None:
        search.adopt(plan_of(problem, arrays, options.warm_start))
        return
    plain = dataclasses.replace(options, params={}, warm_start=None)
    draft = SOLVER.solve(problem, arrays, plain, control)
    if draft.plan is not None:
        search.adopt(draft.plan)


def _improve(
    search: OptionSearch, bound: float, options: SolveOptions, control: SolveControl, stopped: Any
) -> Limit | None:
    """Improve until the bound is reached, time is up, or nothing has been gained for long."""
    count = len(search.met)
    most = options.params.get("moves")
    if most is None and options.deterministic:
        most = max(_LEAST_MOVES, _MOVES_PER_JOB * count)
    patience = max(_LEAST_PATIENCE, _PATIENCE * count)
    idle, chunk = 0, _CHUNK
    while not (search.complete and search.value >= bound - 1e-6):
        if stopped():
            return None
        if idle >= patience or (most is not None and search.moves >= most):
            return Limit.ITERATIONS
        size = chunk if most is None else min(chunk, int(most) - search.moves)
        begin = control.elapsed_s
        if search.improve(size) > 0.0:
            idle = 0
            if search.complete:
                control.report("price", value=search.value)
        else:
            idle += size
        if not options.deterministic:
            taken = max(1e-6, control.elapsed_s - begin)
            chunk = max(_CHUNK, min(4 * chunk, int(size * _CHUNK_S / taken), 1_000_000))
    return None


def _draft(
    arrays: ProblemArrays,
    plan: IntArray,
    bound: float,
    limit: Limit | None,
    statistics: dict[str, Any],
) -> Draft:
    """Return `plan` with what is proven about it."""
    met = walk(arrays, plan).met
    value = float(arrays.weight[met].sum())
    if not met[arrays.must_meet].all():
        return Draft(
            status=SolveStatus.NO_SOLUTION, limit=limit, bound=bound, statistics=statistics
        )
    if value > bound + 1e-6 * max(1.0, bound):
        raise SolverFaultError(
            f"solver 'price' found a plan of value {value:g} above its bound {bound:g}"
        )
    optimal = value >= bound - 1e-6
    return Draft(
        status=SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE,
        limit=None if optimal else limit,
        plan=plan,
        bound=max(value, bound),
        levels=(LevelReport(level="met", value=value, bound=bound, optimal=optimal),),
        statistics=statistics,
    )
