"""Solution files of other solvers: names and values, whatever else the file says.

Read are the raw solution files of HiGHS (``--solution_file``), those of CBC (``-solution``), of
SCIP (``write solution``), of Gurobi (``.sol``), plain lines ``name value``, and JSON: an object of
names and values, or one with such an object under ``values``, ``variables`` or ``solution``. What a
file claims (status, objective) is kept for comparison and never believed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeflow_opt.errors import Fault, SolutionError
from edgeflow_opt.problem.files import read_bytes
from edgeflow_opt.problem.parsing import parse_json

Lines = Sequence[tuple[int, str]]

#: Where JSON files may keep the object of names and values.
_JSON_KEYS = ("values", "variables", "solution")

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class SolutionFile:
    """What a solution file says.

    Parameters
    ----------
    format
        ``highs``, ``cbc``, ``scip``, ``gurobi``, ``plain`` or ``json``.
    values
        Value of each column named; columns that are not named are 0.
    objective
        The objective that the file claims, in the sense of the model that was solved; None = none.
    status
        The status that it claims, in its own words; empty = none.
    """

    format: str
    values: Mapping[str, float]
    objective: float | None = None
    status: str = ""


def read_solution(path: str | Path) -> SolutionFile:
    """Read a solution file, whatever solver wrote it.

    Raises
    ------
    SolutionError
        If it is unreadable, has no solution, or has a line that is none of its format.
    """
    return parse_solution(read_bytes(path, SolutionError), str(path))


def parse_solution(data: bytes, source: str = "") -> SolutionFile:
    """Return what the content of a solution file says; see :func:`read_solution`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise _error(source, "file", f"is not UTF-8 text ({problem.reason})") from None
    if text.lstrip()[:1] in ("{", "["):
        return _json(data, source)
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]
    if not lines:
        raise _error(source, "file", "is empty", remedy="let the solver write its solution again")
    first = lines[0][1]
    if first == "Columns" and len(lines) > 1 and lines[1][1].startswith("Index"):
        raise _error(
            source, "file", "must not be of the style of HiGHS that is made for people", first,
            "let HiGHS write the raw style (write_solution_style 0)",
        )  # fmt: skip
    reader: Callable[[Lines, str], SolutionFile] = _plain
    if first.lower() == "model status":
        reader = _highs
    elif first.startswith(("solution status:", "objective value:")):
        reader = _scip
    elif _CBC_HEAD.match(first):
        reader = _cbc
    return reader(lines, source)


def _error(source: str, where: str, rule: str, value: str = "", remedy: str = "") -> SolutionError:
    return SolutionError((Fault(where, "", rule, value, remedy),), source)


def _values(pairs: Iterable[tuple[int, Sequence[str]]], source: str, form: str) -> dict[str, float]:
    """Return the values of lines ``name value``, or report every line that is none."""
    values: dict[str, float] = {}
    faults: list[Fault] = []
    for number, parts in pairs:
        if len(parts) != 2:
            faults.append(Fault(f"line {number}", "", f"must be {form}", repr(" ".join(parts))))
            continue
        name, text = parts
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            faults.append(Fault(f"line {number}", f"'{name}'", "must be a finite number", text))
        elif values.setdefault(name, value) != value:
            faults.append(Fault(f"line {number}", f"'{name}'", "is given twice, differently"))
    if faults:
        raise SolutionError(tuple(faults), source)
    return values


def _highs(lines: Lines, source: str) -> SolutionFile:
    """Read the raw style: ``Model status``, ``# Primal solution values``, ``# Columns N``, N lines."""
    status = lines[1][1] if len(lines) > 1 else ""
    begin = next((i for i, (_, line) in enumerate(lines) if line.startswith("# Columns")), None)
    has_primal = any(line == "# Primal solution values" for _, line in lines)
    if begin is None or not has_primal:
        raise _error(
            source, "file", "has no primal solution", status,
            "let HiGHS write the raw style (write_solution_style 0) once it has a solution",
        )  # fmt: skip
    if lines[begin - 1][1].lower() == "none" or any(line == "None" for _, line in lines[:begin]):
        raise _error(source, "file", "has no primal solution", status)
    count = int(lines[begin][1].split()[-1])
    body = lines[begin + 1 : begin + 1 + count]
    if len(body) < count:
        raise _error(source, "file", f"ends before its {count} columns", remedy="write it again")
    objective = next(
        (_number(line.split()[-1]) for _, line in lines[:begin] if line.startswith("Objective")),
        None,
    )
    values = _values(((n, line.split()) for n, line in body), source, "'name value'")
    return SolutionFile(format="highs", values=values, objective=objective, status=status)


