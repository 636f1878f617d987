"""``edgeflow solve``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from edgeflow_opt.cli import plan
from edgeflow_opt.cli.solve import summary
from edgeflow_opt.problem import (
    Limit,
    Schedule,
    SolveStatus,
    check,
    read_problem,
    read_schedule,
)
from edgeflow_opt.solvers import SolveControl, SolveResult
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
    path = tmp_path / "plan.json"
    assert edgeflow("solve", instance_file, "-s", "one", "-o", path).code == 0
    assert edgeflow("solve", instance_file, "-s", "one", "--warm-start", path).code == 0
    document = json.loads(path.read_text())
    held = {"job": "j1", "start": 0, "end": 300, "site": "cloud", "gpus": 3}
    document["allocations"] = [held]
    path.write_text(json.dumps(document))
    ran = edgeflow("solve", instance_file, "-s", "one", "--warm-start", path)
    assert ran.code == 0  # a mode that has gone is left out
    document["allocations"] = [held | {"job": "another"}]
    path.write_text(json.dumps(document))
    ran = edgeflow("solve", instance_file, "-s", "one", "--warm-start", path)
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


def test_progress_says_what_is_counted(scripted: Install, instance_file: Path) -> None:
    """Where weights are not all 1 progress speaks of value, and the empty plan is no news.

    Solvers see weights of 3 as 1, and what they report is told in weights of 3.
    """

    def act(control: SolveControl) -> None:
        control.report("empty plan", value=0.0)
        control.report("probe", value=2.0)

    scripted(ScriptedSolver("one", act=act))
    document = json.loads(instance_file.read_text())
    document["jobs"][0]["weight"] = 3
    instance_file.write_text(json.dumps(document))
    lines = edgeflow("solve", instance_file, "-s", "one").err.splitlines()
    assert not any("empty plan" in line for line in lines)
    assert any("value     6" in line and "probe" in line for line in lines)


@pytest.mark.parametrize(
    ("status", "exact", "words"),
    [
        (SolveStatus.INFEASIBLE, True, "none: proven that no schedule exists"),
        (SolveStatus.NO_SOLUTION, True, "none yet"),
        (SolveStatus.NO_SOLUTION, False, "none (a heuristic proves none)"),
    ],
)
def test_why_there_is_no_bound(instance_file: Path, status: str, exact: bool, words: str) -> None:
    """A result without a bound says truly why there is none."""
    schedule = Schedule(solver="one", status=SolveStatus(status))
    told = summary(read_problem(instance_file), SolveResult(schedule=schedule), exact)
    with (target := Console(width=80)).capture() as shown:
        target.print(told)
    assert words in shown.get()


def test_weighted_sum_is_labelled(instance_file: Path) -> None:
    """With a weighted objective the summary tells jobs, met weight and the sum apart."""
    document = json.loads(instance_file.read_text())
    document["jobs"][0]["weight"] = 2.5
    document["objective"] = {"mode": "weighted", "weights": {"met": 4, "cost": 0.001}}
    instance_file.write_text(json.dumps(document))
    out = edgeflow("solve", instance_file, "-s", "greedy").out
    lines = {line.split("  ")[0]: line.split()[-1] for line in out.splitlines() if line}
    assert lines["met weight"] == "2.5"
    assert float(lines["weighted value"]) == pytest.approx(
        10 - 0.001 * float(_cells(out, "cost")[1].replace(",", ""))
    )
    assert "4 x met - 0.001 x cost; more is better" in out


def _cells(text: str, first: str) -> list[str]:
    """Return the words of the line that begins with `first`."""
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [first])


def test_all_levels_are_named_in_order(scripted: Install, instance_file: Path) -> None:
    """The table names the five levels in their order, with units and direction."""
    scripted(ScriptedSolver("one"))
    lines = edgeflow("solve", instance_file, "-s", "one", "--no-plan").out.splitlines()
    rows = lines[next(i for i, line in enumerate(lines) if line.startswith("level ")) + 2 :]
    names = [row.split()[0] for row in rows if row.strip()]
    assert names == ["met", "progress", "leftover", "cost", "reconfigurations"]
    assert all("more is better" in row for row in rows[:3])
    assert all("less is better" in row for row in rows[3:5])
    assert "in jobs" in rows[0]
    assert "GPU-seconds" in rows[3]


def test_plan_is_shown_or_not(
    scripted: Install, instance_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is shown for few jobs unless unwanted, for many only if wanted, never with JSON."""
    scripted(ScriptedSolver("one"))
    monkeypatch.setattr(plan, "MOST_JOBS_UNASKED", 2)
    args = ("solve", instance_file, "-s", "one")
    assert "best effort" in edgeflow(*args).out
    assert "Plan" not in edgeflow(*args, "--no-plan").out
    monkeypatch.setattr(plan, "MOST_JOBS_UNASKED", 1)
    assert "Plan" not in edgeflow(*args).out
    assert "Plan" in edgeflow(*args, "--plan").out
    assert edgeflow(*args, "--plan", "--json").document["solver"] == "one"


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
