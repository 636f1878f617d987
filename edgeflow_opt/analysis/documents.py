"""Results read back from files, whatever command wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from edgeflow_opt.analysis.comparison import (
    COMPARE_FORMAT,
    Comparison,
    comparison_from_document,
)
from edgeflow_opt.analysis.policy_comparison import (
    POLICIES_FORMAT,
    PolicyComparison,
    policies_from_document,
)
from edgeflow_opt.errors import Fault, InputError

#: Formats of results, and what writes them.
RESULT_FORMATS = {
    COMPARE_FORMAT: "edgeflow compare --json",
    POLICIES_FORMAT: "PolicyComparison.to_json()",
    "edgeflow-simulation/1": "edgeflow simulate --json",
    "edgeflow-bench/1": "edgeflow bench",
}


def read_results(path: str | Path) -> tuple[Comparison | None, PolicyComparison | None]:
    """Read results of solvers, of policies, or (from a suite) of both.

    Parameters
    ----------
    path
        A JSON document of :data:`RESULT_FORMATS`, or JSON lines of ``edgeflow bench``.

    Returns
    -------
    solvers, policies
        None where the file has no such results.

    Raises
    ------
    InputError
        If the file is unreadable or none of these; every fault is named.
    """
    from edgeflow_opt.problem.files import read_bytes

    text = read_bytes(path, InputError).decode("utf-8", errors="replace")
    first = text.partition("\n")[0]
    if _format_of(first) == "edgeflow-bench/1":
        from edgeflow_opt.analysis.bench.records import comparisons_of, parse_records

        return comparisons_of(parse_records(text, str(path)))
    try:
        document = json.loads(text)
    except ValueError as problem:
        fault = Fault("file", "", f"is no JSON ({problem})", remedy="name a file of results")
        raise InputError((fault,), str(path)) from None
    kind = document.get("format") if isinstance(document, dict) else None
    if kind == COMPARE_FORMAT:
        return comparison_from_document(document, str(path)), None
    if kind in RESULT_FORMATS:
        return None, policies_from_document(document, str(path))
    known = ", ".join(f"{name} ({writer})" for name, writer in RESULT_FORMATS.items())
    fault = Fault("document", "format", "must be one of results", repr(kind), f"known are {known}")
    raise InputError((fault,), str(path))


def _format_of(line: str) -> Any:
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document.get("format") if isinstance(document, dict) else None
