"""How solvers fare over many instances: performance profiles, and gaps over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from edgeflow_opt.analysis.rows import Row

#: Measures of profiles.
PROFILE_MEASURES = ("seconds", "value")

#: Kinds of gaps over time.
GAP_KINDS = ("primal", "proven")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The performance profile of one solver.

    Parameters
    ----------
    solver
        Its name.
    measure
        ``"seconds"`` or ``"value"``.
    ratios
        Its performance ratios, rising, each at least 1; runs that did not succeed are left out.
    runs
        Number of runs that the profile is about, those without success included.
    """

    solver: str
    measure: str
    ratios: tuple[float, ...]
    runs: int

    def share(self, tau: float) -> float:
        """Return the share of runs whose ratio is at most `tau`: rho_s(tau)."""
        if self.runs == 0:
            return 0.0
        return sum(ratio <= tau * (1.0 + 1e-12) for ratio in self.ratios) / self.runs


def performance_profiles(rows: Sequence[Row], measure: str = "seconds") -> tuple[Profile, ...]:
    r"""Return the performance profiles of the solvers.

    With the figure :math:`t_{p,s}` of solver s in run p (an instance with a seed), the ratio is
    :math:`r_{p,s} = t_{p,s} / \min_s t_{p,s}`, infinite without success, and the profile
    :math:`\rho_s(\tau)` the share of runs with :math:`r_{p,s} \le \tau`.

    Parameters
    ----------
    rows
        Of a comparison.
    measure
        ``"seconds"``: wall time to the proof of level 1 or of infeasibility
        (:attr:`~edgeflow_opt.analysis.rows.Row.proof_s`), so heuristics never succeed; what levels
        below take after it does not count. ``"value"``: best value of any solver over its own, so that smaller is better
        here too; success is a schedule with a value above 0 (all succeed where none has more
        than 0).

    Raises
    ------
    UsageError
        If the measure is not known.

    References
    ----------
    Dolan, E. D., More, J. J. (2002). Benchmarking optimization software with performance profiles.
    Mathematical Programming 91, 201-213.
    """
    if measure not in PROFILE_MEASURES:
        raise UsageError(
            f"measure {measure!r} has no profile; known are {', '.join(PROFILE_MEASURES)}"
        )
    solvers = tuple(dict.fromkeys(row.solver for row in rows))
    runs: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows:
        runs.setdefault((row.instance, row.seed), {})[row.solver] = row
    ratios: dict[str, list[float]] = {solver: [] for solver in solvers}
    for run in runs.values():
        for solver, ratio in _ratios(run, measure).items():
            ratios[solver].append(ratio)
    return tuple(
        Profile(
            solver=solver, measure=measure, ratios=tuple(sorted(ratios[solver])), runs=len(runs)
        )
        for solver in solvers
    )


def _ratios(run: dict[str, Row], measure: str) -> dict[str, float]:
    """Return the ratio of each solver that succeeds in one run."""
    if measure == "seconds":
        # Below a microsecond a clock tells nothing.
        times = {
            solver: max(row.proof_s, 1e-6) for solver, row in run.items() if row.proof_s is not None
        }
        best = min(times.values(), default=1.0)
        return {solver: seconds / best for solver, seconds in times.items()}
    values = {solver: row.value for solver, row in run.items() if row.value is not None}
    best = max(values.values(), default=0.0)
    if best <= 0:
        return {solver: 1.0 for solver, value in values.items() if value == best}
    return {solver: best / value for solver, value in values.items() if value > 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class GapCurve:
    """The gap of one solver over time, over all its runs.

    Parameters
    ----------
    solver
        Its name.
    kind
        ``"primal"`` or ``"proven"``.
    seconds
        Times, rising, at which the curve changes.
    mean
        Mean gap over the runs from each time to the next, 0 to 1.
    low, high
        Least and largest gap among the runs then.
    runs
        Number of runs.
    """

    solver: str
    kind: str
    seconds: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    runs: int

    def integral(self, until_s: float) -> float:
        """Return the integral of the mean gap from 0 to `until_s`, seconds; 1 before the curve.

        For the primal gap this is the primal integral (Berthold 2013): the smaller, the sooner good
        schedules were there.
        """
        total, at, gap = 0.0, 0.0, 1.0
        for time, after in zip(self.seconds, self.mean, strict=True):
            if time >= until_s:
                break
            total += gap * (time - at)
            at, gap = time, after
        return total + gap * max(0.0, until_s - at)


def gap_curves(rows: Sequence[Row], kind: str = "primal") -> tuple[GapCurve, ...]:
    r"""Return the gap over time of each solver, from the traces of its runs.

    Parameters
    ----------
    rows
        Of a comparison; rows without a trace are left out.
    kind
        ``"primal"``: :math:`|v^* - v(t)| / \max(|v^*|, |v(t)|)` with the best value v* of any row on
        the instance; 1 before the first schedule (Berthold's primal gap). ``"proven"``:
        :math:`(b(t) - v(t)) / \max(|b(t)|, |v(t)|)` with the run's own bound; 1 until there are
        both, so a heuristic stays at 1 and is left out.

    Raises
    ------
    UsageError
        If the kind is not known.

    References
    ----------
    Berthold, T. (2013). Measuring the impact of primal heuristics. Operations Research Letters 41,
    611-614.
    """
    if kind not in GAP_KINDS:
        raise UsageError(f"kind of gap {kind!r} is not known; known are {', '.join(GAP_KINDS)}")
    best: dict[str, float] = {}
    for row in rows:
        if row.value is not None:
            best[row.instance] = max(row.value, best.get(row.instance, -math.inf))
    curves = []
    for solver in dict.fromkeys(row.solver for row in rows):
        own = [row for row in rows if row.solver == solver and row.trace]
        steps = [_steps(row, kind, best.get(row.instance)) for row in own]
        if kind == "proven" and not any(row.bound is not None for row in own):
            continue
        if steps:
            curves.append(_merged(solver, kind, steps))
    return tuple(curves)


def _steps(row: Row, kind: str, best: float | None) -> list[tuple[float, float]]:
    """Return (time, gap from then on) of one run; the gap is 1 before the first."""
    found = []
    for seconds, value, bound in row.trace:
        target = best if kind == "primal" else bound
        gap = 1.0
        if value is not None and target is not None:
            scale = max(abs(value), abs(target))
            gap = min(1.0, abs(target - value) / scale) if scale > 0 else 0.0
        found.append((seconds, gap))
    return found


def _merged(solver: str, kind: str, runs: Sequence[list[tuple[float, float]]]) -> GapCurve:
    """Return the curve over all runs: a sweep through the changes of all of them."""
    changes = sorted((time, index, gap) for index, run in enumerate(runs) for time, gap in run)
    present = [1.0] * len(runs)
    seconds: list[float] = []
    mean: list[float] = []
    low: list[float] = []
    high: list[float] = []
    for position, (time, index, gap) in enumerate(changes):
        present[index] = gap
        if position + 1 < len(changes) and changes[position + 1][0] == time:
            continue
        seconds.append(time)
        mean.append(math.fsum(present) / len(present))
        low.append(min(present))
        high.append(max(present))
    return GapCurve(
        solver=solver, kind=kind, seconds=tuple(seconds), mean=tuple(mean), low=tuple(low),
        high=tuple(high), runs=len(runs),
    )  # fmt: skip
