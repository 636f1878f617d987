"""The layers of the package: imports point downward only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import edgeflow_opt

PACKAGE = Path(edgeflow_opt.__file__).parent

#: The layers that each may import, beside itself. The face of the package may import all.
BELOW: dict[str, frozenset[str]] = {
    "problem": frozenset(),
    "formulations": frozenset({"problem"}),
    "solvers": frozenset({"formulations", "problem"}),
    "policies": frozenset({"solvers", "formulations", "problem"}),
    "workloads": frozenset({"problem"}),
    "simulation": frozenset({"policies", "solvers", "formulations", "problem", "workloads"}),
}
BELOW["clairvoyant"] = frozenset(BELOW)
BELOW["analysis"] = frozenset(BELOW)
BELOW["service"] = frozenset(BELOW)
BELOW["adapters"] = frozenset(BELOW)
BELOW["cli"] = frozenset(BELOW)

#: Modules that every layer may use.
COMMON = frozenset({"errors", "registry", "_version", "versions"})

#: Modules at the top that may use everything.
FACE = frozenset({"__init__", "__main__"})


def imports_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import of the package, wherever in the file it stands.

    Names given to ``importlib.import_module`` and registry lines ``"edgeflow_opt.x:y"`` are texts,
    looked up by name on purpose, and do not count.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
            if node.module == "edgeflow_opt":
                names = [f"edgeflow_opt.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["(relative)"]
        else:
            continue
        for name in names:
            if name.split(".")[0] in ("edgeflow_opt", "(relative)"):
                yield node.lineno, name


def breaches_of(layer: str, source: str) -> list[str]:
    """Return the imports of a module in `layer` that the layers forbid."""
    allowed = BELOW.get(layer, frozenset()) | COMMON | {layer}
    found = []
    for line, name in imports_of(source):
        parts = name.split(".")
        # ``import edgeflow_opt`` inside the package reaches the face, which is above everything.
        target = parts[1] if len(parts) > 1 else "__init__"
        if target not in allowed:
            found.append(f"line {line}: {layer} must not import {name}")
    return found


def _modules() -> list[Path]:
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("module", _modules(), ids=str)
def test_imports_point_downward(module: Path) -> None:
    """No module imports a layer above its own, not even inside a function."""
    layer = module.parts[0].removesuffix(".py")
    if layer in FACE:
        return
    assert breaches_of(layer, (PACKAGE / module).read_text(encoding="utf-8")) == []


def test_every_folder_has_a_place_in_the_layers() -> None:
    """A new folder must be given its place before anything in it can pass."""
    folders = {path.parts[0] for path in _modules() if len(path.parts) > 1}
    assert folders <= set(BELOW)
    files = {path.parts[0].removesuffix(".py") for path in _modules() if len(path.parts) == 1}
    assert files <= COMMON | FACE


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("problem", "from edgeflow_opt.solvers import solve"),
        ("formulations", "def late():\n    import edgeflow_opt.solvers.base"),
        ("policies", "from edgeflow_opt import simulation"),
        ("workloads", "if True:\n    from edgeflow_opt.formulations.x import y"),
        ("solvers", "import edgeflow_opt"),
        ("errors", "from edgeflow_opt.problem import Job"),
        ("service", "from edgeflow_opt.cli import main"),
        ("problem", "from . import solvers"),
    ],
)
def test_a_breach_is_seen(layer: str, source: str) -> None:
    """The rule catches an upward import in every form that Python has."""
    assert len(breaches_of(layer, source)) == 1


def test_allowed_imports_pass() -> None:
    """Downward imports, the common modules and a layer's own modules are fine."""
    source = (
        "import numpy\nfrom edgeflow_opt.errors import Fault\nfrom edgeflow_opt import problem\n"
        "from edgeflow_opt.solvers.front import solve\nfrom edgeflow_opt.policies.base import X\n"
    )
    assert breaches_of("policies", source) == []
