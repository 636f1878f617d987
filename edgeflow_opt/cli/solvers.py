"""``edgeflow solvers``: the solvers, what they can do, and whether they are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgeflow_opt.cli.options import AsJson

if TYPE_CHECKING:
    from rich.table import Table


def solvers(as_json: AsJson = False) -> None:
    """List the solvers, what they can do, and whether they are installed."""
    from edgeflow_opt.cli.console import meanings, show, show_json, stdout_kept_pure

    with stdout_kept_pure():
        entries = solver_entries()
    if as_json:
        show_json({"format": "edgeflow-solvers/1", "solvers": entries})
        return
    show(_solvers_table(entries))
    owners: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for entry in entries:
        if entry["params"]:
            owners.setdefault(tuple(entry["params"].items()), []).append(entry["name"])
    for params, names in owners.items():
        show(meanings(f"Parameters of {', '.join(names)} (--param NAME=VALUE)", params))


def solver_entries() -> list[dict[str, Any]]:
    """Return what is known of each solver; one that cannot be loaded says why."""
    from edgeflow_opt.solvers import SOLVERS

    entries = []
    for name in SOLVERS.names():
        entry: dict[str, Any] = {
            "name": name, "summary": "", "exact": None, "features": [], "available": False,
            "reason": None, "params": {},
        }  # fmt: skip
        entries.append(entry)
        try:
            capabilities = SOLVERS.get(name).capabilities
        except Exception as problem:
            entry["reason"] = f"{type(problem).__name__}: {problem}"
            continue
        missing = missing_modules(capabilities.requires)
        entry |= {
            "summary": capabilities.summary,
            "exact": capabilities.exact,
            "features": sorted(capabilities.features),
            "available": not missing,
            "reason": f"needs {', '.join(missing)}, not installed" if missing else None,
            "params": dict(capabilities.params),
        }
    return entries


def missing_modules(modules: tuple[str, ...]) -> list[str]:
    """Return those of `modules` that cannot be imported."""
    import importlib.util
    import sys

    return [
        module
        for module in modules
        if module not in sys.modules and importlib.util.find_spec(module) is None
    ]


def _solvers_table(entries: list[dict[str, Any]]) -> Table:
    from edgeflow_opt.cli.console import printable, table, word
    from edgeflow_opt.solvers.base import FEATURES

    made = table("solver", "kind", "installed", "what it does", left=(
        "solver", "kind", "installed", "what it does"))  # fmt: skip
    for entry in entries:
        kind = {True: "exact", False: "heuristic", None: "-"}[entry["exact"]]
        lacks = [words for name, words in FEATURES.items() if name not in entry["features"]]
        text = entry["summary"]
        if entry["reason"]:
            text = f"{text} ({entry['reason']})" if text else entry["reason"]
        elif lacks:
            text += f" (not: {', '.join(lacks)})"
        made.add_row(
            printable(entry["name"]), kind, word("yes" if entry["available"] else "no"),
            printable(text),
        )  # fmt: skip
    return made
