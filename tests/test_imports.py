"""What an import loads, and what it does not: seen in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("numba", "ortools", "highspy", "pandas", "scipy", "matplotlib", "pulp", "rich", "typer")

SCRIPT = """
import json, logging, signal, sys
before = signal.getsignal(signal.SIGINT)
root = list(logging.getLogger().handlers)
{statement}
loaded = sorted({{name.split(".")[0] for name in sys.modules}})
same = signal.getsignal(signal.SIGINT) is before and logging.getLogger().handlers == root
print(json.dumps({{"loaded": loaded, "untouched": same}}))
"""


def _run(statement: str) -> dict[str, object]:
    """Return what a fresh interpreter has loaded after `statement`."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
    )
    # Exactly one line: importing the package prints nothing.
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    result: dict[str, object] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(
    "statement",
    [
        "import edgeflow_opt",
        "import edgeflow_opt.problem",
        "import edgeflow_opt.solvers, edgeflow_opt.policies",
        "import edgeflow_opt.analysis.plots, edgeflow_opt.analysis.report",
        "import edgeflow_opt.analysis.bench",
    ],
)
def test_import_is_light(statement: str) -> None:
    """Importing the package loads no solver, compiler, data frame or plotting library."""
    result = _run(statement)
    loaded = result["loaded"]
    assert isinstance(loaded, list)
    assert "edgeflow_opt" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_import_touches_nothing_global() -> None:
    """Importing the package leaves signal handlers and the root logger alone."""
    assert _run("import edgeflow_opt")["untouched"] is True


def test_the_probe_sees_a_heavy_import() -> None:
    """The probe itself reports a module that is loaded."""
    result = _run("import edgeflow_opt, decimal")
    loaded = result["loaded"]
    assert isinstance(loaded, list)
    assert "decimal" in loaded
