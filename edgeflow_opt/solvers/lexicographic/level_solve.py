"""Level by level: prove the met weight first, fix it, then improve the levels below.

The way of every MILP engine through an epoch problem, and the only place that turns what an engine
says about a model into what is claimed about the problem.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.errors import SolverFaultError
from edgeflow_opt.formulations.malleable import build_malleable, reachable_jobs
from edgeflow_opt.formulations.moldable import MoldableModel, build_moldable, one_run_only
from edgeflow_opt.formulations.objectives import LEVELS, Level
from edgeflow_opt.problem import LevelReport, Limit, SolveStatus
from edgeflow_opt.solvers.base import Draft
from edgeflow_opt.solvers.bounds import attainable_step, rounded_down
from edgeflow_opt.solvers.kernels import MOLDABLE, PRICE
from edgeflow_opt.solvers.lexicographic.incumbent import CLOSED, Incumbent
from edgeflow_opt.solvers.lexicographic.start import offer_start
from edgeflow_opt.solvers.mip.engine import EngineAnswer

if TYPE_CHECKING:
    from edgeflow_opt.formulations.malleable import MalleableModel
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem import EpochProblem, ObjectiveValue
    from edgeflow_opt.problem.arrays import FloatArray, ProblemArrays
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.engine import Engine
    from edgeflow_opt.solvers.mip.rounding import Rounding
    from edgeflow_opt.solvers.moldable import OptionDual
    from edgeflow_opt.solvers.price import DualResult
    from edgeflow_opt.solvers.weighted.solver import WeightedSolve

#: Seconds for the price engine at most before an engine that proves small models follows: in any
#: case, and per column of the model. Engines close most of what prices leave open sooner.
_PRICE_LEAST_S, _PRICE_S_PER_COLUMN = 0.2, 1e-4

#: Largest model on which MILP engines still improve on the price engine at level 1, columns.
SMALL_COLUMNS = 20_000

#: Columns of the malleable model for each mode and slot where runs have states, for losses or since
#: reconfigurations count: 3.4 to 4.4 on 30x24 to 300x96.
_COLUMNS_WITH_STATES = 4.4

#: Share of the time left for the prices of the options of jobs with one run.
_OPTIONS_SHARE = 0.06

#: Relative amount by which a kept level may fall in a model, for rounding. A plan that loses any of
#: it is not taken.
_KEEP_SLACK = 5e-8

#: Relative amount by which a level below may miss its bound and count as optimal: shares of work
#: are counted in steps by engines of whole numbers, cost and changes are not.
_STEP_SLACK, _LEVEL_SLACK = 1e-4, 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Who is asked about a model, on which clock, and for which share of the time left there."""

    engine: Engine
    control: SolveControl
    share: float


