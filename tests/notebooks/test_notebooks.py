"""The notebooks as they are committed; that they run is seen by executing them (.ci/run)."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def _cells(path: Path, kind: str) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def _text(cell: dict[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def test_all_are_listed() -> None:
    """The README of the folder links every notebook and nothing else."""
    linked = re.findall(r"\]\((\w+\.ipynb)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(linked) == [path.name for path in NOTEBOOKS]
    assert len(NOTEBOOKS) >= 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(path: Path) -> None:
    """A notebook holds its sources alone, so that differences between versions can be read."""
    for cell in _cells(path, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_plain_python(path: Path) -> None:
    """Cells are plain Python, without magics, and begin with a title in words."""
    for cell in _cells(path, "code"):
        ast.parse(_text(cell))
    assert _text(_cells(path, "markdown")[0]).startswith("# ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    """Links of a notebook to files lead to files."""
    for cell in _cells(path, "markdown"):
        for target in re.findall(r"\]\(([^)#:]+)\)", _text(cell)):
            assert (FOLDER / target).exists(), target
