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

    The docstrings of its base classes are read too, and where they name a class for their
    ``**options``, the docstring of that class; what that says of several options together is left
    for ``MEANINGS`` of its module, if there is such a table of what each of them means.
    """
    for base in getattr(policy_class, "__mro__", (policy_class,)):
        text = inspect.getdoc(base) or "" if base is not object else ""
        told, _ = _parameter(text, option)
        if not told:
            told = _of_reference(text.partition("\n**options\n")[2], option)
        if told:
            return told
    return ""


def _of_reference(text: str, option: str) -> str:
    """Return what the class to which `text` refers says of an option."""
    reference = re.search(r":class:`~?([\w.]+)\.(\w+)`", text)
    if reference is None:
        return ""
    module, name = reference.groups()
    owner = getattr(importlib.import_module(module), name)
    told, shared = _parameter(inspect.getdoc(owner) or "", option)
    if not shared:
        return told
    own = getattr(importlib.import_module(owner.__module__), "MEANINGS", {})
    return str(own.get(option, told))


def _parameter(doc: str, name: str) -> tuple[str, bool]:
    """Return what a numpydoc docstring says of a parameter, and whether of others with it.

    As one line, empty if nothing.
    """
    _, _, section = doc.partition("\nParameters\n----------\n")
    told: list[str] = []
    inside = shared = False
    for line in section.splitlines():
        if line.startswith("---"):
            break
        if line and not line[0].isspace():
            names = [part.strip() for part in line.split(":")[0].split(",")]
            inside = name in names
            shared |= inside and len(names) > 1
        elif inside and line:
            told.append(line.strip())
    # Markup of the documentation is noise here.
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", " ".join(told)).replace("``", "")
    return text, shared
