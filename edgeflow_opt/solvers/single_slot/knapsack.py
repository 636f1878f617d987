r"""A multiple-choice multidimensional knapsack with few rows and very many choices.

.. math::

    \max \sum_o v_o x_o, \quad \sum_{o \text{ of } j} x_o = 1 \;\; \forall j, \quad A x \le b,
    \quad x \in \{0, 1\}^N,

with one row for each site and one for each level of the objective that is kept. For multipliers
:math:`\lambda \ge 0` of the rows

.. math:: L(\lambda) = b \lambda + \sum_j \max_{o \text{ of } j} (v_o - \lambda A_o)

is a bound, equal to that of the linear program at its least. A choice whose *regret*, the amount by
which it falls short of the best of its job, exceeds L less a known value is part of no better
solution. So the problem is solved on a *core* of the choices with the least regrets (Balas and
Zemel, Operations Research 28(5), 1980; Pisinger, European Journal of Operational Research 83(2),
1995), by HiGHS; its optimum v is that of the whole problem as soon as the core holds all regrets
up to L - v.

Tolerances are relative to the largest value. Where that is one which no good solution takes (a mode
that costs a million times what a job is worth), the problem is solved again without the choices whose
regret exceeds L - v, so that they have no say in what is a tie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.formulations.sparse import ModelBuilder
from edgeflow_opt.solvers.mip.highs import quiet_highs

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.engine import Engine

#: Choices beside the best one of their job in the first core, and growth of a core that fails.
_FIRST_CORE, _CORE_GROWTH = 150, 4

#: The last core is taken at once if it has at most so many times the choices of the next.
_NEARLY = 4.0

#: Cores from this place on are solved without presolve: the MIP engine takes twice as long with it
#: on them, but far less on the first ones.
_LARGE_CORE = _FIRST_CORE * _CORE_GROWTH**2

#: What an unfinished core may leave open, as a share of what is open as a whole.
_LOOSE = 0.2

#: Relative width at which the multipliers are good enough, and most evaluations for each row.
_DUAL_WIDTH, _EVALUATIONS_PER_ROW = 1e-7, 40

#: Times that the box of the multipliers is widened tenfold.
_MOST_WIDENINGS = 6

#: Regrets below this share of the spread of the values are ties.
_TIE = 1e-6

_EPS = float(np.finfo(np.float64).eps)

#: Relative amount within which two values are the same.
_SAME = 1e-9

#: Where no choice that is left over is worth more than this share of the largest one, the problem is
#: solved again with these alone.
_FINER = 2.0**-6


@dataclass(frozen=True, slots=True, eq=False)
class Knapsack:
    """The problem above.

    Parameters
    ----------
    first
        (J,) first choice of each job; every job has one.
    value
        (N,) v.
    rows
        (R, N) A.
    limits
        (R,) b.
    num_floors
        The last rows, so many, keep a value rather than a capacity.
    """

    first: IntArray
    value: FloatArray
    rows: FloatArray
    limits: FloatArray
    num_floors: int = 0

    @property
    def group(self) -> IntArray:
        """(N,) the number of the job of each choice."""
        sizes = np.diff(np.append(self.first, len(self.value)))
        return np.repeat(np.arange(len(self.first)), sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Multipliers:
    """Multipliers and what they prove.

    Parameters
    ----------
    bound
        L, the rounding of its sums added.
    regret
        (N,) of every choice, at least 0.
    """

    bound: float
    regret: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """An answer.

    Parameters
    ----------
    chosen
        (J,) choice of each job; None = none found.
    value
        Its worth; -inf without one.
    bound
        Proven bound, +inf where there is none.
    regret
        As in :class:`Multipliers`, those that belong to `dual_bound`.
    dual_bound
        Bound of the multipliers.
    infeasible
        Whether there is no solution.
    num_core
        Choices in the last core.
    """

    chosen: IntArray | None
    value: float
    bound: float
    regret: FloatArray
    dual_bound: float
    infeasible: bool = False
    num_core: int = 0


def multipliers(problem: Knapsack, stopped: Callable[[], bool] | None = None) -> Multipliers:
    """Minimise L by cutting planes (Kelley, 1960): few rows need few of them.

    Parameters
    ----------
    stopped
        Ends the search early once true, never before the first evaluation.
    """
    import highspy

    num_rows = len(problem.limits)
    master = _Master(highspy, problem)
    best_value, best = math.inf, np.zeros(num_rows)
    at = best
    for _ in range(_EVALUATIONS_PER_ROW * (num_rows + 1)):
        value, slope = _evaluate(problem, at)
        if value < best_value:
            best_value, best = value, at
        if stopped is not None and stopped():
            break
        master.cut(at, value, slope)
        found = master.solve()
        if found is None:
            break
        at, lower = found
        if lower >= best_value - _DUAL_WIDTH * max(1.0, abs(best_value)) and not master.widen(at):
            break
    reduced = problem.value - best @ problem.rows
    top = np.maximum.reduceat(reduced, problem.first)
    total = math.fsum(top) + math.fsum(problem.limits * best)
    # Each term has been rounded some R + 2 times.
    added = math.fsum(np.abs(top)) + math.fsum(np.abs(problem.limits * best))
    added += math.fsum(np.maximum.reduceat(np.abs(problem.value), problem.first))
    bound = total + 4.0 * (num_rows + 2) * _EPS * added
    return Multipliers(bound=bound, regret=np.maximum(0.0, top[problem.group] - reduced))


def _evaluate(problem: Knapsack, at: FloatArray) -> tuple[float, FloatArray]:
    """Return L and a subgradient: what is left of the limits by the best choices."""
    reduced = problem.value - at @ problem.rows
    top = np.maximum.reduceat(reduced, problem.first)
    chosen = _first_best(problem, reduced, top)
    slope = problem.limits - problem.rows[:, chosen].sum(axis=1)
    return float(problem.limits @ at + top.sum()), slope


def _first_best(problem: Knapsack, reduced: FloatArray, top: FloatArray) -> IntArray:
    """Return (J,) the first best choice of each job."""
    group = problem.group
    hits = np.nonzero(reduced == top[group])[0]
    first = np.ones(len(hits), dtype=np.bool_)
    first[1:] = group[hits[1:]] != group[hits[:-1]]
    result: IntArray = hits[first]
    return result


class _Master:
    """The linear program of the cuts: min t, t >= L(at) + slope (x - at), 0 <= x <= box."""

    def __init__(self, highspy: Any, problem: Knapsack) -> None:
        self._highspy = highspy
        native = quiet_highs()
        native.setOptionValue("threads", 1)
        native.setOptionValue("presolve", "off")
        self._native = native
        spread = float(np.ptp(problem.value)) if len(problem.value) else 0.0
        size = np.abs(problem.rows)
        least = np.where(size > 0, size, np.inf).min(axis=1, initial=np.inf)
        # No capacity is worth more than all that a choice can gain by a unit of it.
        self._box = np.where(np.isfinite(least), spread / np.maximum(least, 1e-9) + 1e-12, 0.0)
        floors = len(problem.limits) - problem.num_floors
        mean = size.mean(axis=1) if size.size else least
        self._box[floors:] = spread / np.maximum(mean[floors:], 1e-12) + 1e-12
        self._floors, self._widenings = floors, 0
        for high in self._box:
            native.addVar(0.0, float(high))
        native.addVar(-highspy.kHighsInf, highspy.kHighsInf)
        native.changeColCost(len(self._box), 1.0)

    def cut(self, at: FloatArray, value: float, slope: FloatArray) -> None:
        """Add the cut of an evaluation."""
        count = len(slope)
        # Scaled, so that tolerances mean the same whatever the values are.
        scale = 1.0 / max(1.0, float(np.abs(slope).max(initial=0.0)))
        self._native.addRow(
            float(value - slope @ at) * scale, self._highspy.kHighsInf, count + 1,
            np.arange(count + 1, dtype=np.int32), np.append(-slope, 1.0) * scale,
        )  # fmt: skip

    def solve(self) -> tuple[FloatArray, float] | None:
        """Return the best point and its value; None where HiGHS fails."""
        self._native.run()
        if self._native.getModelStatus() != self._highspy.HighsModelStatus.kOptimal:
            return None
        point = np.array(self._native.getSolution().col_value)
        at: FloatArray = np.clip(point[:-1], 0.0, self._box)
        return at, float(point[-1])

    def widen(self, at: FloatArray) -> bool:
        """Widen the box of the floors where `at` touches it; tell whether it did."""
        wide = np.nonzero(at >= self._box * (1.0 - 1e-9))[0]
        wide = wide[wide >= self._floors]
        if not len(wide) or self._widenings >= _MOST_WIDENINGS:
            return False
        self._widenings += 1
        for row in wide:
            self._box[row] *= 10.0
            self._native.changeColBounds(int(row), 0.0, float(self._box[row]))
        return True


def select(
    problem: Knapsack,
    engine: Engine,
    options: SolveOptions,
    control: SolveControl,
    rounded: Callable[[float], float] = lambda bound: bound,
) -> Selection:
    """Solve `problem` on cores that grow until the optimum is proven or `control` says stop.

    Parameters
    ----------
    rounded
        Rounds a bound down to what can be reached.
    """
    found, coarse = _select(problem, engine, options, control, rounded)
    if found.chosen is None or control.stopped:
        return found
    left = found.regret <= coarse
    largest = float(np.abs(problem.value).max(initial=0.0))
    if left.all() or float(np.abs(problem.value[left]).max(initial=0.0)) > _FINER * largest:
        return found
    # What is better than the solution known consists of choices that are left.
    places = np.nonzero(left)[0]
    rest = replace(
        problem,
        first=np.nonzero(np.diff(problem.group[places], prepend=-1))[0],
        value=problem.value[places],
        rows=problem.rows[:, places],
    )
    finer = select(rest, engine, options, control, rounded)
    if finer.chosen is None:
        return replace(found, bound=max(found.dual_bound, found.value))
    regret = np.full(len(problem.value), np.inf)
    regret[places] = finer.regret
    return replace(finer, chosen=places[finer.chosen], regret=regret)


def _select(
    problem: Knapsack,
    engine: Engine,
    options: SolveOptions,
    control: SolveControl,
    rounded: Callable[[float], float],
) -> tuple[Selection, float]:
    """Solve `problem` as :func:`select` does, by tolerances relative to its largest value.

    Returns
    -------
    selection, coarse
        The answer, and the regret that no choice of a better solution exceeds.
    """
    # Tolerances of HiGHS are absolute: the largest value becomes one from 1 to 2.
    scale = 2.0 ** -math.floor(math.log2(float(np.abs(problem.value).max(initial=0.0)) or 1.0))
    problem = replace(problem, value=problem.value * scale)
    dual = multipliers(problem, lambda: control.stopped)
    bound = rounded(dual.bound / scale) * scale
    chosen, value = None, -math.inf
    tie = _TIE * float(np.ptp(problem.value))
    order = np.sort(dual.regret[dual.regret > tie])
    place, core_size = _FIRST_CORE, 0
    infeasible = False
    while not control.stopped:
        width = math.inf if place >= len(order) else float(order[place])
        if chosen is not None:
            # Beyond this nothing can be part of a better solution.
            last = _gap(dual.bound, value)
            if np.count_nonzero(dual.regret <= last) <= _NEARLY * np.count_nonzero(
                dual.regret <= width
            ):
                width = last
            width = min(width, last)
        near = dual.regret <= width
        whole = bool(near.all())
        # A core that cannot be the last one need not be solved to the end.
        open_gap = _gap(dual.bound, value) if chosen is not None else 0.0
        loose = 0.0 if whole or width >= open_gap else _LOOSE * open_gap
        params: dict[str, Any] = {"mip_abs_gap": loose} if loose > 0.0 else {}
        if place >= _LARGE_CORE:
            params["presolve"] = "off"
        asked = replace(options, params=params) if params else options
        found = _solve_core(problem, near, engine, asked, control)
        core_size = found.size
        if found.chosen is not None:
            worth = float(problem.value[found.chosen].sum())
            if worth > value:
                chosen, value = found.chosen, worth
        infeasible = whole and found.infeasible
        if infeasible:
            break
        if chosen is not None:
            closed = value >= bound - _SAME * max(1.0, abs(value))
            exact = found.proven and loose == 0.0
            if closed or (exact and (whole or width >= _gap(dual.bound, value))):
                bound = value
                break
        if not found.proven:
            break
        place *= _CORE_GROWTH
    assert chosen is None or len(chosen) == len(problem.first)
    coarse = _gap(dual.bound, value) / scale if chosen is not None else math.inf
    selection = Selection(
        chosen=chosen,
        value=value / scale,
        bound=bound / scale,
        regret=dual.regret / scale,
        dual_bound=dual.bound / scale,
        infeasible=infeasible,
        num_core=core_size,
    )
    return selection, coarse


def _gap(bound: float, value: float) -> float:
    """Return the regret that no choice of a better solution exceeds."""
    return max(0.0, bound - value) + _SAME * max(1.0, abs(value))


@dataclass(frozen=True, slots=True, eq=False)
class _CoreAnswer:
    chosen: IntArray | None
    proven: bool
    infeasible: bool
    size: int


def _solve_core(
    problem: Knapsack,
    near: BoolArray,
    engine: Engine,
    options: SolveOptions,
    control: SolveControl,
) -> _CoreAnswer:
    """Solve the problem with the choices `near` alone; jobs with one of them are decided."""
    group = problem.group
    counts = np.bincount(group[near], minlength=len(problem.first))
    decided = np.nonzero(near & (counts[group] == 1))[0]
    open_choices = np.nonzero(near & (counts[group] > 1))[0]
    limits = problem.limits - problem.rows[:, decided].sum(axis=1)
    if not len(open_choices):
        slack = 1e-9 * np.maximum(1.0, np.abs(problem.limits))
        fits = bool((limits >= -slack).all())
        return _CoreAnswer(decided if fits else None, True, not fits, 0)
    builder = ModelBuilder()
    columns = builder.add_columns("choice", len(open_choices))
    jobs, row_of = np.unique(group[open_choices], return_inverse=True)
    rows = builder.add_rows("one", len(jobs), lower=1.0, upper=1.0)
    builder.add_entries(rows[row_of], columns, 1.0)
    capacities = len(limits) - problem.num_floors
    rows = builder.add_rows("capacity", capacities, upper=limits[:capacities])
    for row in range(capacities):
        taken = problem.rows[row, open_choices]
        used = np.nonzero(taken)[0]
        builder.add_entries(np.full(len(used), rows[row]), columns[used], taken[used])
    floors = [
        (-problem.rows[row, open_choices], -float(limits[row]))
        for row in range(capacities, len(limits))
    ]
    model = builder.build().with_objective(problem.value[open_choices], floors)
    answer = engine.maximise(
        model,
        rounding="optimistic",
        hint=None,
        seconds=control.left_s,
        options=options,
        control=control,
    )
    chosen = None
    if answer.x is not None:
        taken = np.nonzero(answer.x > 0.5)[0]
        chosen = np.sort(np.concatenate([decided, open_choices[taken]]))
    return _CoreAnswer(chosen, answer.proven, answer.infeasible, len(open_choices))