class LevelSolve:
    """One way through the levels: what is known so far, and the steps that add to it.

    Parameters
    ----------
    problem, arrays, options, control
        As given to the solver.
    engine
        The MILP engine that is asked; may be changed between steps.
    """

    def __init__(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
        engine: Engine,
    ) -> None:
        self.problem, self.arrays = problem, arrays
        self.options, self.control, self.engine = options, control, engine
        self.incumbent = Incumbent(problem, arrays, control)
        self.statistics: dict[str, Any] = {"build_s": 0.0}
        self._proven: set[Level] = set()
        self._weights = arrays.weight[arrays.has_deadline]
        reachable = reachable_jobs(arrays)
        self._skipped = False
        self._fixing = False
        self._lock = threading.Lock()
        self.dual: DualResult | None = None
        """Prices, bound and job costs of the price engine; None = it was not asked."""
        self._options: OptionDual | None = None
        self.weighted: WeightedSolve | None = None
        """The solve of a weighted sum by prices; None = it was not asked."""
        self._infeasible = bool((arrays.must_meet & ~reachable).any())
        weights = problem.objective.weights
        if weights is None:
            met = float(arrays.weight[arrays.has_deadline & reachable].sum())
            self.bound = rounded_down(met, self._weights)
        else:
            gain = weights.met * arrays.has_deadline + weights.progress + weights.leftover
            self.bound = float((gain * arrays.weight).sum())
        self.control.report("reachable jobs", bound=self.bound)

    def offer_starts(self) -> None:
        """Offer the plans that cost nothing or next to nothing."""
        if not self._infeasible:
            offer_start(self.problem, self.arrays, self.options, self.control, self.incumbent)

    def use_prices(
        self, seconds: float, *, fixing: bool = True, ends_with_bound: bool = False
    ) -> None:
        """Take plan, bound and, for `fixing`, reduced costs of the price engine.

        For at most `seconds`, or until the bound is done. It knows level 1 only, be it the met weight or
        the weighted sum.
        """
        if self.closed:
            return
        self.control.load_kernels(PRICE)
        plain = dataclasses.replace(self.options, params={})
        # Without the constraints of the instance: its bound holds with them too, its plan need not.
        relaxed = bool(self.arrays.rows.num_rows)
        part = self.control.counted_part(seconds, relaxed=relaxed)
        if self.problem.objective.weights is not None:
            try:
                self.weigh(part, fixing=fixing).run()
            finally:
                self.note_weighted()
            return
        from edgeflow_opt.solvers.price import SOLVER

        if ends_with_bound:
            plain = dataclasses.replace(plain, params={"ends_with_bound": True})
        draft = SOLVER.solve(self.problem, self.arrays, plain, part)
        self.statistics["prices"] = draft.statistics
        if draft.status is SolveStatus.INFEASIBLE:
            self._infeasible = True
            return
        if draft.plan is not None:
            self.incumbent.offer(draft.plan, "price")
        if draft.bound is not None:
            self.tighten(draft.bound)
        self.dual, self._fixing = draft.dual, fixing
        # Options that others dominate are left out there, which constraints may count otherwise.
        if fixing and not self.closed and not relaxed and one_run_only(self.arrays):
            from edgeflow_opt.solvers.moldable import minimise, option_table

            self.control.load_kernels(MOLDABLE)
            part = self.control.counted_part(_OPTIONS_SHARE * self.control.left_s)
            self._options = minimise(option_table(self.arrays), stopped=lambda: part.stopped)

    def weigh(self, control: SolveControl, *, fixing: bool) -> WeightedSolve:
        """Return the solve of the weighted sum by prices, not yet begun."""
        from edgeflow_opt.solvers.weighted.solver import WeightedSolve

        self.control.load_kernels(PRICE)
        plain = dataclasses.replace(self.options, params={})
        self._fixing = fixing
        self.weighted = WeightedSolve(self.problem, self.arrays, plain, control, self.incumbent)
        return self.weighted

    def note_weighted(self) -> None:
        """Take note of what the solve of the weighted sum by prices has proven."""
        found = self.weighted
        if found is None:
            return
        self.statistics["prices"] = found.statistics
        self._infeasible = self._infeasible or found.infeasible
        self.dual = found.dual
        if not found.infeasible:
            self.tighten(found.bound, "price")

    def tighten(self, bound: float, source: str | None = None) -> None:
        """Take note of a proven bound on level 1, from any thread; `source` None = the engine."""
        with self._lock:
            if bound >= self.bound:
                return
            self.bound = bound
        self.control.report(source or self.engine.name, bound=bound)

    def note_infeasible(self) -> None:
        """Take note of a proof that there is no schedule."""
        self._infeasible = True

    def note_proven(self, level: Level) -> None:
        """Take note that the incumbent is proven best on `level`, all before it kept."""
        self._proven.add(level)

    @property
    def closed(self) -> bool:
        """Whether level 1 is settled: optimal within :data:`CLOSED`, or infeasible."""
        value = self.incumbent.level_1
        if self._infeasible or value is None:
            return self._infeasible
        return self.bound <= value + CLOSED * max(1.0, abs(value))

    def columns(self, levels: tuple[Level, ...] = ("met",)) -> int:
        """Return the columns of the malleable model for `levels`, about: modes times slots.

        For level 1 only the slots before the deadlines count. States of runs are left out.
        """
        arrays = self.arrays
        modes = np.bincount(arrays.mode_job[arrays.mode_kept], minlength=arrays.num_jobs)
        end = arrays.end_slot if levels == ("met",) else arrays.num_slots
        slots = np.maximum(0, end - arrays.first_slot)
        wanted = arrays.has_deadline if levels == ("met",) else 1
        return int((modes * slots * wanted).sum())

    @property
    def price_s(self) -> float:
        """Seconds that are well spent on prices where an engine follows that proves level 1."""
        return _PRICE_LEAST_S + _PRICE_S_PER_COLUMN * self.columns()

    def fits(self, seconds: float, levels: tuple[Level, ...] = ("met",)) -> bool:
        """Whether the engine can be expected to do anything with the model in `seconds`."""
        return self._size_of(levels) <= 0.5 * self.engine.columns_per_second * seconds

    def _size_of(self, levels: tuple[Level, ...]) -> int:
        """Return the columns of the model for `levels`, about, those of states of runs with them."""
        has_states = "reconfigurations" in levels or bool(self.arrays.has_losses.any())
        return round((_COLUMNS_WITH_STATES if has_states else 1.0) * self.columns(levels))

    def first_level(
        self,
        share: float = 1.0,
        *,
        engine: Engine | None = None,
        control: SolveControl | None = None,
    ) -> None:
        """Maximise level 1 in `share` of the time left: the met weight, or the weighted sum.

        Parameters
        ----------
        engine
            Who is asked; None = :attr:`engine`.
        control
            The part of the clock that this may take; None = all of it.
        """
        if self.closed:
            return
        asked = _Asked(engine or self.engine, control or self.control, share)
        weights = self.problem.objective.weights
        levels: tuple[Level, ...] = ("met",)
        factors = {"met": 1.0}
        if weights is not None:
            factors = {level: getattr(weights, level) for level in LEVELS}
            levels = tuple(level for level in LEVELS if factors[level] > 0 or level == "met")
        model = self._built(levels)
        if model is None:
            return
        objective = np.zeros(model.model.num_columns)
        for level in levels:
            objective = objective + factors[level] * model.objectives[level]
        if weights is not None:
            objective = _within_reach(model.model, objective, self.incumbent.level_1)
        infeasible, found = self._to_the_optimum(model, objective, asked)
        if infeasible:
            self._infeasible = True
        else:
            self.tighten(self._safe(found, asked.engine), asked.engine.name)

    def _safe(self, bound: float, engine: Engine) -> float:
        """Return what an engine's bound proves: with its slack, rounded down where possible."""
        slack = engine.bound_slack
        if self.problem.objective.weights is None:
            return rounded_down(bound, self._weights, slack)
        return bound + max(slack, 1e-9) * max(1.0, abs(bound))

    def draft(self) -> Draft:
        """Return what is known, after a last look for contradictions."""
        self.statistics["solve_s"] = self.control.elapsed_s
        if self.incumbent.rejected:
            self.statistics["rejected_plans"] = self.incumbent.rejected
        value = self.incumbent.level_1
        # What is left open here is left open for want of time: shares of it, too, are time.
        timed = self._skipped or self.options.time_limit_s is not None
        limit = self.control.limit or (Limit.TIME if timed else None)
        if self._infeasible and value is not None:
            raise SolverFaultError(
                f"{self.engine.name} says that there is no schedule, but one is known"
            )
        if value is not None and self.bound < value - 1e-6 * max(1.0, abs(value)):
            raise SolverFaultError(
                f"{self.engine.name} claims the bound {self.bound:g}, below the value {value:g} "
                "reached"
            )
        if self._infeasible:
            return Draft(status=SolveStatus.INFEASIBLE, statistics=self.statistics)
        if value is None:
            return Draft(
                status=SolveStatus.NO_SOLUTION,
                limit=limit,
                bound=self.bound,
                statistics=self.statistics,
                dual=self.dual,
            )
        levels = self._reports(value)
        done = all(level.optimal for level in levels)
        return Draft(
            status=SolveStatus.OPTIMAL if self.closed else SolveStatus.FEASIBLE,
            limit=None if done else limit,
            plan=self.incumbent.plan,
            bound=self.bound,
            levels=levels,
            statistics=self.statistics,
            dual=self.dual,
        )

    def _reports(self, first_value: float) -> tuple[LevelReport, ...]:
        """Return how far each level was taken, with the values of the final plan."""
        lexicographic = self.problem.objective.weights is None
        first = LevelReport(
            level="met" if lexicographic else "weighted",
            value=first_value,
            bound=self.bound,
            optimal=self.closed,
        )
        if not lexicographic:
            return (first,)
        below = []
        for level in LEVELS[1 : self.options.levels]:
            value, proven = _level_value(self.incumbent.value, level), level in self._proven
            below.append(
                LevelReport(
                    level=level, value=value, bound=value if proven else None, optimal=proven
                )
            )
        return (first, *below)

    def _to_the_optimum(
        self, model: MalleableModel | MoldableModel, objective: FloatArray, asked: _Asked
    ) -> tuple[bool, float]:
        """Maximise `objective`: optimistically for the bound, then pessimistically if needed.

        Returns whether there is no schedule, and the engine's bound.
        """
        value = self.incumbent.level_1
        better = None if value is None else self._better_only(model, objective, value)
        if better is not None and value is not None:
            # There may be no better schedule: then the value is the bound.
            answer = self._maximise(
                model, better, "optimistic", asked, hinted=False, bounds_level_1=True
            )
            answer = dataclasses.replace(answer, infeasible=False, bound=max(value, answer.bound))
        else:
            whole = model.model.with_objective(objective)
            answer = self._maximise(model, whole, "optimistic", asked, bounds_level_1=True)
        if answer.infeasible:
            return True, answer.bound
        value = self.incumbent.level_1
        slack = 1e-6 * max(1.0, abs(answer.bound))
        if answer.proven and (value is None or value < answer.bound - slack):
            # What is optimal in the rounded-up model fails the exact rule by a hair.
            floors = () if value is None else ((objective, value),)
            whole = model.model.with_objective(objective, floors)
            self._maximise(model, whole, "pessimistic", asked)
        return False, answer.bound

    def _better_only(
        self, model: MalleableModel | MoldableModel, objective: FloatArray, value: float
    ) -> SparseModel | None:
        """Return the model of the schedules better than `value`; None without reduced costs.

        Jobs whose fate the reduced costs decide are fixed, and the value is cut off below the next
        attainable one. The incumbent may rise meanwhile, by what other threads find.
        """
        if self._options is not None and isinstance(model, MoldableModel):
            restricted, jobs, options = self._options.restrict(model, value)
            self.statistics |= {"fixed_jobs": jobs, "open_options": options}
        elif self.dual is not None and self._fixing:
            if self.weighted is not None:
                fixed = self.weighted.function.fixings(self.dual, value)
            else:
                from edgeflow_opt.solvers.price import fixings

                fixed = fixings(self.arrays, self.dual, value)
            self.statistics["fixed_jobs"] = int(fixed.met.sum() + fixed.unmet.sum())
            restricted = model.restricted(fixed.met, fixed.unmet)
        else:
            return None
        step = None if self.weighted is not None else attainable_step(self._weights)
        aim = value if step is None else value + 0.5 * step
        return restricted.with_objective(objective, at_least=aim)

    def levels_below(self) -> None:
        """Keep the levels done, improve the next ones in their order."""
        levels = LEVELS[: self.options.levels]
        lexicographic = self.problem.objective.weights is None
        if self._infeasible or self.incumbent.plan is None or not lexicographic:
            return
        if len(levels) == 1 or self.control.stopped:
            return
        model = self._built(levels)
        if model is None:
            return
        for index, level in enumerate(levels[1:], start=1):
            if self.control.stopped:
                return
            objective = model.objectives[level]
            proven = not objective.any()
            if not proven:
                point = model.encode(self.incumbent.plan)
                floors = [
                    (model.objectives[kept], _just_below(float(model.objectives[kept] @ point)))
                    for kept in levels[:index]
                    if model.objectives[kept].any()
                ]
                asked = _Asked(self.engine, self.control, 1.0 / (len(levels) - index))
                rows = model.model.with_objective(objective, floors)
                answer = self._maximise(model, rows, "optimistic", asked)
                proven = answer.proven and self._reaches(model, level, answer)
                if answer.proven and not proven:
                    # As on level 1: the best of the rounded-up model fails the exact rule by a
                    # hair. What is best in the rounded-down one proves nothing.
                    self._maximise(model, rows, "pessimistic", asked)
            if proven:
                self._proven.add(level)

    def _reaches(
        self, model: MalleableModel | MoldableModel, level: Level, answer: EngineAnswer
    ) -> bool:
        """Whether the incumbent is as good as what the engine has proven to be the best."""
        assert self.incumbent.plan is not None
        value = float(model.objectives[level] @ model.encode(self.incumbent.plan))
        slack = _STEP_SLACK if level in ("progress", "leftover") else _LEVEL_SLACK
        return not answer.infeasible and value >= answer.bound - slack * max(1.0, abs(value))

    def _built(self, levels: tuple[Level, ...]) -> MalleableModel | MoldableModel | None:
        """Build the model for `levels`; None where it is too large for the time left."""
        arrays = self.arrays
        moldable = levels == ("met",) and one_run_only(arrays)
        if not self.fits(self.control.left_s, levels):
            self.statistics["skipped"] = (
                f"a model of about {self._size_of(levels)} columns is too large for the time left"
            )
            self._skipped = True
            return None
        begin = self.control.elapsed_s
        model = build_moldable(arrays) if moldable else build_malleable(arrays, levels)
        self.statistics["build_s"] += self.control.elapsed_s - begin
        name = "num" if levels == ("met",) else "num_below"
        self.statistics[f"{name}_rows"] = model.model.num_rows
        self.statistics[f"{name}_columns"] = model.model.num_columns
        return model

    def _maximise(
        self,
        model: MalleableModel | MoldableModel,
        rows: SparseModel,
        rounding: Rounding,
        asked: _Asked,
        *,
        hinted: bool = True,
        bounds_level_1: bool = False,
    ) -> EngineAnswer:
        """Ask the engine to maximise `rows`, a variant of the rows of `model`; offer all it finds.

        With `bounds_level_1` its bounds are bounds on level 1, and taken note of at once.
        """
        listening, engine = True, asked.engine

        def on_incumbent(x: FloatArray) -> None:
            # An engine that was left to itself may still find something: too late.
            if listening:
                self.incumbent.offer(model.decode(x), engine.name)

        def on_bound(bound: float) -> None:
            if not listening:
                return
            known = self.incumbent.level_1
            if not hinted and known is not None:
                bound = max(bound, known)
            # Kept at once: an engine that is left to itself cannot tell its bound at the end.
            self.tighten(self._safe(bound, engine), engine.name)

        if not rows.num_columns:
            return _answer_without_columns(rows)
        plan = self.incumbent.plan
        answer = engine.maximise(
            rows,
            rounding=rounding,
            hint=model.encode(plan) if hinted and plan is not None else None,
            seconds=asked.control.left_s * asked.share,
            options=self.options,
            control=asked.control,
            on_incumbent=on_incumbent,
            on_bound=on_bound if bounds_level_1 else None,
        )
        listening = False
        if math.isnan(answer.bound):
            # A comparison with it would make a bound of whatever it is compared with.
            answer = dataclasses.replace(answer, bound=math.inf, proven=False)
        if answer.x is not None:
            self.incumbent.offer(model.decode(answer.x), engine.name)
        for key, number in answer.statistics.items():
            old = self.statistics.get(key)
            adds = isinstance(number, (int, float)) and isinstance(old, (int, float))
            self.statistics[key] = old + number if adds else number
        return answer


def _answer_without_columns(model: SparseModel) -> EngineAnswer:
    """Answer for a model in which there is nothing to decide: solvers differ in what they say."""
    if (model.row_lower > 0.0).any() or (model.row_upper < 0.0).any():
        return EngineAnswer(bound=-math.inf, proven=True, infeasible=True)
    return EngineAnswer(x=np.zeros(0), bound=0.0, proven=True)


def _within_reach(model: SparseModel, objective: FloatArray, value: float | None) -> FloatArray:
    """Return `objective` with no coefficient below what a schedule better than `value` can bear.

    All gains together are at most G, so a column that costs more than G - value is in no better
    schedule, nor if it costs twice that. Beside larger numbers engines do not see the others.
    """
    if value is None:
        return objective
    most = float((np.maximum(0.0, objective) * model.col_upper).sum())
    return np.maximum(objective, -2.0 * max(0.0, most - value))


def _just_below(value: float) -> float:
    return value - _KEEP_SLACK * max(1.0, abs(value))


def _level_value(value: ObjectiveValue | None, level: Level) -> float:
    assert value is not None
    name = "met_weight" if level == "met" else level
    return float(getattr(value, name) or 0.0)
