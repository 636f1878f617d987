"""A model of one level with readable names: what is given to other tools.

Level 1 is the weighted number of jobs met (or the weighted sum, where the objective is one). A model
of a later level keeps the levels before it by rows ``keep(level)``, whose values must be given.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.formulations.malleable import build_malleable
from edgeflow_opt.formulations.moldable import build_moldable
from edgeflow_opt.formulations.names import Names
from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.formulations.plan_master import build_plan_master
from edgeflow_opt.formulations.sparse import Block
from edgeflow_opt.problem.arrays import arrays_of

if TYPE_CHECKING:
    from edgeflow_opt.formulations.malleable import MalleableModel
    from edgeflow_opt.formulations.moldable import MoldableModel
    from edgeflow_opt.formulations.objectives import Level
    from edgeflow_opt.formulations.plan_columns import JobPlans
    from edgeflow_opt.formulations.plan_master import PlanMaster
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem import EpochProblem, ObjectiveValue
    from edgeflow_opt.problem.arrays import BoolArray

#: The formulations by name, and what each is.
FORMULATIONS: Mapping[str, str] = {
    "malleable": "time-indexed, all levels, losses included",
    "moldable": "every job in one mode and one run, start times enumerated; level 1",
    "plan": "one column per job and plan, enumerated or from a pool; level 1",
}

#: Relative amount by which a kept level may fall, so that solvers with tolerances can keep it.
KEEP_SLACK = 5e-8


@dataclass(frozen=True, slots=True, eq=False)
class NamedModel:
    """A model to be maximised, with a name for each row and column.

    Parameters
    ----------
    problem
        The instance.
    formulation
        One of :data:`FORMULATIONS`.
    level
        Number of the level that is maximised, from 1.
    objective_name
        What is maximised: the name of the level, with ``-`` before it where less is better, or
        ``weighted``.
    source
        The model before names, which decodes solutions.
    sparse
        Rows, columns and objective.
    exact
        Whether its optimum is that of the instance (of the jobs as moldable ones for ``moldable``);
        False for a plan master over a pool of plans.
    columns, rows
        Their names, all different; see :mod:`edgeflow_opt.formulations.names`.
    """

    problem: EpochProblem
    formulation: str
    level: int
    objective_name: str
    source: MalleableModel | MoldableModel | PlanMaster
    sparse: SparseModel
    exact: bool
    columns: tuple[str, ...]
    rows: tuple[str, ...]


def named_model(
    problem: EpochProblem,
    formulation: str = "malleable",
    level: int = 1,
    keep: Mapping[str, float] | ObjectiveValue | None = None,
    pool: JobPlans | None = None,
) -> NamedModel:
    """Return the model of one level of `problem`, with names.

    Parameters
    ----------
    problem
        The instance.
    formulation
        ``malleable``; ``moldable``, in which every job has one mode and one run, whatever the
        instance says; or ``plan``, with all plans enumerated.
    level
        1 = met (or the weighted sum), 2 = progress, 3 = leftover, 4 = cost, 5 = reconfigurations.
    keep
        The values that the levels before it must keep, by name, or the levels of a schedule; not
        needed for level 1. Costs and reconfigurations are given as they are, not negated.

    pool
        For ``plan``: the plans to choose from; None = all, enumerated.

    Raises
    ------
    UsageError
        If the formulation or level is not known, the formulation does not have the level or not
        the constraints of the instance, or a
        value to keep is missing or not finite.
    """
    if formulation not in FORMULATIONS:
        raise UsageError(
            f"formulation {formulation!r} is not known; known are {', '.join(FORMULATIONS)}"
        )
    if isinstance(level, bool) or not isinstance(level, int) or not 1 <= level <= len(LEVELS):
        raise UsageError(
            f"level: must be a whole number from 1 to {len(LEVELS)} "
            f"({', '.join(LEVELS)}), got {level!r}"
        )
    weights = problem.objective.weights
    if level > 1 and formulation != "malleable":
        raise UsageError(
            f"formulation {formulation} has level 1 only, got level {level}; take malleable"
        )
    if weights is not None and (level > 1 or formulation != "malleable"):
        raise UsageError(
            "the objective of the instance is a weighted sum, which only level 1 of formulation "
            "malleable has"
        )
    if problem.constraints and formulation == "plan":
        raise UsageError(
            f"formulation plan does not know constraints ('{problem.constraints[0].type}'); take "
            "malleable"
        )
    before = LEVELS[: level - 1]
    values = _kept_values(keep, before)
    arrays = arrays_of(problem)
    source: MalleableModel | MoldableModel | PlanMaster
    if formulation == "moldable":
        source = build_moldable(
            dataclasses.replace(arrays, malleable=np.zeros(arrays.num_jobs, dtype=np.bool_))
        )
    elif formulation == "plan":
        source = build_plan_master(arrays, pool)
    elif weights is not None:
        factors = {name: float(getattr(weights, name)) for name in LEVELS}
        source = build_malleable(
            arrays, tuple(name for name in LEVELS if factors[name] > 0 or name == "met")
        )
    else:
        source = build_malleable(arrays, LEVELS[:level])
    if weights is not None:
        objective = np.zeros(source.model.num_columns)
        for name, vector in source.objectives.items():
            objective = objective + factors[name] * vector
        objective_name = "weighted"
    else:
        objective = source.objectives[LEVELS[level - 1]]
        objective_name = _sign(LEVELS[level - 1]) + LEVELS[level - 1]
    kept = [name for name in before if source.objectives[name].any()]
    floors = [(source.objectives[name], _floor(name, values[name])) for name in kept]
    whole = _with_one_side(source.model.with_objective(objective, floors))
    names = Names(problem, arrays)
    columns = names.columns(source)
    rows = names.rows(source, whole, columns, kept)
    sparse, says_something = _without_empty_rows(whole)
    columns += ["void(0)"] * (sparse.num_columns - len(columns))
    return NamedModel(
        problem=problem,
        formulation=formulation,
        level=level,
        objective_name=objective_name,
        source=source,
        sparse=sparse,
        exact=pool is None,
        columns=tuple(columns),
        rows=tuple(itertools.compress(rows, says_something)),
    )


def _with_one_side(model: SparseModel) -> SparseModel:
    """Return `model` without lower sides that hold anyway, so that no row has two different ones.

    Readers differ in how they take rows of two sides.
    """
    row_of = np.repeat(np.arange(model.num_rows), np.diff(model.starts))
    has_negative = np.zeros(model.num_rows, dtype=np.bool_)
    has_negative[row_of[model.values < 0.0]] = True
    holds = ~has_negative & (model.row_lower <= 0.0) & (model.row_upper > model.row_lower)
    lower = np.where(holds, -np.inf, model.row_lower)
    return dataclasses.replace(model, row_lower=lower)


def _without_empty_rows(model: SparseModel) -> tuple[SparseModel, BoolArray]:
    """Return `model` without rows that say nothing, and which rows are kept.

    LP files have no way to write an empty row. One that cannot hold (a job that must be met has
    nothing to run) gets a column ``void`` that is 0, so that the model stays infeasible. A model
    without any column has that column too.
    """
    counts = np.diff(model.starts)
    empty = counts == 0
    broken = empty & ((model.row_lower > 0.0) | (model.row_upper < 0.0))
    kept = ~empty | broken
    before = np.concatenate([[0], np.cumsum(kept)])
    if broken.any() or not model.num_columns:
        void = model.num_columns
        model = dataclasses.replace(
            model,
            objective=np.append(model.objective, 0.0),
            col_lower=np.append(model.col_lower, 0.0),
            col_upper=np.append(model.col_upper, 0.0),
            integer=np.append(model.integer, True),
            indices=np.insert(model.indices, model.starts[:-1][broken], void),
            values=np.insert(model.values, model.starts[:-1][broken], 1.0),
            col_blocks=(*model.col_blocks, Block("void", void, void + 1)),
        )
        counts = counts + broken
    model = dataclasses.replace(
        model,
        row_lower=model.row_lower[kept],
        row_upper=model.row_upper[kept],
        row_soft=model.row_soft[kept],
        starts=np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64),
        row_blocks=tuple(
            Block(block.name, int(before[block.start]), int(before[block.stop]))
            for block in model.row_blocks
        ),
    )
    return model, kept


def _sign(level: Level) -> str:
    return "-" if level in ("cost", "reconfigurations") else ""


def _floor(level: Level, value: float) -> float:
    """Return the side of the row that keeps `level`, all levels being maximised."""
    signed = -value if _sign(level) else value
    return signed - KEEP_SLACK * max(1.0, abs(signed))


def _kept_values(
    keep: Mapping[str, float] | ObjectiveValue | None, before: tuple[Level, ...]
) -> dict[str, float]:
    """Return the value of each level of `before`, or say what is wrong with `keep`."""
    if keep is None:
        given: dict[str, float] = {}
    elif isinstance(keep, Mapping):
        given = dict(keep)
    else:
        given = {
            name: float(getattr(keep, "met_weight" if name == "met" else name) or 0.0)
            for name in before
        }
    unknown = [name for name in given if name not in LEVELS]
    if unknown:
        raise UsageError(f"keep: level {unknown[0]!r} is not known; known are {', '.join(LEVELS)}")
    missing = [name for name in before if name not in given]
    if missing:
        raise UsageError(
            f"level {len(before) + 1}: the values that the levels before it must keep are needed; "
            f"missing: {', '.join(missing)} (give them by name, or a schedule that has them)"
        )
    for name in before:
        value = given[name]
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise UsageError(f"keep: level {name!r} must be a finite number, got {value!r}")
    return {name: float(given[name]) for name in before}
