"""When a target is met: a figure of every run, the goal for it, and how many runs must reach it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.records import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """A goal for one figure of a run; smaller is better.

    Parameters
    ----------
    what
        The figure and its goal, for people.
    unit
        Unit of the figure.
    figure
        Takes it from a record; None = it cannot be told, which misses the goal.
    goal
        What it may be at most.
    grain
        Met weight between value and bound that is good enough, whatever the figure.
    share
        Share of the runs that must reach the goal.
    in_time
        Whether a run must also keep its limit within 10 %.
    """

    what: str
    unit: str
    figure: Callable[[Record], float | None]
    goal: float
    grain: float = 0.0
    share: float = 1.0
    in_time: bool = True

    def reached(self, record: Record) -> bool:
        """Whether the run reaches the goal."""
        if self.in_time and record.limit_s is not None and record.seconds > 1.1 * record.limit_s:
            return False
        if self.grain and record.open is not None and record.open <= self.grain:
            return True
        figure = self.figure(record)
        return figure is not None and figure <= self.goal

    def judge(self, records: Sequence[Record]) -> Judgement:
        """Return what the runs of a target reach together."""
        figures = [figure if (figure := self.figure(r)) is not None else math.inf for r in records]
        good = sum(map(self.reached, records))
        return Judgement(
            good=good,
            runs=len(records),
            median=statistics.median(figures) if figures else math.inf,
            worst=max(figures, default=math.inf),
            met=bool(records) and good >= self.share * len(records) - 1e-9,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the runs of a target reach.

    Parameters
    ----------
    good, runs
        Runs that reach the goal, and all.
    median, worst
        Of the figure; infinite = not known.
    met
        Whether the target is met.
    """

    good: int
    runs: int
    median: float
    worst: float
    met: bool


def _gap(record: Record) -> float | None:
    return None if record.gap is None else 100.0 * record.gap


def _more_open(record: Record) -> float | None:
    before = record.figures.get("open_before")
    return None if before is None or record.open is None else record.open - before


def optimal(share: float) -> Criterion:
    """Proven optimal on at least `share` of the instances."""
    what = f"optimal on {10 * share:g} of 10"
    return Criterion(what=what, unit="% gap", figure=_gap, goal=0.0, share=share)


def gap_at_most(percent: float, grain: float = 0.0) -> Criterion:
    """Proven gap of at most `percent`, or of `grain` in met weight, on every instance."""
    what = f"gap <= {percent:g} %" + (f" or {grain:g} job" if grain else "")
    return Criterion(what=what, unit="% gap", figure=_gap, goal=percent, grain=grain)


def not_worse() -> Criterion:
    """No more met weight between value and bound than before the arrival."""
    return Criterion(what="gap not worse", unit="jobs more open", figure=_more_open, goal=0.0)


def milliseconds_at_most(goal: float) -> Criterion:
    """At most `goal` milliseconds for the heuristic alone, its arrays built."""
    return Criterion(
        what=f"<= {goal:g} ms",
        unit="ms",
        figure=lambda record: record.figures.get("milliseconds"),
        goal=goal,
        in_time=False,
    )


def memory_at_most(gigabytes: float) -> Criterion:
    """At most that much memory for the process of the solve."""
    return Criterion(
        what=f"peak <= {gigabytes:g} GB",
        unit="GB",
        # A run that failed early is no witness.
        figure=lambda r: None if r.value is None or r.peak_mb is None else r.peak_mb / 1024.0,
        goal=gigabytes,
        in_time=False,
    )
