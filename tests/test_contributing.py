"""What the notes for contributors say of the tree is so."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import edgeflow_opt

ROOT = Path(__file__).parents[1]
PACKAGE = Path(edgeflow_opt.__file__).parent
NOTES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

#: Lines of a module that must become two; beyond 600 it is time to think about it.
MOST_LINES = 700


def test_every_path_exists() -> None:
    """A path in the notes is there, from the top of the checkout or from the package on."""
    named = set(re.findall(r"`([\w.-]+(?:/[\w.-]*)+|\w+\.(?:py|md|toml))`", NOTES))
    assert len(named) > 40
    places = (ROOT, PACKAGE, PACKAGE.parent)
    assert [path for path in sorted(named) if not any((p / path).exists() for p in places)] == []


def test_every_registry_is_where_it_is_said_to_be() -> None:
    """A name in capitals before a module in brackets is defined in that module."""
    named = re.findall(r"`([A-Z_]+)` \(`([\w/]+)\.py`\)", NOTES)
    assert len(named) >= 2
    for name, path in named:
        assert hasattr(importlib.import_module("edgeflow_opt." + path.replace("/", ".")), name)


def test_every_layer_is_in_the_table() -> None:
    """The table of folders has every folder of the package, and no other."""
    rows = [line for line in NOTES.splitlines() if line.startswith("| `")]
    begin, end = NOTES.index("| folder of"), NOTES.index("Where to change what")
    table = [row for row in rows if begin < NOTES.index(row) < end]
    told = {name for row in table for name in re.findall(r"`(\w+)/`", row.split("|")[1])}
    assert told == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_no_module_is_too_long() -> None:
    """A module of the package can be read in one go."""
    lines = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8").count("\n")
        for path in PACKAGE.rglob("*.py")
    }
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}
