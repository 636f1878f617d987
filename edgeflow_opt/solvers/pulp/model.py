"""A formulation as a model of PuLP, written to what PuLP 3.3 and 4 share."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import SolverUnavailableError, how_to_install

if TYPE_CHECKING:
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem import EpochProblem, ObjectiveValue


def require_pulp(what: str) -> Any:
    """Return the module ``pulp``.

    Parameters
    ----------
    what
        What needs it, for the message.

    Raises
    ------
    SolverUnavailableError
        If PuLP is not installed.
    """
    if importlib.util.find_spec("pulp") is None:
        raise SolverUnavailableError(
            f"{what} needs PuLP, which is not installed; {how_to_install('pulp')}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pulp
    return pulp


def to_pulp(
    problem: EpochProblem,
    formulation: str = "malleable",
    level: int = 1,
    keep: Mapping[str, float] | ObjectiveValue | None = None,
) -> Any:
    """Return the model of one level of `problem` as a ``pulp.LpProblem`` to be maximised.

    Its variables and constraints have the names of :mod:`edgeflow_opt.formulations.names`. Once it
    is solved, ``import_solution(problem, {v.name: v.varValue for v in model.variables()})``
    gives the schedule, checked.

    Parameters
    ----------
    problem
        The instance.
    formulation, level, keep
        See :func:`edgeflow_opt.solvers.exchange.export`.

    Raises
    ------
    SolverUnavailableError
        If PuLP is not installed.
    UsageError
        As :func:`~edgeflow_opt.formulations.named.named_model`.
    """
    from edgeflow_opt.solvers.exchange.export import exported_model

    require_pulp("to_pulp()")
    named = exported_model(problem, formulation, level, keep)
    model, _ = pulp_model(named.sparse, named.columns, named.rows, f"edgeflow_{formulation}")
    return model


def pulp_model(
    sparse: SparseModel, columns: Sequence[str], rows: Sequence[str], name: str
) -> tuple[Any, list[Any]]:
    """Return a sparse model as ``pulp.LpProblem``, and its variables in the order of the columns."""
    pulp = require_pulp("a model of PuLP")
    # In PuLP 4 an expression is made by from_list, in 3 by the class itself.
    expression = getattr(pulp.LpAffineExpression, "from_list", pulp.LpAffineExpression)
    kinds = (pulp.LpContinuous, pulp.LpInteger)
    with warnings.catch_warnings():
        # PuLP 3.3 warns of what PuLP 4 has changed, also where both are served.
        warnings.simplefilter("ignore")
        model = pulp.LpProblem(name, pulp.LpMaximize)
        variables = [
            model.add_variable(label, low, high, kinds[integer])
            for label, low, high, integer in zip(
                columns, sparse.col_lower.tolist(), sparse.col_upper.tolist(),
                sparse.integer.tolist(), strict=True,
            )
        ]  # fmt: skip
        gains = sparse.objective.tolist()
        model.setObjective(
            expression([(v, gain) for v, gain in zip(variables, gains, strict=True) if gain])
        )
        starts, indices = sparse.starts.tolist(), sparse.indices.tolist()
        values = sparse.values.tolist()
        lower, upper = sparse.row_lower.tolist(), sparse.row_upper.tolist()
        for row, label in enumerate(rows):
            span = range(starts[row], starts[row + 1])
            terms = expression([(variables[indices[k]], values[k]) for k in span])
            low, high = lower[row], upper[row]
            if low == high:
                model.addConstraint(terms == low, label)
            elif high == float("inf"):
                model.addConstraint(terms >= low, label)
            else:
                # Rows of two different sides do not occur in the formulations.
                assert low == float("-inf"), label
                model.addConstraint(terms <= high, label)
    return model, variables
