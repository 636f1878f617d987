"""``edgeflow solve``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflow_opt.problem import Limit, SolveStatus, check, read_problem, read_schedule
from edgeflow_opt.solvers import SolveControl
from tests.cli.helpers import INSTANCE, ScriptedSolver, edgeflow

Install = Callable[..., None]

RESULTS = [
    (SolveStatus.OPTIMAL, None, 0.0, True, 0),
    (SolveStatus.FEASIBLE, Limit.TIME, 1.0, True, 0),
    (SolveStatus.INFEASIBLE, None, 0.0, False, 3),
    (SolveStatus.NO_SOLUTION, Limit.TIME, None, False, 4),
    (SolveStatus.ERROR, None, None, False, 1),
    (SolveStatus.FEASIBLE, Limit.INTERRUPTED, 1.0, True, 130),
    (SolveStatus.NO_SOLUTION, Limit.INTERRUPTED, None, False, 130),
]


@pytest.mark.parametrize(("status", "limit", "bound", "with_plan", "code"), RESULTS)
def test_exit_code_and_document(
    scripted: Install,
    instance_file: Path,
    tmp_path: Path,
    status: SolveStatus,
    limit: Limit | None,
    bound: float | None,
    with_plan: bool,
    code: int,
) -> None:
    """Every status has its exit code, and its schedule is written whatever it is."""
    scripted(ScriptedSolver("one", status=status, limit=limit, bound=bound, with_plan=with_plan))
    output = tmp_path / "schedule.json"
    ran = edgeflow("solve", instance_file, "--solver", "one", "--json", "--output", output)
    assert ran.code == code
    assert ran.document["status"] == str(status)
    assert ran.document["limit"] == (None if limit is None else str(limit))
    schedule = read_schedule(output)
    assert schedule.status is status
    if with_plan:
        problem = read_problem(instance_file)
        if status is SolveStatus.OPTIMAL:
            assert schedule.bound == 0.0
        assert check(problem, schedule).valid
    else:
        assert schedule.allocations == ()


@pytest.mark.parametrize(("status", "limit", "bound", "with_plan", "code"), RESULTS)
def test_people_get_a_table(
    scripted: Install,
    instance_file: Path,
    status: SolveStatus,
    limit: Limit | None,
    bound: float | None,
    with_plan: bool,
    code: int,
) -> None:
    """Without --json the status is told in words, with or without a plan."""
    scripted(ScriptedSolver("one", status=status, limit=limit, bound=bound, with_plan=with_plan))
    ran = edgeflow("solve", instance_file, "--solver", "one")
    assert ran.code == code
    assert str(status) in ran.out
    assert ("deadlines met" in ran.out) is with_plan
    if limit is not None:
        assert f"stopped: {limit}" in ran.out


def test_options_reach_the_solver(
    monkeypatch: pytest.MonkeyPatch, scripted: Install, instance_file: Path
) -> None:
    """Every option is handed on, parameters with their types."""
    seen = []
    solver = ScriptedSolver("one", params={"a": "", "b": "", "c": "", "d": ""})
    honest = ScriptedSolver.solve

    def spy(self, problem, arrays, options, control):  # type: ignore[no-untyped-def]
        seen.append(options)
        return honest(self, problem, arrays, options, control)

    monkeypatch.setattr(ScriptedSolver, "solve", spy)
    scripted(solver)
    ran = edgeflow(
        "solve", instance_file, "--solver", "one", "--time-limit", "2.5", "--seed", "7",
        "--workers", "3", "--deterministic", "--levels", "2", "--param", "a=3", "--param",
        "b=x=y", "--param", "c=true", "--param", "d=NaN",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (options,) = seen
    assert (options.time_limit_s, options.seed, options.workers) == (2.5, 7, 3)
    assert options.deterministic
    assert options.levels == 2
    assert options.params == {"a": 3, "b": "x=y", "c": True, "d": "NaN"}


def test_instance_from_stdin(scripted: Install) -> None:
    """The file - is stdin."""
    scripted(ScriptedSolver("one"))
    ran = edgeflow("solve", "-", "--solver", "one", "--json", stdin=json.dumps(INSTANCE))
    assert ran.code == 0, ran.err
    assert ran.document["format"] == "edgeflow-schedule/1"
    ran = edgeflow("solve", "-", "--solver", "one", stdin='{"format": "edgeflow-epoch/1"}')
    assert ran.code == 5
    assert "stdin" in ran.err


def test_warm_start_of_another_instance_is_refused(
    scripted: Install, instance_file: Path, tmp_path: Path
) -> None:
    """A schedule that does not fit the instance is a usage error, a fitting one is taken."""
    scripted(ScriptedSolver("one"))
    plan = tmp_path / "plan.json"
    assert edgeflow("solve", instance_file, "-s", "one", "-o", plan).code == 0
    assert edgeflow("solve", instance_file, "-s", "one", "--warm-start", plan).code == 0
    document = json.loads(plan.read_text())
    document["outcomes"].pop()
    plan.write_text(json.dumps(document))
    ran = edgeflow("solve", instance_file, "-s", "one", "--warm-start", plan)
    assert ran.code == 2
    assert "warm_start" in ran.err


def test_progress_is_on_stderr(scripted: Install, instance_file: Path) -> None:
    """Progress tells time, incumbent, bound, gap and source on stderr; --quiet tells nothing."""

    def act(control: SolveControl) -> None:
        control.report("probe", value=2.0, bound=3.0)

    scripted(ScriptedSolver("one", act=act))
    ran = edgeflow("solve", instance_file, "-s", "one", "--json")
    (line,) = [line for line in ran.err.splitlines() if "probe" in line]
    assert "met     2" in line
    assert "bound       3" in line
    assert "gap   50 %" in line
    assert ran.document["solver"] == "one"
    assert edgeflow("solve", instance_file, "-s", "one", "--json", "--quiet").err == ""


def test_unsupported_feature_names_both(scripted: Install, instance_file: Path) -> None:
    """A solver that lacks a feature is a usage error that names solver and feature."""
    scripted(ScriptedSolver("one", features=frozenset({"losses"})))
    ran = edgeflow("solve", instance_file, "-s", "one")
    assert ran.code == 2
    assert "'one' does not support jobs without a deadline" in ran.err


def test_crash_is_one_line(scripted: Install, instance_file: Path, tmp_path: Path) -> None:
    """A solver that crashes gives exit code 1 and one line; --debug adds the traceback."""

    def act(control: SolveControl) -> None:
        raise RuntimeError("lost\nits way")

    scripted(ScriptedSolver("one", act=act))
    output = tmp_path / "schedule.json"
    ran = edgeflow("solve", instance_file, "-s", "one", "-o", output)
    assert ran.code == 1
    assert "RuntimeError" in ran.err
    assert "Traceback" not in ran.err
    assert not output.exists()
    ran = edgeflow("--debug", "solve", instance_file, "-s", "one", "-o", output)
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert list(tmp_path.iterdir()) == [instance_file]
