"""The folders of models: fresh, and of one optimum whoever solves them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("models", reason="the models are not part of this distribution")

from edgeflow_opt.problem import read_problem
from edgeflow_opt.solvers import solve
from edgeflow_opt.solvers.exchange import import_solution
from models.generate import FOLDER, INSTANCES, files
from tests.oracle import optimum
from tests.solvers.exchange.test_exchange import by_cbc, by_highs

NAMES = sorted(INSTANCES)


def _optimum(name: str) -> float:
    return float(json.loads((FOLDER / name / "optimum.json").read_text())["met_weight"])


def test_the_generated_files_are_fresh() -> None:
    """What the code makes now is what the folders hold: 'python -m models' writes them anew."""
    for name, text in files().items():
        stored = (FOLDER / name).read_text(encoding="utf-8")
        # The version of the package is in a comment, and may be another.
        assert re.sub(r"edgeflow-opt \S+:", "", stored) == re.sub(r"edgeflow-opt \S+:", "", text), (
            name
        )


@pytest.mark.parametrize("name", NAMES)
def test_brute_force_and_solvers_agree(name: str) -> None:
    """Brute force, CP-SAT, HiGHS and the portfolio have the optimum that the folder states."""
    problem = read_problem(FOLDER / name / "instance.json")
    best = optimum(problem)
    assert best is not None
    assert best.value.met_weight == _optimum(name)
    for solver in ("cpsat", "highs", "auto"):
        result = solve(problem, solver, levels=1, time_limit_s=60.0)
        assert (result.status, result.value, result.bound) == (
            "optimal",
            _optimum(name),
            _optimum(name),
        )


@pytest.mark.parametrize("form", ["mps", "lp"])
@pytest.mark.parametrize("by", [by_highs, by_cbc])
@pytest.mark.parametrize("name", NAMES)
def test_the_files_have_the_optimum_in_other_solvers(
    tmp_path: Path, name: str, by: object, form: str
) -> None:
    """HiGHS and CBC reach it from the files, and their solutions come back, checked."""
    solution = tmp_path / "model.sol"
    assert by(FOLDER / name / f"model.{form}", solution).lower() == "optimal"  # type: ignore[operator]
    imported = import_solution(read_problem(FOLDER / name / "instance.json"), solution)
    assert imported.report.valid
    assert imported.schedule.objective is not None
    assert imported.schedule.objective.met_weight == _optimum(name)


@pytest.mark.parametrize("name", NAMES)
def test_minizinc_has_the_optimum(name: str) -> None:
    """Gecode proves the optimum on the MiniZinc model, which is stated on its own."""
    command = shutil.which("minizinc")
    if command is None:
        pytest.skip("minizinc is not installed (Debian: apt-get install minizinc)")
    done = subprocess.run(
        [command, "--solver", "gecode", f"{FOLDER / name / name}.mzn",
         str(FOLDER / name / "instance.dzn")],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert "==========" in done.stdout
    found = re.findall(r"met_weight = (\d+)", done.stdout)
    assert float(found[-1]) == _optimum(name)
