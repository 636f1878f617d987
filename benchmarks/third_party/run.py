"""Solve third-party instances and hold what is found against their known values."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.third_party.assignment import read_assignment
from benchmarks.third_party.instance import FormatError, GivenPlans
from benchmarks.third_party.knapsack import read_knapsack
from benchmarks.third_party.projects import least_makespan, read_project

if TYPE_CHECKING:
    from edgeflow_opt.solvers.mip.engine import Engine

#: What is solved: folders of the data.
KINDS = ("gap", "mmkp", "mmrcpsp")

ENGINES = ("cpsat", "highs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An instance, what is known of it, and what an engine has found.

    Parameters
    ----------
    kind, instance, solver
        Folder, file and engine.
    known, known_optimal
        The known value, in the terms of the file, and whether its source says that it is proven.
    value, bound
        Ours; None = none.
    proven
        Whether ours is proven optimal here, within the engine's tolerance.
    gap
        (bound - value) / |value| without its sign; None where there is no value.
    worse
        How much ours is worse than the known value, relative; negative = better.
    seconds
        Of reading, building and solving.
    """

    kind: str
    instance: str
    solver: str
    known: float
    known_optimal: bool
    value: float | None
    bound: float | None
    proven: bool
    gap: float | None
    worse: float | None
    seconds: float

    @property
    def contradiction(self) -> str | None:
        """What cannot be: None where all is well."""
        if self.value is None or self.worse is None:
            return None
        if self.known_optimal and self.worse < -1e-6:
            return f"value {self.value:g} beats the proven optimum {self.known:g}"
        if self.proven and self.worse > 1e-6:
            return f"{self.value:g} is said to be optimal, but {self.known:g} is known"
        return None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def rows(folder: Path, kinds: tuple[str, ...], seconds: float) -> Iterator[Row]:
    """Yield a row for every instance of `kinds` under `folder` and every engine.

    Raises
    ------
    FormatError
        If a file is not as it should be.
    """
    for kind in kinds:
        for known in _known(folder / kind):
            path, value, proved = known["path"], known["value"], known["proved"]
            if kind == "mmrcpsp":
                begin = time.perf_counter()
                found, bound, proven = least_makespan(read_project(path), seconds)
                yield _row(
                    kind, path.name, "cpsat", value, proved, found, bound, proven, 1.0, begin
                )
                continue
            for engine in ENGINES:
                begin = time.perf_counter()
                layout = known["layout"]
                problem = read_assignment(path, layout) if kind == "gap" else read_knapsack(path)
                found, bound, proven = solve_given_plans(problem, engine, seconds)
                sign = 1.0 if problem.minimise else -1.0
                yield _row(
                    kind, path.name, engine, value, proved, found, bound, proven, sign, begin
                )


def _known(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield path, known value and whether it is proven, of every instance of a kind."""
    table = folder / "values.csv"
    if not table.is_file():
        raise FormatError(f"{table}: must be the table of known values; it is not there")
    places = {path.name: path for path in sorted(folder.rglob("*")) if path.is_file()}
    with table.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            name = line["file"]
            if name not in places:
                raise FormatError(f"{table}: file {name}: must lie beside the table")
            value = line.get("best_value") or line.get("value") or line.get("makespan")
            optimum = line.get("optimum")
            proved = line.get("proved") == "yes" or (optimum is not None and optimum == value)
            yield {
                "path": places[name],
                "value": float(value or "nan"),
                "proved": proved,
                "layout": line.get("format", "orlibrary"),
            }


def _row(
    kind: str,
    name: str,
    solver: str,
    known: float,
    known_optimal: bool,
    value: float | None,
    bound: float | None,
    proven: bool,
    sign: float,
    begin: float,
) -> Row:
    gap = worse = None
    if value is not None:
        scale = max(1e-9, abs(value))
        gap = None if bound is None else max(0.0, sign * (value - bound) / scale)
        worse = sign * (value - known) / max(1e-9, abs(known)) + 0.0
    return Row(
        kind=kind, instance=name, solver=solver, known=known, known_optimal=known_optimal,
        value=value, bound=bound, proven=proven, gap=gap, worse=worse,
        seconds=time.perf_counter() - begin,
    )  # fmt: skip


def solve_given_plans(
    problem: GivenPlans, engine: str, seconds: float
) -> tuple[float | None, float | None, bool]:
    """Solve a plan master with given columns by CP-SAT or HiGHS.

    Returns
    -------
    value, bound, proven
        In the terms of the file; None = none. The value is that of the plans chosen, which have
        been checked against the capacities.
    """
    import numpy as np

    from edgeflow_opt.formulations.plan_columns import build_master
    from edgeflow_opt.solvers.base import SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.cpsat import CpSatEngine
    from edgeflow_opt.solvers.mip.highs import HighsEngine

    chosen: Engine = CpSatEngine() if engine == "cpsat" else HighsEngine()
    obliged = np.ones(problem.num_groups, dtype=np.bool_)
    model = build_master(problem.columns, problem.capacity, obliged)
    model = model.with_objective(problem.value)
    control = SolveControl(seconds)
    answer = chosen.maximise(
        model, rounding="pessimistic", hint=None, seconds=seconds, options=SolveOptions(),
        control=control,
    )  # fmt: skip
    bound = None
    if np.isfinite(answer.bound):
        # Values are whole: so are the values that can be reached.
        slack = chosen.bound_slack * max(1.0, abs(answer.bound))
        bound = float(np.floor(answer.bound + slack + 1e-6))
    if answer.x is None:
        return None, None if bound is None else problem.stated(bound), False
    x = np.rint(answer.x)
    activity = model.row_activity(x)
    if (activity > model.row_upper + 1e-9).any() or (activity < model.row_lower - 1e-9).any():
        raise AssertionError(f"{problem.name}: {engine} breaks a row of the model")
    value = float(problem.value @ x)
    proven = bound is not None and bound <= value + 1e-6
    stated = None if bound is None else problem.stated(max(value, bound))
    return problem.stated(value), stated, proven
