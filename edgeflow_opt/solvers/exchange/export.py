"""A model as text: MPS, LP, CP-SAT protobuf, JSON."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt._version import __version__
from edgeflow_opt.errors import SolverFaultError, UsageError
from edgeflow_opt.formulations.named import NamedModel, named_model
from edgeflow_opt.formulations.plan_master import TooManyPlansError

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, ObjectiveValue
    from edgeflow_opt.solvers.mip.rounding import Rounding

#: Name of the JSON format.
MODEL_FORMAT = "edgeflow-model/1"


def export(
    problem: EpochProblem,
    formulation: str = "malleable",
    format: str = "mps",
    *,
    level: int = 1,
    keep: Mapping[str, float] | ObjectiveValue | None = None,
    rounding: Rounding = "pessimistic",
    output: str | Path | None = None,
) -> str:
    """Return the model of one level of `problem` as the text of a file for other solvers.

    Parameters
    ----------
    problem
        The instance.
    formulation, level, keep
        See :func:`edgeflow_opt.formulations.named.named_model`. Where there are too many plans for
        ``plan``, it has those that column generation needs to close the relaxation: the relaxation
        is that of all plans, the optimum in whole numbers may be below.
    format
        ``mps``: free MPS, a **minimisation** of the negated objective, since readers differ in what
        they make of a section OBJSENSE; ``lp``: CPLEX LP, a maximisation; ``cpsat``: the text
        form of CP-SAT's ``CpModelProto``; ``json``: :data:`MODEL_SCHEMA`.
    rounding
        For ``cpsat`` only, whose coefficients are whole: ``pessimistic``, so that every solution is
        a schedule, or ``optimistic``, so that the optimum is a bound.
    output
        File to write as well, whole or not at all; None = none.

    Returns
    -------
    text
        The text of the file. Rows and columns have the names of
        :mod:`edgeflow_opt.formulations.names`, by which
        :func:`~edgeflow_opt.solvers.exchange.import_solution` reads a solution back.

    Raises
    ------
    UsageError
        If the format is not known, the model cannot be built, or the file cannot be written.
    """
    if format not in FORMATS:
        raise UsageError(f"format {format!r} is not known; known are {', '.join(FORMATS)}")
    if rounding not in ("pessimistic", "optimistic"):
        raise UsageError(f"rounding: must be pessimistic or optimistic, got {rounding!r}")
    model = exported_model(problem, formulation, level, keep)
    text = cpsat_text(model, rounding) if format == "cpsat" else _WRITERS[format](model)
    if output is not None:
        from edgeflow_opt.problem.files import write_text

        write_text(output, text)
    return text


def exported_model(
    problem: EpochProblem,
    formulation: str,
    level: int,
    keep: Mapping[str, float] | ObjectiveValue | None,
) -> NamedModel:
    """Return the model; of too many plans, those that column generation finds."""
    try:
        return named_model(problem, formulation, level, keep)
    except TooManyPlansError:
        from edgeflow_opt.solvers.exchange.plan_pool import generated_plans

        return named_model(problem, formulation, level, keep, generated_plans(problem))


def mps_text(model: NamedModel) -> str:
    """Return `model` as free MPS, a minimisation of the negated objective."""
    return _by_highs(model, "mps", minimise=True)


def lp_text(model: NamedModel) -> str:
    """Return `model` as CPLEX LP, a maximisation."""
    return _by_highs(model, "lp", minimise=False)


def _header(model: NamedModel, mark: str, sense: str) -> str:
    of = "" if model.exact else " (of the plans generated, not of all)"
    lines = (
        (
            f"edgeflow-opt {__version__}: formulation {model.formulation}{of}, level {model.level}, "
            f"{sense}"
        ),
        "names: module edgeflow_opt.formulations.names; 'edgeflow import' reads solutions back",
    )
    return "".join(f"{mark} {line}\n" for line in lines)


def _by_highs(model: NamedModel, suffix: str, *, minimise: bool) -> str:
    """Return the text that HiGHS writes for a file name of the given suffix."""
    import highspy

    from edgeflow_opt.solvers.mip.highs import quiet_highs

    sparse = model.sparse
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = sparse.num_columns, sparse.num_rows
    lp.model_name_ = f"edgeflow_{model.formulation}"
    sign = -1.0 if minimise else 1.0
    lp.sense_ = highspy.ObjSense.kMinimize if minimise else highspy.ObjSense.kMaximize
    # Adding 0 turns -0 into 0.
    lp.col_cost_ = sign * sparse.objective + 0.0
    lp.col_lower_, lp.col_upper_ = sparse.col_lower, sparse.col_upper
    lp.row_lower_, lp.row_upper_ = sparse.row_lower, sparse.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_col_, lp.a_matrix_.num_row_ = sparse.num_columns, sparse.num_rows
    lp.a_matrix_.start_ = sparse.starts.astype(np.int32)
    lp.a_matrix_.index_ = sparse.indices.astype(np.int32)
    lp.a_matrix_.value_ = sparse.values
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(flag)] for flag in sparse.integer]
    lp.col_names_, lp.row_names_ = list(model.columns), list(model.rows)
    native = quiet_highs()
    if native.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverFaultError("highs refuses the model as invalid")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{suffix}"
        if native.writeModel(str(path)) == highspy.HighsStatus.kError:
            raise SolverFaultError(f"highs could not write the model as {suffix.upper()}")
        text = path.read_text(encoding="utf-8")
    # HiGHS ends LP files with sections that are empty here, and CBC takes the word bin for a name.
    text = text.replace("\ngen\nsemi\nend", "\nend").replace("\nbin\n", "\nbinaries\n")
    sign_text = "minimise -(" if minimise else "maximise ("
    return _header(model, "*" if minimise else "\\", f"{sign_text}{model.objective_name})") + text


def cpsat_text(model: NamedModel, rounding: Rounding = "pessimistic") -> str:
    """Return the CP-SAT model of the solver ``cpsat``, with names, as protobuf text."""
    from edgeflow_opt.solvers.mip.cpsat import native_model
    from edgeflow_opt.solvers.mip.rounding import integer_model

    native = native_model(model.sparse, integer_model(model.sparse, rounding))
    proto = native.proto
    proto.name = f"edgeflow_{model.formulation}"
    for variable, name in zip(proto.variables, model.columns, strict=True):
        variable.name = name
    for constraint, name in zip(proto.constraints, model.rows, strict=True):
        constraint.name = name
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pbtxt"
        if not native.export_to_file(str(path)):
            raise SolverFaultError("cpsat could not write the model as protobuf text")
        text = path.read_text(encoding="utf-8")
    return _header(model, "#", f"maximise ({model.objective_name}), rounding {rounding}") + text


def json_text(model: NamedModel) -> str:
    """Return the sparse model in format ``edgeflow-model/1`` (:data:`MODEL_SCHEMA`)."""
    import msgspec

    return msgspec.json.encode(model_document(model)).decode() + "\n"


def model_document(model: NamedModel) -> dict[str, Any]:
    """Return the sparse model as the document of :data:`MODEL_SCHEMA`."""
    sparse = model.sparse

    def finite(values: Any) -> list[float | None]:
        return [value if math.isfinite(value) else None for value in values.tolist()]

    return {
        "format": MODEL_FORMAT,
        "formulation": model.formulation,
        "level": model.level,
        "exact": model.exact,
        "objective": model.objective_name,
        "sense": "maximise",
        "columns": {
            "name": list(model.columns),
            "objective": sparse.objective.tolist(),
            "lower": sparse.col_lower.tolist(),
            "upper": sparse.col_upper.tolist(),
            "integer": sparse.integer.tolist(),
        },
        "rows": {
            "name": list(model.rows),
            "lower": finite(sparse.row_lower),
            "upper": finite(sparse.row_upper),
        },
        "matrix": {
            "starts": sparse.starts.tolist(),
            "indices": sparse.indices.tolist(),
            "values": sparse.values.tolist(),
        },
    }


def _array(items: dict[str, Any], description: str) -> dict[str, Any]:
    return {"type": "array", "items": items, "description": description}


def _object(description: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_NUMBER = {"type": "number"}
_SIDE = {"type": ["number", "null"]}
_INDEX = {"type": "integer", "minimum": 0}

#: JSON Schema of the JSON format: maximise c x subject to lower <= A x <= upper, bounds of columns.
MODEL_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": MODEL_FORMAT,
    **_object(
        "A mixed-integer model: maximise objective x subject to lower <= A x <= upper.",
        format={"const": MODEL_FORMAT},
        formulation={"enum": ["malleable", "moldable", "plan"]},
        level={"type": "integer", "minimum": 1, "maximum": 5},
        exact={
            "type": "boolean",
            "description": "Whether the optimum is that of the instance; false = a pool of plans.",
        },
        objective={"type": "string", "description": "What is maximised; '-' = its negative."},
        sense={"const": "maximise"},
        columns=_object(
            "The N columns, an array each.",
            name=_array({"type": "string"}, "Names, all different."),
            objective=_array(_NUMBER, "Coefficients of the objective."),
            lower=_array(_NUMBER, "Lower bounds."),
            upper=_array(_NUMBER, "Upper bounds."),
            integer=_array({"type": "boolean"}, "Whether the column is whole."),
        ),
        rows=_object(
            "The R rows, an array each.",
            name=_array({"type": "string"}, "Names, all different."),
            lower=_array(_SIDE, "Least value; null = none."),
            upper=_array(_SIDE, "Largest value; null = none."),
        ),
        matrix=_object(
            "A by rows (CSR): the entries of row r are those from starts[r] to starts[r+1].",
            starts=_array(_INDEX, "R + 1 places."),
            indices=_array(_INDEX, "Column of each entry."),
            values=_array(_NUMBER, "Value of each entry."),
        ),
    ),
}

_WRITERS: Mapping[str, Callable[[NamedModel], str]] = {
    "mps": mps_text,
    "lp": lp_text,
    "cpsat": cpsat_text,
    "json": json_text,
}

#: The formats by name, and what each is.
FORMATS: Mapping[str, str] = {
    "mps": "free MPS, a minimisation of the negated objective",
    "lp": "CPLEX LP, a maximisation",
    "cpsat": "CP-SAT's CpModelProto as protobuf text, whole numbers",
    "json": f"the sparse arrays, format {MODEL_FORMAT}",
}
