"""Bound and plan of a weighted sum by capacity prices, side by side.

1. The dual (:mod:`~edgeflow_opt.solvers.weighted.dual`), first with hulls, then with exact plans of met
   jobs: a proven bound, and prices.
2. Which jobs to meet: the search of the price engine, in which a job weighs what it earns more, at
   these prices, when it is met.
3. The sum as a whole, from the best plan known: :mod:`~edgeflow_opt.solvers.weighted.search`.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import SolverFaultError
from edgeflow_opt.problem import LevelReport, Limit, SolveStatus
from edgeflow_opt.solvers.base import Draft
from edgeflow_opt.solvers.kernels import WEIGHTED
from edgeflow_opt.solvers.lexicographic.incumbent import CLOSED, Incumbent
from edgeflow_opt.solvers.lexicographic.start import offer_start
from edgeflow_opt.solvers.price.bound import dual_bound
from edgeflow_opt.solvers.price.dual import COLD_ITERATIONS, minimise
from edgeflow_opt.solvers.price.exact_dual import WARM_REACH, ExactDual
from edgeflow_opt.solvers.price.search import PriceSearch
from edgeflow_opt.solvers.weighted.dual import WeightedDual
from edgeflow_opt.solvers.weighted.most_met import with_most_met
from edgeflow_opt.solvers.weighted.search import WeightedSearch
from edgeflow_opt.solvers.weighted.worths import weighted_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.price.dual import DualResult

#: Shares of the time: for the hull dual, and of what is left then for the question whom to meet.
_HULL_SHARE, _MEETING_SHARE = 0.2, 0.4

#: Share of the met weight that level 1 can have at most, from which on it decides whom to meet, and
#: evaluations for the bound on it.
_NEARLY, _ITERATIONS_OF_LEVEL_1 = 0.97, 40

#: Evaluations of the hull dual from prices that are given, and of the exact dual at most.
WARM_ITERATIONS, EXACT_ITERATIONS = 12, 100

#: Share of the time for the exact dual where a bound on the met weight follows.
_EXACT_SHARE = 0.4

#: Moves where the result must not depend on the clock: per job, and at least.
_MOVES_PER_JOB, _LEAST_MOVES = 40, 2000

#: Wall seconds of one call of a kernel, about, and moves of one call where they must be steady.
_CALL_S, _STEADY_MOVES = 0.03, 50

#: Moves in a row without gain after which the plan counts as settled: per job, and at least.
_PATIENCE, _LEAST_PATIENCE = 400, 4000

#: Least gain that is worth writing down as a schedule, relative to the value.
_LEAST_GAIN = 1e-6


def solve_weighted(
    problem: EpochProblem, arrays: ProblemArrays, options: SolveOptions, control: SolveControl
) -> Draft:
    """Return the best plan found and the bound proven before `control` says stop."""
    incumbent = Incumbent(problem, arrays, control)
    with control.interruptible():
        offer_start(problem, arrays, options, control, incumbent)
    work = WeightedSolve(problem, arrays, options, control, incumbent)
    with control.interruptible():
        work.run()
    return work.draft()


class WeightedSolve:
    """One solve: its state, and the steps in their order.

    Parameters
    ----------
    incumbent
        The best plan so far; takes what is found.
    """

    def __init__(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
        incumbent: Incumbent,
    ) -> None:
        assert problem.objective.weights is not None
        control.load_kernels(WEIGHTED)
        self.arrays, self.options = arrays, options
        self.incumbent = incumbent
        self.weights = problem.objective.weights
        self.data, self.worths = weighted_data(arrays, self.weights)
        self.function = WeightedDual(self.data, self.worths, self._workers)
        self.dual: DualResult | None = None
        """The best prices so far; None = none yet."""
        self.bound = float(self.data.weight.sum())
        self.infeasible = False
        self.statistics: dict[str, float] = {}
        self._given = None if options.prices is None else options.prices.on_slots(problem)
        self._has_rows = bool(arrays.rows.num_rows)
        self._settled = threading.Event()
        self._broken_off = False
        self._fault: BaseException | None = None
        self.go_on_with(control)

    def go_on_with(self, control: SolveControl) -> None:
        """Use another part of the clock from now on."""
        self.control = control
        left = control.left_s
        # Turning the plan into a checked schedule takes time of its own, in plain Python.
        reserve_s = 0.05 + 2e-4 * self.arrays.num_jobs
        self._reserve_s = min(0.2 * left, reserve_s) if left < 1e9 else 0.0

    @property
    def _workers(self) -> int:
        return 1 if self.options.deterministic else self.options.workers

    def run(self) -> None:
        """Prove and improve until bound and value meet, or time is up."""
        self.first_prices()
        self.improve()

    def improve(self, plan: IntArray | None = None, most: float | None = None) -> None:
        """Sharpen the bound and improve the plan, from the first prices on.

        Parameters
        ----------
        plan
            A plan that meets nearly as much as can be; None = the jobs to meet are looked for.
        most
            A proven bound on the met weight; None = that of the prices themselves.
        """
        if self.infeasible or self.dual is None:
            return
        if plan is not None:
            self._begin_from(plan)
        begin = self.control.elapsed_s
        seconds = (1.0 if most is None else _EXACT_SHARE) * self.control.left_s
        reach = None if self._given is None else WARM_REACH
        exact = ExactDual(self.function, self.dual, self._stopped, reach)

        def sharpen() -> None:
            while self._sharpens(exact):
                if self.control.elapsed_s - begin > seconds and not self.options.deterministic:
                    break
                self._sharpen(exact)
                if self._workers == 1 and not self.options.deterministic and exact.evaluations == 3:
                    # With more workers later prices come for nothing; here plans are worth more.
                    exact.refine_next()
            if most is not None and self.dual is not None and not self._stopped():
                self.function, found = with_most_met(self.function, self.dual, most, self._stopped)
                self._take(found)

        def search(seed: int) -> None:
            if plan is None and not self._stopped():
                self._meet(seed)
            # These moves know capacities only.
            if not self._stopped() and self.incumbent.plan is not None and not self._has_rows:
                self._shake(seed)

        if self._workers >= 2:
            self._side_by_side(sharpen, search)
        else:
            sharpen()
            search(self.options.seed)

    def meets_most(self) -> bool:
        """Whether the prices have nearly as much weight met as any schedule can have.

        Then the question whom to meet is that of level 1.
        """
        if self.dual is None:
            return False
        level_1 = dual_bound(self.arrays, iterations=_ITERATIONS_OF_LEVEL_1)
        return self.function.met_weight(self.dual) >= _NEARLY * level_1.bound

    def draft(self) -> Draft:
        """Return what is known."""
        limit = self.control.limit or (Limit.TIME if self._stopped() else None)
        if self.infeasible:
            return Draft(status=SolveStatus.INFEASIBLE, statistics=self.statistics)
        value = self.incumbent.level_1
        if value is None:
            return Draft(
                status=SolveStatus.NO_SOLUTION, limit=limit, bound=self.bound,
                statistics=self.statistics, dual=self.dual,
            )  # fmt: skip
        if value > self.bound + 1e-6 * max(1.0, abs(self.bound)):
            raise SolverFaultError(
                f"solver 'price' found a plan of value {value:g} above its bound {self.bound:g}"
            )
        bound = max(value, self.bound)
        report = LevelReport(level="weighted", value=value, bound=bound, optimal=self._closed)
        return Draft(
            status=SolveStatus.OPTIMAL if self._closed else SolveStatus.FEASIBLE,
            limit=None if self._closed else limit or Limit.ITERATIONS,
            plan=self.incumbent.plan,
            bound=bound,
            levels=(report,),
            statistics=self.statistics,
            dual=self.dual,
        )

    @property
    def _closed(self) -> bool:
        value = self.incumbent.level_1
        return value is not None and self.bound <= value + CLOSED * max(1.0, abs(value))

    def _stopped(self) -> bool:
        """Whether to come to an end, the time for the checks kept back."""
        out_of_time = self.control.stopped or self.control.left_s <= self._reserve_s
        return out_of_time or self._broken_off or self._fault is not None or self._closed

    def first_prices(self) -> None:
        """Minimise the dual with hull prices."""
        begin = self.control.elapsed_s
        share = _HULL_SHARE * self.control.left_s

        def stopped() -> bool:
            if self.options.deterministic:
                return self._stopped()
            return self._stopped() or self.control.elapsed_s - begin > share

        usual = COLD_ITERATIONS if self._given is None else WARM_ITERATIONS
        iterations = int(self.options.params.get("iterations", usual))
        self._take(minimise(self.function, self._given, iterations, stopped))
        self.statistics["hull_bound"] = self.bound
        self.statistics["hull_s"] = self.control.elapsed_s - begin

    def _take(self, found: DualResult) -> None:
        """Take note of prices and of what they prove."""
        if found.bound == -math.inf:
            self.infeasible = True
            return
        self.dual = found
        if found.bound < self.bound:
            self.bound = found.bound
            self.control.report("price", bound=self.bound)

    def _sharpens(self, exact: ExactDual) -> bool:
        """Whether another evaluation of the exact dual is wanted."""
        most = int(self.options.params.get("exact_iterations", EXACT_ITERATIONS))
        return exact.evaluations < most and not exact.finished and not self._stopped()

    def _sharpen(self, exact: ExactDual) -> None:
        begin = self.control.elapsed_s
        exact.step()
        self._take(exact.best)
        if not self.options.deterministic:
            exact.fit_into(self.control.left_s, self.control.elapsed_s - begin)
        self.statistics["exact_evaluations"] = exact.evaluations

    def _side_by_side(self, sharpen: Callable[[], None], search: Callable[[int], None]) -> None:
        """Sharpen the bound in a thread of its own, which then searches too."""
        self.function.workers = 1

        def beside() -> None:
            try:
                sharpen()
                if not self._settled.is_set():
                    search(self.options.seed + 1)
            except BaseException as fault:
                self._fault = fault

        thread = threading.Thread(target=beside, daemon=True, name="edgeflow-weighted")
        thread.start()
        try:
            search(self.options.seed)
        except BaseException:
            self._broken_off = True
            raise
        finally:
            while thread.is_alive():
                with self.control.interruptible():
                    thread.join(0.05)
        if self._fault is not None:
            raise self._fault

    def _begin_from(self, plan: IntArray) -> None:
        """Offer `plan`, each job planned anew once by what the sum says."""
        assert self.dual is not None
        self.incumbent.offer(plan, "price")
        if not self._has_rows:
            search = WeightedSearch(
                self.arrays, self.weights, plan, self.dual.prices, self.options.seed
            )
            search.sweep(self._stopped)
            self.incumbent.offer(search.plan, "price")

    def _most_moves(self) -> float:
        """Return the moves of either search at most."""
        if "moves" in self.options.params:
            return int(self.options.params["moves"])
        if self.options.deterministic:
            return max(_LEAST_MOVES, _MOVES_PER_JOB * self.arrays.num_jobs)
        return math.inf

    def _meet(self, seed: int) -> None:
        """Search for the jobs to meet, each for what it earns more at the prices when it is."""
        assert self.dual is not None
        gains = self.function.gains(self.dual.prices, self.dual.multipliers)
        alone = self.function.alone()
        weight = np.where(np.isfinite(alone), alone - np.maximum(0.0, gains.unmet), 0.0)
        possible = np.isfinite(alone) & ((weight > 0.0) | self.data.must_meet)
        data = self.data.with_weights(np.maximum(0.0, weight), possible)
        search = PriceSearch(data, self.function.with_money(self.dual), seed)
        search.construct()
        moves, most = 0, self._most_moves()
        patience = max(_LEAST_MOVES, _MOVES_PER_JOB * self.arrays.num_jobs)
        begin = self.control.elapsed_s
        seconds = _MEETING_SHARE * (self.control.left_s - self._reserve_s)
        batch = _STEADY_MOVES
        idle = 0
        while not self._stopped() and idle < patience and moves < most:
            before = self.control.elapsed_s
            gain = search.improve(batch)
            moves += batch
            idle = 0 if gain > 0.0 else idle + batch
            if self.options.deterministic:
                continue
            now = self.control.elapsed_s
            if now - begin > seconds:
                break
            batch = _next_batch(batch, now - before)
        # Work on jobs that are not met is for the search that follows.
        plan = search.filled_plan(self.arrays, left_over=False)
        polished = WeightedSearch(self.arrays, self.weights, plan, self.dual.prices, seed)
        if not self._stopped():
            polished.sweep(self._stopped)
        self.incumbent.offer(polished.plan, "price")
        self.statistics["meeting_moves"] = self.statistics.get("meeting_moves", 0) + moves

    def _shake(self, seed: int) -> None:
        """Improve the sum by moves of a few jobs, until time or patience is at an end."""
        assert self.incumbent.plan is not None
        assert self.dual is not None
        num_jobs = self.arrays.num_jobs
        search = WeightedSearch(
            self.arrays, self.weights, self.incumbent.plan, self.dual.prices, seed
        )
        steady = self.options.deterministic
        patience = max(_LEAST_PATIENCE, _PATIENCE * num_jobs)
        most = self._most_moves()
        least = _LEAST_GAIN * max(1e-9, abs(self.incumbent.level_1 or 0.0))
        moves = idle = 0
        unsaved = search.sweep(self._stopped)
        batch = _STEADY_MOVES
        saved_s, saved_at = self.control.elapsed_s, 0
        while not self._stopped() and idle < patience and moves < most:
            before = self.control.elapsed_s
            gain = search.shake(batch)
            moves += batch
            unsaved += gain
            idle = 0 if gain > least else idle + batch
            now = self.control.elapsed_s
            if not steady:
                batch = _next_batch(batch, now - before)
            # Writing a schedule down takes at most a tenth of the time. Of equal schedules the one
            # written down first is kept: when that is must not depend on the clock.
            due = moves >= saved_at + num_jobs if steady else now > saved_s
            if unsaved > least and due:
                self.incumbent.offer(search.plan, "price")
                unsaved, saved_at = 0.0, moves
                saved_s = self.control.elapsed_s + 10.0 * (self.control.elapsed_s - now)
        self.incumbent.offer(search.plan, "price")
        self.statistics["moves"] = self.statistics.get("moves", 0) + moves
        self._settled.set()


def _next_batch(batch: int, seconds: float) -> int:
    """Return how many moves take about one call's time."""
    if seconds < 0.5 * _CALL_S:
        return 2 * batch
    return max(1, batch // 2) if seconds > 2.0 * _CALL_S else batch
