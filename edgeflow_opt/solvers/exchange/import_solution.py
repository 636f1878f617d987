"""The way back: a solution of an exported model as a checked schedule."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import Fault, SolutionError
from edgeflow_opt.formulations.moldable import options_of
from edgeflow_opt.formulations.names import Names, holds_anything
from edgeflow_opt.formulations.plans import allocations_of, empty_plan, trim
from edgeflow_opt.problem import Schedule, SolveStatus, check, evaluate
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.solvers.exchange.solution_files import SolutionFile, read_solution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgeflow_opt.formulations.names import ColumnMeaning
    from edgeflow_opt.problem import CheckReport, EpochProblem
    from edgeflow_opt.problem.arrays import IntArray, ProblemArrays

#: How far a column may be from a whole number: solvers with tolerances say 0.9999999.
WHOLE_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A schedule read from a solution file, with the verdict of the checker.

    Parameters
    ----------
    schedule
        Status ``feasible`` and no bound: what the file claims is not believed.
    report
        The verdict of the independent checker.
    solution
        What the file says.
    unmet_claims
        Ids of the jobs that the file calls met (a column ``z`` above one half) and its plan does not
        meet, in the order of the instance.
    """

    schedule: Schedule
    report: CheckReport
    solution: SolutionFile
    unmet_claims: tuple[str, ...] = ()


def import_solution(
    problem: EpochProblem, solution: SolutionFile | Mapping[str, float] | str | Path
) -> Imported:
    """Return a solution of a model that was exported from `problem` as a checked schedule.

    The names say what each job holds; columns that follow from it (``z``, ``idle``, shares) are
    known and not used, but that a job called met is not is told. Slots held after a job has completed are dropped.

    Parameters
    ----------
    problem
        The instance that was exported.
    solution
        A file, what was read from one, or the values by name; a column that is not named is 0.

    Raises
    ------
    SolutionError
        If the file breaks its format, a name is not one of this instance, a value is not whole
        within 1e-4, or a job holds two modes at once; all faults together.
    """
    source = ""
    if isinstance(solution, (str, Path)):
        source, solution = str(solution), read_solution(solution)
    elif not isinstance(solution, SolutionFile):
        values = {name: float(value) for name, value in solution.items()}
        solution = SolutionFile(format="python", values=values)
    arrays = arrays_of(problem)
    plan = trim(arrays, _plan_of(problem, arrays, solution, source))
    allocations = allocations_of(problem, arrays, plan)
    value, outcomes = evaluate(problem, allocations)
    schedule = Schedule(
        solver=f"import:{solution.format}",
        status=SolveStatus.FEASIBLE,
        objective=value,
        allocations=allocations,
        outcomes=outcomes,
    )
    names = Names(problem, arrays)
    read = ((names.read(name), value) for name, value in solution.values.items())
    claimed = {
        meaning.job for meaning, value in read if meaning and meaning.kind == "z" and value > 0.5
    }
    return Imported(
        schedule=schedule,
        report=check(problem, schedule),
        solution=solution,
        unmet_claims=tuple(
            problem.jobs[job].id for job in sorted(claimed) if not outcomes[job].met
        ),
    )


def _plan_of(
    problem: EpochProblem, arrays: ProblemArrays, solution: SolutionFile, source: str
) -> IntArray:
    names = Names(problem, arrays)
    faults: list[Fault] = []
    held: list[tuple[str, ColumnMeaning]] = []
    for name, value in solution.values.items():
        meaning = names.read(name)
        if meaning is None:
            faults.append(
                Fault(
                    f"column {name!r}", "", "is not of a model of this instance",
                    remedy="give the instance that was exported, and keep the names of its columns",
                )
            )  # fmt: skip
        elif holds_anything(meaning):
            whole = round(value)
            if abs(value - whole) > WHOLE_TOLERANCE or whole not in (0, 1):
                faults.append(
                    Fault(
                        f"column {name!r}", "", "must be 0 or 1", f"{value:g}",
                        "solve the model with its columns whole, not its relaxation",
                    )
                )  # fmt: skip
            elif whole == 1:
                held.append((name, meaning))
    if faults:
        raise SolutionError(tuple(faults), source)
    plan = empty_plan(arrays)
    by_whom: dict[tuple[int, int], str] = {}
    reader = _Spans(arrays)
    for name, meaning in held:
        span = reader.modes(meaning)
        if span is None:
            faults.append(Fault(f"column {name!r}", "", "is not of a model of this instance"))
            continue
        for slot, mode in span:
            other = by_whom.setdefault((meaning.job, slot), name)
            if other != name:
                faults.append(
                    Fault(
                        f"job '{problem.jobs[meaning.job].id}'", f"slot {slot}",
                        "must hold one mode at most", f"{other!r} and {name!r}",
                    )
                )  # fmt: skip
            plan[meaning.job, slot] = mode
    if faults:
        raise SolutionError(tuple(faults), source)
    return plan


class _Spans:
    """The slots and modes that a column of any formulation stands for."""

    def __init__(self, arrays: ProblemArrays) -> None:
        self._arrays = arrays
        self._options: dict[tuple[int, int], int] | None = None

    def modes(self, meaning: ColumnMeaning) -> list[tuple[int, int]] | None:
        """Return pairs of slot and mode; None where the model has no such column."""
        if meaning.kind == "y":
            stop = self._stops().get((meaning.mode, meaning.slot))
            if stop is None:
                return None
            return [(slot, meaning.mode) for slot in range(meaning.slot, stop)]
        if meaning.kind == "plan":
            return [(slot, mode) for slot, mode in enumerate(meaning.plan) if mode >= 0]
        return [(meaning.slot, meaning.mode)]

    def _stops(self) -> dict[tuple[int, int], int]:
        if self._options is None:
            none = np.zeros(self._arrays.num_jobs, dtype=np.bool_)
            options = options_of(dataclasses.replace(self._arrays, malleable=none))
            keys = zip(options.mode.tolist(), options.start.tolist(), strict=True)
            self._options = dict(zip(keys, options.stop.tolist(), strict=True))
        return self._options
