"""``edgeflow policies``: the online policies and their options."""

from __future__ import annotations

import inspect
from typing import Any

from edgeflow_opt.cli.options import AsJson


def policies(as_json: AsJson = False) -> None:
    """List the online policies and their options."""
    from edgeflow_opt.cli.console import printable, show, show_json, stdout_kept_pure, table

    with stdout_kept_pure():
        entries = policy_entries()
    if as_json:
        show_json({"format": "edgeflow-policies/1", "policies": entries})
        return
    columns = ("policy", "what it does", "options (--policy-option NAME=VALUE)")
    made = table(*columns, left=columns)
    for entry in entries:
        options = ", ".join(
            f"{name}={'none' if default is None else default}"
            for name, default in entry["options"].items()
        )
        made.add_row(
            printable(entry["name"]), printable(entry["summary"] or entry["reason"] or "-"),
            printable(options or "-"),
        )  # fmt: skip
    show(made)


def policy_entries() -> list[dict[str, Any]]:
    """Return what is known of each policy; one that cannot be loaded says why."""
    from edgeflow_opt.policies import POLICIES

    entries = []
    for name in POLICIES.names():
        entry: dict[str, Any] = {
            "name": name, "summary": "", "available": False, "reason": None, "options": {},
        }  # fmt: skip
        entries.append(entry)
        try:
            policy_class = POLICIES.get(name)
            options = inspect.signature(policy_class).parameters
        except Exception as problem:
            entry["reason"] = f"{type(problem).__name__}: {problem}"
            continue
        lines = (inspect.getdoc(policy_class) or "").splitlines()
        entry |= {
            "summary": lines[0] if lines else "",
            "available": True,
            "options": {option: _plain(p.default) for option, p in options.items()},
        }
    return entries


def _plain(default: Any) -> Any:
    """Return a default as JSON has it; other objects by their text."""
    if default is inspect.Parameter.empty:
        return "required"
    if default is None or isinstance(default, (bool, int, float, str)):
        return default
    return str(default)
