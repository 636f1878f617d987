"""``edgeflow policies``: the online policies and their options."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from typing import Any

from edgeflow_opt.cli.options import AsJson


def policies(as_json: AsJson = False) -> None:
    """List the online policies and their options."""
    from edgeflow_opt.cli.console import (
        meanings,
        printable,
        show,
        show_json,
        stdout_kept_pure,
        table,
    )

    with stdout_kept_pure():
        entries = policy_entries()
    if as_json:
        show_json({"format": "edgeflow-policies/1", "policies": entries})
        return
    made = table("policy", "what it does", left=("policy", "what it does"))
    for entry in entries:
        made.add_row(
            printable(entry["name"]), printable(entry["summary"] or entry["reason"] or "-")
        )
    show(made)
    for entry in entries:
        if entry["options"]:
            title = f"Options of {entry['name']} (--policy-option NAME=VALUE)"
            pairs = [
                (f"{name}={_text(option['default'])}", option["meaning"])
                for name, option in entry["options"].items()
            ]
            show(meanings(title, pairs))


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
            "options": {
                option: {"default": _plain(p.default), "meaning": meaning_of(policy_class, option)}
                for option, p in options.items()
            },
        }
    return entries


def _plain(default: Any) -> Any:
    """Return a default as JSON has it; other objects by their text."""
    if default is inspect.Parameter.empty:
        return "required"
    if default is None or isinstance(default, (bool, int, float, str)):
        return default
    return str(default)


def _text(default: Any) -> str:
    """Return a default as it is written on the command line."""
    return default if isinstance(default, str) else json.dumps(default)


def meaning_of(policy_class: Any, option: str) -> str:
    """Return what the docstring of a policy says of an option, as one line; empty if nothing.

    Where the docstring names a class for its ``**options``, the docstring of that class is read.
    """
    text = inspect.getdoc(policy_class) or ""
    told = _parameter(text, option)
    if told:
        return told
    options = text.partition("\n**options\n")[2]
    reference = re.search(r":class:`~?([\w.]+)\.(\w+)`", options)
    if reference is None:
        return ""
    module, name = reference.groups()
    return _parameter(inspect.getdoc(getattr(importlib.import_module(module), name)) or "", option)


def _parameter(doc: str, name: str) -> str:
    """Return what a numpydoc docstring says of a parameter, as one line; empty if nothing."""
    _, _, section = doc.partition("\nParameters\n----------\n")
    told: list[str] = []
    inside = False
    for line in section.splitlines():
        if line.startswith("---"):
            break
        if line and not line[0].isspace():
            inside = name in [part.strip() for part in line.split(":")[0].split(",")]
        elif inside and line:
            told.append(line.strip())
    # Markup of the documentation is noise here.
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", " ".join(told)).replace("``", "")
