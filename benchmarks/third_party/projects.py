"""Multi-mode project scheduling (RCPSP) in the layout of PSPLIB, and a CP-SAT model of it.

It is no plan master: precedence ties the plans of different jobs together, and non-renewable
resources are used up over the whole horizon, not slot by slot. So the formulations of the package do
not take part; the model here, on optional intervals, only checks the reader against known values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.third_party.instance import FormatError


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectMode:
    """A way to carry out an activity: its duration, and units of the resources, renewable first."""

    duration: int
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project; activities count from 0, the first and last are its beginning and end.

    Parameters
    ----------
    name
        Of the file.
    horizon
        No schedule need be longer.
    successors, modes
        Of each activity.
    renewable
        Number of renewable resources.
    capacity
        Of all resources, renewable first.
    """

    name: str
    horizon: int
    successors: tuple[tuple[int, ...], ...]
    modes: tuple[tuple[ProjectMode, ...], ...]
    renewable: int
    capacity: tuple[int, ...]


def read_project(path: Path) -> Project:
    """Return the project of a PSPLIB file.

    Raises
    ------
    FormatError
        If a section or a line is missing or has another number of entries than it should.
    """
    text = path.read_text(encoding="ascii", errors="replace")

    def number(label: str) -> int:
        found = re.search(rf"{label}\s*:\s*(\d+)", text)
        if found is None:
            raise FormatError(f"{path}: {label!r}: must be followed by ': number'")
        return int(found[1])

    def rows(section: str) -> list[list[int]]:
        _, _, rest = text.partition(section)
        block = rest.split("\n***")[0]
        lines = [line.split() for line in block.splitlines()]
        found = [[int(word) for word in line] for line in lines if line and _whole(line)]
        if not found:
            raise FormatError(f"{path}: section {section!r}: must have lines of whole numbers")
        return found

    horizon = number("horizon")
    count = number(r"jobs \(incl\. supersource/sink \)")
    renewable, others = number("- renewable"), number("- nonrenewable")
    relations = rows("PRECEDENCE RELATIONS:")
    if len(relations) != count or any(len(r) != 3 + r[2] for r in relations):
        raise FormatError(f"{path}: PRECEDENCE RELATIONS: must have {count} whole lines")
    modes: list[list[ProjectMode]] = []
    width = renewable + others
    for row in rows("REQUESTS/DURATIONS:"):
        if len(row) == 3 + width:
            modes.append([])
            row = row[1:]
        if len(row) != 2 + width or not modes:
            raise FormatError(f"{path}: REQUESTS/DURATIONS: a line has {len(row)} numbers")
        modes[-1].append(ProjectMode(duration=row[1], units=tuple(row[2:])))
    if [len(found) for found in modes] != [relation[1] for relation in relations]:
        raise FormatError(f"{path}: REQUESTS/DURATIONS: modes must be as many as announced")
    capacity = rows("RESOURCEAVAILABILITIES:")[0]
    if len(capacity) != width:
        raise FormatError(f"{path}: RESOURCEAVAILABILITIES: must be {width} numbers")
    return Project(
        name=path.name,
        horizon=horizon,
        successors=tuple(tuple(job - 1 for job in relation[3:]) for relation in relations),
        modes=tuple(tuple(found) for found in modes),
        renewable=renewable,
        capacity=tuple(capacity),
    )


def _whole(words: list[str]) -> bool:
    return all(word.isdigit() for word in words)


def least_makespan(project: Project, seconds: float) -> tuple[float | None, float, bool]:
    """Return the shortest makespan found (None = none), a bound on it, and whether it is proven."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    horizon = project.horizon
    starts, ends, chosen = [], [], []
    demands: list[tuple[Any, ProjectMode, Any]] = []
    for job, modes in enumerate(project.modes):
        start = model.new_int_var(0, horizon, f"start{job}")
        end = model.new_int_var(0, horizon, f"end{job}")
        taken = [model.new_bool_var(f"mode{job}_{k}") for k in range(len(modes))]
        for mode, on in zip(modes, taken, strict=True):
            interval = model.new_optional_interval_var(start, mode.duration, end, on, f"run{job}")
            demands.append((interval, mode, on))
        model.add_exactly_one(taken)
        starts.append(start)
        ends.append(end)
        chosen.append(taken)
    for job, successors in enumerate(project.successors):
        for after in successors:
            model.add(starts[after] >= ends[job])
    for resource, capacity in enumerate(project.capacity):
        if resource < project.renewable:
            model.add_cumulative(
                [interval for interval, _, _ in demands],
                [mode.units[resource] for _, mode, _ in demands],
                capacity,
            )
        else:
            model.add(sum(mode.units[resource] * on for _, mode, on in demands) <= capacity)
    model.minimize(ends[-1])
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    solver.parameters.catch_sigint_signal = False
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, solver.best_objective_bound, status == cp_model.INFEASIBLE
    return solver.objective_value, solver.best_objective_bound, status == cp_model.OPTIMAL