_CBC_HEAD = re.compile(
    rf"(Optimal|Infeasible|Integer infeasible|Stopped|Unbounded|Unknown|Abandoned).*?"
    rf"(?:objective value\s+({_NUMBER}))?\s*$"
)


def _cbc(lines: Lines, source: str) -> SolutionFile:
    """Read a head with the status, then ``[**] index name value reduced_cost`` for values not 0."""
    head = lines[0][1]
    match = _CBC_HEAD.match(head)
    assert match is not None
    status = head.split(" - ")[0].strip()
    if status.lower().startswith(("infeasible", "integer infeasible", "unbounded")):
        raise _error(source, "file", "has no solution", head)
    if "no integer solution" in head:
        raise _error(source, "file", "has no whole solution, only that of a relaxation", head)

    def pairs() -> Iterable[tuple[int, Sequence[str]]]:
        for number, line in lines[1:]:
            # A line in doubt is marked by two asterisks: the checker will tell.
            parts = line.replace("**", " ").split()
            yield number, parts[1:3] if len(parts) in (3, 4) else parts + [""] * 3

    values = _values(pairs(), source, "'index name value reduced_cost'")
    objective = None if match[2] is None else float(match[2])
    return SolutionFile(format="cbc", values=values, objective=objective, status=status)


def _scip(lines: Lines, source: str) -> SolutionFile:
    """Read ``solution status:``, ``objective value:``, then ``name value (obj:c)`` for values not 0."""
    status, objective, body = "", None, []
    for number, line in lines:
        key, colon, rest = line.partition(":")
        if colon and key in ("solution status", "objective value"):
            if key == "solution status":
                status = rest.strip()
            else:
                objective = _number(rest.strip())
            continue
        if line.startswith("no solution available"):
            raise _error(source, "file", "has no solution", status)
        body.append((number, re.sub(r"\s*\(obj:[^()]*\)$", "", line).split()))
    values = _values(body, source, "'name value (obj:coefficient)'")
    return SolutionFile(format="scip", values=values, objective=objective, status=status)


def _plain(lines: Lines, source: str) -> SolutionFile:
    """Read lines ``name value``; those that begin with # are comments, as in Gurobi's files."""
    objective, is_gurobi = None, False
    body: list[tuple[int, Sequence[str]]] = []
    for number, line in lines:
        if line.startswith("#"):
            is_gurobi |= line.startswith("# Solution for model")
            found = re.match(rf"#\s*Objective value\s*=\s*({_NUMBER})", line)
            if found:
                objective, is_gurobi = float(found[1]), True
            continue
        body.append((number, line.split()))
    values = _values(body, source, "'name value'")
    name = "gurobi" if is_gurobi else "plain"
    return SolutionFile(format=name, values=values, objective=objective)


def _json(data: bytes, source: str) -> SolutionFile:
    """Read an object of names and values, or one that has such an object."""
    document = parse_json(data, source, SolutionError)
    if not isinstance(document, dict):
        raise _error(source, "document", "must be an object of names and values")
    table = next(
        (document[key] for key in _JSON_KEYS if isinstance(document.get(key), dict)), document
    )
    faults = [
        Fault(f"'{name}'", "", "must be a finite number", repr(value))
        for name, value in table.items()
        if isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not math.isfinite(value)
    ]
    if faults:
        raise SolutionError(tuple(faults), source)
    values = {name: float(value) for name, value in table.items()}
    objective = document.get("objective") if table is not document else None
    known = isinstance(objective, (int, float)) and not isinstance(objective, bool)
    return SolutionFile(
        format="json",
        values=values,
        objective=float(objective) if known else None,  # type: ignore[arg-type]
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
