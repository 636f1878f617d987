"""Solvers, policies, exit codes, formats of traces and keys of suites, as their registries have them."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from markup import code, plain, table


def solvers() -> str:
    """Return the solvers, what each is for and does not honour, and their parameters."""
    from edgeflow_opt.cli.solvers import solver_entries
    from edgeflow_opt.solvers.base import FEATURES

    entries = solver_entries()
    rows = []
    for entry in entries:
        lacks = [words for name, words in FEATURES.items() if name not in entry["features"]]
        # Which members of the family are installed here says nothing of the reader's machine.
        summary = entry["summary"].partition("; here:")[0]
        kind = "exact" if entry["exact"] else "heuristic"
        rows.append((code(entry["name"]), kind, plain(summary), ", ".join(lacks) or "-"))
    text = table(("solver", "kind", "what it does", "refuses"), rows)
    owners: dict[str, list[Any]] = {}
    for entry in entries:
        if entry["params"]:
            owners.setdefault(json.dumps(entry["params"]), []).append(entry)
    for group in owners.values():
        names = ", ".join(code(entry["name"]) for entry in group)
        rows = [(code(name), plain(meaning)) for name, meaning in group[0]["params"].items()]
        text += f"\n### Parameters of {names}\n\n" + table(("parameter", "meaning"), rows)
    return text


def policies() -> str:
    """Return the policies, what each does, and their options with defaults."""
    from edgeflow_opt.cli.policies import policy_entries

    entries = policy_entries()
    text = table(
        ("policy", "what it does"),
        [(code(entry["name"]), plain(entry["summary"])) for entry in entries],
    )
    owners: dict[str, list[Any]] = {}
    for entry in entries:
        if entry["options"]:
            owners.setdefault(json.dumps(entry["options"]), []).append(entry)
    for group in owners.values():
        names = ", ".join(code(entry["name"]) for entry in group)
        rows = [
            (code(name), code(_default(option["default"])), plain(option["meaning"]))
            for name, option in group[0]["options"].items()
        ]
        text += f"\n### Options of {names}\n\n" + table(("option", "default", "meaning"), rows)
    return text


def _default(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def constraints() -> str:
    """Return the types of constraints, what each says, and its keys."""
    from edgeflow_opt.problem import CONSTRAINTS

    rows = []
    for name in CONSTRAINTS.names():
        kind = CONSTRAINTS.get(name)
        keys = [
            code(field.name) + ("" if field.default is dataclasses.MISSING else " (optional)")
            for field in dataclasses.fields(kind)
        ]
        summary = (inspect.getdoc(kind) or "").split("\n\n")[0]
        link = f"{{py:class}}`{name} <{kind.__module__}.{kind.__qualname__}>`"
        rows.append((link, plain(summary), ", ".join(keys)))
    return table(("type", "what it says", "keys"), rows)


def exit_codes() -> str:
    """Return the exit codes of the command line, and the exceptions that belong to them."""
    from edgeflow_opt import errors
    from edgeflow_opt.cli import failures
    from edgeflow_opt.cli.application import app

    told = app.info.epilog or ""
    meanings = {int(n): text for n, text in re.findall(r"(\d+) ([a-z][^,.]*)", told)}
    known = {value for name, value in vars(failures).items() if name.startswith("EXIT_")}
    # Beyond those of the package: the reader of a pipe went away, 128 + SIGPIPE.
    known.discard(failures.EXIT_BROKEN_PIPE)
    if known != set(meanings):
        raise ValueError(f"the epilog of the command line tells of {sorted(meanings)}, not {known}")
    classes: dict[int, list[str]] = {}
    for thing in vars(errors).values():
        if inspect.isclass(thing) and issubclass(thing, errors.EdgeflowError):
            classes.setdefault(thing.exit_code, []).append(
                f"{{py:class}}`~edgeflow_opt.errors.{thing.__name__}`"
            )
    rows = [
        (code(str(number)), meaning, ", ".join(classes.get(number, ["-"])))
        for number, meaning in sorted(meanings.items())
    ]
    return table(("exit code", "meaning", "exceptions in Python"), rows)


def extras() -> str:
    """Return the extras of the package and what each brings."""
    pyproject = Path(__file__).resolve().parents[2] / "pyproject.toml"
    found = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = [(code(name), ", ".join(map(code, brings))) for name, brings in sorted(found.items())]
    return table(("extra", "brings"), rows)


def trace_formats() -> str:
    """Return the names of the trace formats that can be read, with what each reader says of it."""
    from edgeflow_opt.workloads.readers import TRACE_FORMATS

    rows = []
    for name in TRACE_FORMATS.names():
        reader = TRACE_FORMATS.get(name)
        lines = (inspect.getdoc(inspect.getmodule(reader.job_of)) or "").splitlines()
        rows.append((code(name), plain(lines[0]), ", ".join(map(code, reader.columns))))
    return table(("format", "what it reads", "columns that tell it"), rows)


def entry_points() -> str:
    """Return the groups of entry points in which other packages bring theirs."""
    from edgeflow_opt.policies import POLICIES
    from edgeflow_opt.problem import CONSTRAINTS
    from edgeflow_opt.solvers import SOLVERS
    from edgeflow_opt.workloads.readers import TRACE_FORMATS

    rows = []
    for registry in (SOLVERS, POLICIES, CONSTRAINTS, TRACE_FORMATS):
        known = vars(registry)
        rows.append((known["_what"], code(known["_group"])))
    return table(("what", "group of entry points"), rows)


def suites() -> str:
    """Return how a suite of experiments is written, as its reader tells it."""
    from edgeflow_opt.analysis.bench import read_suite

    text = inspect.getdoc(read_suite) or ""
    block = re.search(r"::\n\n((?: {4}[^\n]*\n|\n)+)(.*?)\n\nRaises\n", text, re.DOTALL)
    if block is None:
        raise ValueError("the docstring of read_suite has no example, or tells nothing after it")
    sample = "\n".join(line[4:] for line in block[1].rstrip().splitlines())
    return f"```toml\n{sample}\n```\n\n{block[2].strip().replace('``', '`')}\n"
