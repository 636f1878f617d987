"""The solver `price`: bound and schedule from capacity prices, side by side."""

from __future__ import annotations

import dataclasses
import threading
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import SolverFaultError
from edgeflow_opt.formulations.moldable import one_run_only
from edgeflow_opt.formulations.plans import empty_plan, plan_of, trim, walk
from edgeflow_opt.problem import LevelReport, Limit, SolveStatus
from edgeflow_opt.solvers.base import Capabilities, Draft, check_counts, take_flag
from edgeflow_opt.solvers.bounds import rounded_down
from edgeflow_opt.solvers.kernels import GREEDY, MOLDABLE, PRICE
from edgeflow_opt.solvers.price.dual import COLD_ITERATIONS, DualResult, HullDual, minimise
from edgeflow_opt.solvers.price.exact_dual import WARM_REACH, ExactDual
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.solvers.price.search import PriceSearch

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl

#: Evaluations of the exact dual at most; it is finished before.
EXACT_ITERATIONS = 100
#: Evaluations of the hull dual from prices that are given.
WARM_ITERATIONS = 8
#: Given prices whose hull bound these improve by more than this share are out of date.
_STALE = 0.003
#: Moves of a deterministic solve: this many per job, and at least so many.
_MOVES_PER_JOB, _LEAST_MOVES = 40, 4000
#: Share of the time limit that the hull dual may take.
_HULL_SHARE = 0.2
#: Wall seconds of one chunk of moves between two looks at the clock.
_CHUNK_S = 0.03
#: Moves before jobs are put in that do not fit, per job, or the share of the time that they may take,
#: and moves after an attempt at that which failed: what it shifts must be packed well.
_MOVES_BEFORE_PER_JOB, _MOVES_BEFORE_SHARE, _MOVES_AFTER = 8, 0.4, 500
#: Most moves of one chunk: where a move costs nothing, chunks would grow without end.
_MOST_MOVES = 1_000_000


class PriceSolver:
    """Solver of level 1 by capacity prices: a proven bound, and a schedule near it.

    A weighted sum is solved in the same way (:mod:`edgeflow_opt.solvers.weighted`).
    """

    name = "price"
    capabilities = Capabilities(
        summary="capacity prices: proven bound and near-optimal plans at thousands of jobs",
        exact=True,
        features=frozenset({"losses", "must_meet", "moldable", "best_effort", "weighted"}),
        requires=("numba",),
        kernels=(GREEDY, PRICE),
        params={
            "iterations": f"evaluations of the hull dual (default {COLD_ITERATIONS}; {WARM_ITERATIONS} with prices)",
            "exact_iterations": f"evaluations of the exact dual (default {EXACT_ITERATIONS})",
            "ends_with_bound": "true: end as soon as the bound is done (default false)",
            "moves": "moves of the search (default: until the limit; deterministic: by size)",
        },
    )

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """Return the best plan found and the bound proven before `control` says stop."""
        counts = self.capabilities.params.keys() - {"ends_with_bound"}
        check_counts(options, *sorted(counts), solver=self.name)
        if problem.objective.weights is not None:
            from edgeflow_opt.solvers.weighted.solver import solve_weighted

            return solve_weighted(problem, arrays, options, control)
        if one_run_only(arrays):
            # Options may be enumerated: their linear program is stronger than any price of work.
            from edgeflow_opt.solvers.moldable import solve_options

            control.load_kernels(MOLDABLE)
            return solve_options(problem, arrays, options, control)
        return _Solve(problem, arrays, options, control).run()


