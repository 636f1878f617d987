"""``edgeflow compare``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflow_opt.analysis import Row
from edgeflow_opt.cli.comparison import SEVERITY, worst_exit_code
from edgeflow_opt.problem import Limit, SolveStatus
from edgeflow_opt.solvers import SolveControl
from tests.cli.helpers import ScriptedSolver, edgeflow

Install = Callable[..., None]


def _crash(control: SolveControl) -> None:
    raise ValueError("no")


def test_failures_are_rows_and_the_others_go_on(
    scripted: Install, instance_file: Path, tmp_path: Path
) -> None:
    """A refusal, a crash and a missing library are rows; the worst code is the exit code."""
    scripted(
        ScriptedSolver("narrow", features=frozenset()),
        ScriptedSolver("crash", act=_crash),
        ScriptedSolver("absent", requires=("no_such_module",)),
        ScriptedSolver("fine", bound=1.0),
    )
    output = tmp_path / "rows.json"
    names = "narrow,crash,absent,fine"
    ran = edgeflow("compare", instance_file, "--solvers", names, "--json", "-o", output)
    assert ran.code == 1
    rows = {row["solver"]: row for row in ran.document["rows"]}
    assert ran.document["format"] == "edgeflow-compare/1"
    assert list(rows) == names.split(",")
    assert [rows[n]["status"] for n in rows] == ["error", "error", "error", "feasible"]
    assert "losses" in rows["narrow"]["message"]
    assert "ValueError" in rows["crash"]["message"]
    assert "no_such_module" in rows["absent"]["message"]
    fine = rows["fine"]
    assert (fine["met"], fine["met_weight"], fine["bound"], fine["gap"]) == (0, 0.0, 1.0, None)
    assert fine["message"] is None
    assert json.loads(output.read_text()) == ran.document
    ran = edgeflow("compare", instance_file, "--solvers", names)
    assert ran.out.count("not supported") == 2
    assert "no_such_module" in ran.out
    ran = edgeflow("compare", instance_file, "--solvers", "narrow,fine")
    assert ran.code == 2


def test_weights_and_jobs_are_told_apart(
    scripted: Install, instance_file: Path, tmp_path: Path
) -> None:
    """Where value and bound are no number of jobs, they have a column that says what they are."""
    scripted(ScriptedSolver("one", bound=3.0))
    assert "weight" not in edgeflow("compare", instance_file, "--solvers", "one").out
    document = json.loads(instance_file.read_text())
    document["jobs"][0]["weight"] = 2.5
    weights = tmp_path / "weights.json"
    weights.write_text(json.dumps(document))
    out = edgeflow("compare", weights, "--solvers", "one").out
    assert out.split()[:5] == ["solver", "met", "met", "weight", "bound"]
    document["objective"] = {"mode": "weighted", "weights": {"met": 4, "progress": 1}}
    weights.write_text(json.dumps(document))
    assert "weighted value" in edgeflow("compare", weights, "--solvers", "one").out


def test_value_is_the_weighted_sum(instance_file: Path) -> None:
    """In a weighted objective the row has the true met weight beside the value of the sum."""
    document = json.loads(instance_file.read_text())
    document["jobs"][0]["weight"] = 2.5
    document["objective"] = {"mode": "weighted", "weights": {"met": 4}}
    instance_file.write_text(json.dumps(document))
    ran = edgeflow("compare", instance_file, "--solvers", "greedy", "--json", "--quiet")
    (row,) = ran.document["rows"]
    assert (row["met"], row["met_weight"], row["value"]) == (1, 2.5, 10.0)


def test_help_tells_the_order_of_exit_codes() -> None:
    """The help names the exit codes in the order in which the worst is chosen."""
    text = " ".join(edgeflow("compare", "--help").out.split())
    order = text.partition("from best to worst:")[2].partition("interrupted.")[0]
    assert tuple(int(code) for code in re.findall(r"\d+", order)) == SEVERITY


def test_default_is_every_installed_solver(scripted: Install, instance_file: Path) -> None:
    """Without --solvers all solvers whose libraries are there take part."""
    scripted(ScriptedSolver("b"), ScriptedSolver("absent", requires=("nope",)), ScriptedSolver("a"))
    ran = edgeflow("compare", instance_file, "--json")
    assert [row["solver"] for row in ran.document["rows"]] == ["b", "a"]


def test_several_instances(scripted: Install, instance_file: Path, tmp_path: Path) -> None:
    """Rows name the instance, by its path where file names are equal."""
    scripted(ScriptedSolver("one"))
    other = tmp_path / "other" / "instance.json"
    other.parent.mkdir()
    other.write_text(instance_file.read_text())
    ran = edgeflow("compare", instance_file, other, "--solvers", "one", "--json")
    assert [row["instance"] for row in ran.document["rows"]] == [str(instance_file), str(other)]
    third = tmp_path / "third.json"
    third.write_text(instance_file.read_text())
    ran = edgeflow("compare", instance_file, third, "--solvers", "one")
    assert "instance.json" in ran.out
    assert "third.json" in ran.out


def test_faults_of_all_instances_together(scripted: Install, tmp_path: Path) -> None:
    """All bad files are reported at once, before any solve."""

    def never(control: SolveControl) -> None:
        pytest.fail("a solve began")

    scripted(ScriptedSolver("one", act=never))
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        path.write_text('{"format": "edgeflow-epoch/1", "now": 0}')
    ran = edgeflow("compare", *paths, "--solvers", "one")
    assert ran.code == 5
    for path in paths:
        assert f"{path}: document, grid: is missing" in ran.err


def test_interrupt_ends_the_comparison(scripted: Install, instance_file: Path) -> None:
    """After Ctrl-C the rows so far are printed and the exit code is 130."""
    scripted(ScriptedSolver("one", limit=Limit.INTERRUPTED), ScriptedSolver("two", act=_crash))
    ran = edgeflow("compare", instance_file, "--solvers", "one,two", "--json")
    assert ran.code == 130
    assert [row["solver"] for row in ran.document["rows"]] == ["one"]


def test_worst_exit_code() -> None:
    """The worst code wins, whatever the order of the rows."""
    rows = [
        Row(instance="i", solver="s", num_jobs=1, status="error", error_code=code)
        for code in SEVERITY
    ]
    for last in range(1, len(rows) + 1):
        assert worst_exit_code(rows[:last]) == SEVERITY[last - 1]
        assert worst_exit_code(rows[:last][::-1]) == SEVERITY[last - 1]
    assert worst_exit_code([]) == 0


@pytest.mark.parametrize(
    ("solvers", "message"),
    [("one,", "names with commas"), ("one,one", "named twice"), ("oen", "did you mean 'one'")],
)
def test_bad_lists_of_solvers(
    scripted: Install, instance_file: Path, solvers: str, message: str
) -> None:
    """A list with empty, repeated or unknown names is refused before any solve."""
    scripted(ScriptedSolver("one", act=_crash))
    ran = edgeflow("compare", instance_file, "--solvers", solvers)
    assert ran.code == 2
    assert message in ran.err


def test_no_solution_and_infeasible(scripted: Install, instance_file: Path) -> None:
    """A proof of infeasibility outweighs a mere lack of a solution."""
    scripted(
        ScriptedSolver("proof", status=SolveStatus.INFEASIBLE, with_plan=False),
        ScriptedSolver("none", status=SolveStatus.NO_SOLUTION, with_plan=False),
    )
    assert edgeflow("compare", instance_file, "--solvers", "proof,none").code == 3
    assert edgeflow("compare", instance_file, "--solvers", "none").code == 4


def test_seeds_tests_and_tables(scripted: Install, instance_file: Path, tmp_path: Path) -> None:
    """Several seeds are rows of their own; paired tests are shown and the table is written."""
    scripted(ScriptedSolver("one"), ScriptedSolver("two", bound=1.0))
    table = tmp_path / "rows.csv"
    args = ("--solvers", "one,two", "--seed", "4", "--seeds", "3", "--table", table)
    ran = edgeflow("compare", instance_file, *args, "--tests", "value")
    assert ran.code == 0, ran.err
    assert "Paired differences of value" in ran.out
    assert "seed" in ran.out.splitlines()[0]
    assert table.read_text().count("\n") == 7
    document = edgeflow("compare", instance_file, *args, "--json").document
    assert [row["seed"] for row in document["rows"]] == [4, 5, 6, 4, 5, 6]
    assert document["settings"]["time_limit_s"] == 10


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--tests", "beauty"), "measure 'beauty' is not known"),
        (("--table", "rows.xlsx"), "must end in one of"),
    ],
)
def test_bad_tables(
    scripted: Install, instance_file: Path, args: tuple[str, ...], message: str
) -> None:
    """A measure or the end of a table's name that is not known is refused before any solve."""
    scripted(ScriptedSolver("one", act=_crash))
    ran = edgeflow("compare", instance_file, *args)
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.parametrize(
    ("module", "args", "extra"),
    [
        ("scipy", ("--tests", "value"), "analysis"),
        ("pyarrow", ("--table", "rows.parquet"), "analysis"),
        ("jinja2", ("--report", "r.html"), "report"),
    ],
)
def test_missing_libraries_are_told_before_any_solve(
    scripted: Install, instance_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    module: str, args: tuple[str, ...], extra: str,
) -> None:  # fmt: skip
    """What needs a library that is not installed is refused at once, and the extra is named."""

    def never(control: SolveControl) -> None:
        pytest.fail("a solve began")

    scripted(ScriptedSolver("one", act=never))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    ran = edgeflow("compare", instance_file, *args)
    assert ran.code == 2
    assert f"edgeflow-opt[{extra}]" in ran.err
