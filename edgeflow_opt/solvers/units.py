"""Weights in a unit in which solvers can tell them apart.

Solvers and their tolerances are made for objectives of about one a job, and bounds on sums of whole
weights may be rounded down. So weights that are multiples of the lightest are divided by it, and
others that are far from one by a power of two, which changes no bit of their mantissas; what is
found is multiplied back.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, LevelReport

#: The heaviest job may weigh between these two without a change of unit.
_LIGHTEST, _HEAVIEST = 1.0, 2.0**20
#: No weight grows beyond this.
_LARGEST = 2.0**49


@dataclass(frozen=True, slots=True)
class Unit:
    """What solvers see of the objective: their values times these are the caller's.

    Parameters
    ----------
    weight
        For met weight, progress and leftover.
    level_1
        For what `bound` bounds: the met weight, or the weighted sum.
    """

    weight: float = 1.0
    level_1: float = 1.0

    def restored(self, report: LevelReport) -> LevelReport:
        """Return what a solver says of a level in the unit of the caller."""
        factor = {
            "weighted": self.level_1,
            "cost": 1.0,
            "reconfigurations": 1.0,
        }.get(report.level, self.weight)
        return dataclasses.replace(
            report,
            value=report.value * factor,
            bound=None if report.bound is None else report.bound * factor,
        )


def in_unit_of_solvers(problem: EpochProblem) -> tuple[EpochProblem, Unit]:
    """Return `problem` with weights near 1, and the unit that leads back.

    Weights become w_j / u, where u is the lightest weight of a job with a deadline if all others are
    multiples of it, else 1 or, where the heaviest is far from 1, the largest power of two not above
    it; in a weighted sum the weights of cost and reconfigurations are divided by u too,
    then all weights of levels by the largest power of two v not above that of level 1, so that the
    sum is divided by u v. The same object comes back where nothing has to change.
    """
    weights = [job.weight for job in problem.jobs if job.weight > 0.0]
    counted = [job.weight for job in problem.jobs if job.weight > 0.0 and job.deadline is not None]
    unit = _common_unit(counted, max(weights, default=1.0))
    if unit is None:
        unit = _unit_of(max(counted or weights, default=1.0), max(weights, default=1.0))
    levels = problem.objective.weights
    if problem.objective.mode != "weighted" or levels is None:
        if unit == 1.0:
            return problem, Unit()
        return _divided(problem, unit), Unit(weight=unit, level_1=unit)
    largest = max(levels.met, levels.cost / unit, levels.reconfigurations / unit)
    of_sum = _unit_of(levels.met if levels.met > 0.0 else 1.0, largest)
    if unit == of_sum == 1.0:
        return problem, Unit()
    changed = dataclasses.replace(
        levels,
        met=levels.met / of_sum,
        progress=levels.progress / of_sum,
        leftover=levels.leftover / of_sum,
        cost=levels.cost / unit / of_sum,
        reconfigurations=levels.reconfigurations / unit / of_sum,
    )
    objective = dataclasses.replace(problem.objective, weights=changed)
    return (
        _divided(problem, unit).replace(objective=objective),
        Unit(weight=unit, level_1=unit * of_sum),
    )


def _common_unit(weights: list[float], largest: float) -> float | None:
    """Return the lightest of `weights` if all are multiples of it; None if they are not."""
    unit = min(weights, default=1.0)
    if max(weights, default=1.0) > _HEAVIEST * unit or largest > _LARGEST * unit:
        return None
    multiples = (round(weight / unit) for weight in weights)
    if all(k * unit == weight for k, weight in zip(multiples, weights, strict=True)):
        return unit
    return None


def _unit_of(heaviest: float, largest: float) -> float:
    """Return the power of two to divide by, so that `largest` stays within bounds."""
    usual = _LIGHTEST <= heaviest <= _HEAVIEST
    unit = 1.0 if usual else 2.0 ** (math.frexp(heaviest)[1] - 1)
    if largest <= _LARGEST * unit:
        return unit
    return 2.0 ** math.frexp(largest / _LARGEST)[1]


def _divided(problem: EpochProblem, unit: float) -> EpochProblem:
    """Return `problem` with all weights of jobs divided by `unit`."""
    if unit == 1.0:
        return problem
    return problem.replace(
        jobs=tuple(dataclasses.replace(job, weight=job.weight / unit) for job in problem.jobs)
    )