class _Solve:
    """One solve: its state, and the steps in their order."""

    def __init__(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> None:
        self.problem = problem
        self.arrays = arrays
        self.options = options
        self.control = control
        self.data = pricing_data(arrays)
        self.workers = 1 if options.deterministic else options.workers
        self.bound = float(arrays.weight[arrays.has_deadline].sum())
        self.statistics: dict[str, Any] = {}
        self.fallback: IntArray | None = None
        self.hit: Limit | None = None
        self.infeasible = False
        self._done = False
        self._fault: BaseException | None = None
        self._next_report_s = 0.0
        self._dual: DualResult | None = None
        self._reach: float | None = None
        # With both from an earlier solve, building a plan anew is of no use.
        self._warm = options.warm_start is not None and options.prices is not None
        self._begun_s = control.elapsed_s
        # Turning the plan into a checked schedule takes time of its own, in plain Python.
        left = control.left_s
        self._reserve_s = min(0.2 * left, 0.05 + 1.2e-4 * arrays.num_jobs) if left < 1e9 else 0.0

    def run(self) -> Draft:
        """Prove, construct, improve; on Ctrl-C return what there is."""
        search: PriceSearch | None = None
        with self.control.interruptible():
            dual = HullDual(self.data, self.workers)
            found = self._first_prices(dual)
            self.statistics["hull_bound"] = found.bound
            self.statistics["hull_evaluations"] = found.evaluations
            self.statistics["hull_s"] = self.control.elapsed_s
            self._prove(found)
            self._dual = found
            if not self.infeasible:
                search = PriceSearch(self.data, found, self.options.seed)
                if not self._warm:
                    search.construct()
                self._report_value(search)
                self.statistics["constructed"] = self._value_of(search)
                self._start_elsewhere(search)
                found, search = self._improve(dual, found, search)
                self.statistics["bound"] = found.bound
                self._dual = found
        if self.infeasible:
            return Draft(status=SolveStatus.INFEASIBLE, statistics=self.statistics)
        if search is None:
            plan = empty_plan(self.arrays)
        else:
            self.statistics["moves"] = search.moves
            plan = search.filled_plan(self.arrays, self.options.levels >= 2)
        return self._draft(plan)

    def _first_prices(self, dual: HullDual) -> DualResult:
        """Return the prices of the hull dual, or those that are given, if these are still good."""
        given = self.options.prices
        if given is None:
            iterations = int(self.options.params.get("iterations", COLD_ITERATIONS))
            return minimise(dual, None, iterations, self._past_hull_time)
        prices = given.on_slots(self.problem)
        iterations = int(self.options.params.get("iterations", WARM_ITERATIONS))
        found = minimise(dual, prices, 1)
        moved = minimise(dual, prices, iterations, self._past_hull_time)
        # Prices of an exact dual are better than they look to the hull.
        if moved.bound < found.bound - _STALE * abs(found.bound):
            found = moved
        else:
            self._reach = WARM_REACH
        return found

    def _past_hull_time(self) -> bool:
        """Whether the hull dual has had its share of the time: later steps bring little."""
        if self._stopped() or self.options.deterministic:
            return self._stopped()
        # On the clock of this solver: a caller may have spent time before.
        left, spent = self.control.left_s, self.control.elapsed_s - self._begun_s
        return spent > _HULL_SHARE * (spent + left)

    def _stopped(self) -> bool:
        """Whether to come to an end, the time for the checks kept back."""
        return self.infeasible or self.control.interrupted or self.control.left_s <= self._reserve_s

    def _prove(self, found: DualResult) -> None:
        """Take note of a proven bound, rounded down to what can be reached at all."""
        if found.bound < 0.0:
            # No schedule is worth less than nothing: jobs that must be met cannot all be.
            self.infeasible = True
            return
        weights = self.arrays.weight[self.arrays.has_deadline]
        bound = rounded_down(found.bound, weights)
        if bound < self.bound:
            self.bound = bound
            self.control.report("price", bound=bound)

    def _value_of(self, search: PriceSearch) -> float:
        return float(self.data.weight[search.met].sum())

    def _complete(self, search: PriceSearch) -> bool:
        """Whether every job that must be met is."""
        must = self.data.must_meet & self.data.priced
        return bool(search.met[must].all())

    def _report_value(self, search: PriceSearch) -> None:
        """Report the value of the plan, once the run-and-loss rule has confirmed it."""
        if not self._complete(search):
            return
        value = self._value_of(search)
        begin = self.control.elapsed_s
        known = self.control.value
        if begin < self._next_report_s or (known is not None and value <= known + 1e-9):
            return
        met = walk(self.arrays, search.filled_plan(self.arrays, left_over=False)).met
        self.control.report("price", value=float(self.arrays.weight[met].sum()))
        # Confirming takes at most a twentieth of the time.
        self._next_report_s = begin + 20.0 * (self.control.elapsed_s - begin)

    def _optimal(self, search: PriceSearch) -> bool:
        return self._complete(search) and self._value_of(search) >= self.bound - 1e-6

    def _start_elsewhere(self, search: PriceSearch) -> None:
        """Begin from the warm start or the greedy's plan where they meet more than prices did."""
        plans = []
        if self.options.warm_start is not None:
            plans.append(plan_of(self.problem, self.arrays, self.options.warm_start))
        elif not self._optimal(search) and not self._stopped():
            from edgeflow_opt.solvers.greedy import SOLVER

            draft = SOLVER.solve(
                self.problem,
                self.arrays,
                dataclasses.replace(self.options, params={}, warm_start=None),
                self.control,
            )
            if draft.plan is not None:
                plans.append(draft.plan)
        must = self.arrays.must_meet
        for plan in plans:
            plan = trim(self.arrays, plan)
            met = walk(self.arrays, plan).met
            value = float(self.arrays.weight[met].sum())
            better = value > self._value_of(search) + 1e-9 or not self._complete(search)
            if not met[must].all() or not better:
                continue
            # The plan may use modes that the engine leaves out; it is then kept as it is.
            self.fallback = plan
            rows, whole = self.data.in_kept_modes(plan)
            search.adopt(rows, met & whole & self.data.priced)
            search.construct()
            self._report_value(search)
        if self._warm and not search.met.any():
            search.construct()

    def _improve(
        self, dual: HullDual, found: DualResult, search: PriceSearch
    ) -> tuple[DualResult, PriceSearch]:
        """Sharpen the bound and improve the plan until they meet, or time is up.

        With two workers the bound has a thread of its own; when it is done, that thread searches
        too, from another seed, and the better plan of the two is returned.
        """
        exact = ExactDual(dual, found, self._stopped, reach=self._reach)
        evaluations = int(self.options.params.get("exact_iterations", EXACT_ITERATIONS))
        moves = self.options.params.get("moves")
        ends = take_flag(self.options, "ends_with_bound", default=False, solver="price")
        # Deterministic moves are counted, and made after the bound.
        ends = ends and not self.options.deterministic
        if moves is None and self.options.deterministic:
            moves = max(_LEAST_MOVES, _MOVES_PER_JOB * self.arrays.num_jobs)
        left = float("inf") if moves is None else int(moves)

        def more() -> bool:
            return not exact.finished and exact.evaluations < evaluations and not self._stopped()

        def sharpen() -> None:
            begin = self.control.elapsed_s
            exact.step()
            self._prove(exact.best)
            if not self.options.deterministic:
                exact.fit_into(self.control.left_s, self.control.elapsed_s - begin)

        def put_in_promising() -> None:
            # Of an old plan these are the jobs that have arrived since.
            if self._warm and left > 0:
                search.put_in_promising(lambda: self._finished(search))
                self._report_value(search)

        searches = [search]
        if self.workers >= 2:
            if self._warm and left > 0 and more():
                # At old prices the first evaluation is nearly all that there is to the bound.
                sharpen()
            dual.workers = 1

            def beside() -> None:
                try:
                    while not self._done and more():
                        sharpen()
                    if ends:
                        self._done = True
                    if moves is None and not self._done and not self._stopped():
                        rival = PriceSearch(self.data, exact.best, self.options.seed + 1)
                        searches.append(rival)
                        rival.construct()
                        self._search(rival, exact, left)
                except BaseException as fault:
                    self._fault = fault
                finally:
                    self._done = self._done or self._fault is not None

            thread = threading.Thread(target=beside, daemon=True, name="edgeflow-price")
            thread.start()
            try:
                put_in_promising()
                self._search(search, exact, left)
            finally:
                self._done = True
                thread.join()
            if self._fault is not None:
                raise self._fault
        else:
            # The first evaluations bring most, later ones get a third of the time.
            while more() and (exact.evaluations < 3 or self.options.deterministic):
                sharpen()
            put_in_promising()
            bound_s = search_s = 0.0
            while left > 0 and not self._finished(search) and (more() or not ends):
                begin = self.control.elapsed_s
                left = self._search(search, exact, left, 0.1 if more() else float("inf"))
                middle = self.control.elapsed_s
                search_s += middle - begin
                while bound_s < 0.5 * search_s and more():
                    sharpen()
                    bound_s += self.control.elapsed_s - middle
                    middle = self.control.elapsed_s
        self.statistics["exact_evaluations"] = exact.evaluations
        # Of equals the first, which does not depend on timing.
        best = max(searches, key=lambda s: (self._complete(s), self._value_of(s)))
        return exact.best, best

    def _finished(self, search: PriceSearch) -> bool:
        """Whether there is nothing left to do for `search`."""
        return self._done or self._stopped() or self._optimal(search)

    def _packed(self, search: PriceSearch) -> bool:
        """Whether there were moves enough for an attempt to put in a job that does not fit."""
        if search.attempts:
            return search.moves >= search.attempted_at + _MOVES_AFTER
        if search.moves >= _MOVES_BEFORE_PER_JOB * self.arrays.num_jobs:
            return True
        spent = self.control.elapsed_s - self._begun_s
        late = spent > _MOVES_BEFORE_SHARE * (spent + self.control.left_s)
        return late and not self.options.deterministic

    def _search(
        self, search: PriceSearch, exact: ExactDual, left: float, seconds: float = float("inf")
    ) -> float:
        """Improve the plan for `left` moves or `seconds`, and return the moves that are left."""
        chunk = 50
        start = self.control.elapsed_s
        while left > 0 and not self._finished(search):
            begin = self.control.elapsed_s
            if begin - start >= seconds:
                break
            search.follow(exact.best)
            count = int(min(chunk, left))
            gained = search.improve(count)
            left -= count
            if not self.options.deterministic:
                taken = max(1e-6, self.control.elapsed_s - begin)
                chunk = max(10, min(4 * chunk, int(count * _CHUNK_S / taken), _MOST_MOVES))
            while self._packed(search) and not self._finished(search):
                more = search.put_in_more(lambda: self._finished(search))
                gained += more
                if more <= 0.0:
                    break
            if gained > 0.0:
                self._report_value(search)
        if left <= 0:
            self.hit = Limit.ITERATIONS
        if self._optimal(search):
            self._done = True
        return left

    def _draft(self, plan: IntArray) -> Draft:
        """Return `plan`, or the one to fall back on if that is better, with what is proven."""
        arrays = self.arrays
        plan = trim(arrays, plan)
        met = walk(arrays, plan).met
        value = float(arrays.weight[met].sum())
        complete = bool(met[arrays.must_meet].all())
        if self.fallback is not None:
            other = walk(arrays, self.fallback).met
            if not complete or float(arrays.weight[other].sum()) > value + 1e-9:
                plan, value, complete = self.fallback, float(arrays.weight[other].sum()), True
        limit = self.control.limit or (Limit.TIME if self._stopped() else self.hit)
        if not complete:
            return Draft(
                status=SolveStatus.NO_SOLUTION,
                limit=limit,
                bound=self.bound,
                statistics=self.statistics,
                dual=self._dual,
            )
        if value > self.bound + 1e-6 * max(1.0, self.bound):
            raise SolverFaultError(
                f"solver 'price' found a plan of value {value:g} above its bound {self.bound:g}"
            )
        optimal = value >= self.bound - 1e-6
        return Draft(
            status=SolveStatus.OPTIMAL if optimal else SolveStatus.FEASIBLE,
            limit=None if optimal else limit,
            plan=plan,
            bound=max(value, self.bound),
            levels=(LevelReport(level="met", value=value, bound=self.bound, optimal=optimal),),
            statistics=self.statistics,
            dual=self._dual,
        )


SOLVER = PriceSolver()
