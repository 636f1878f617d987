"""The readers of third-party formats, and the benchmark that holds known values against ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of this distribution")

from benchmarks.third_party.__main__ import main
from benchmarks.third_party.assignment import read_assignment
from benchmarks.third_party.instance import FormatError
from benchmarks.third_party.knapsack import read_knapsack
from benchmarks.third_party.projects import least_makespan, read_project
from benchmarks.third_party.run import rows, solve_given_plans

#: Two agents, three items. Agent 1 has room for two of the items, which it does for less.
ASSIGNMENT = "2 3\n 1 2 3\n 4 4 4\n 2 2 2\n 1 1 1\n 4 9\n"
STANDARD = "2 3\n 4 9\n 2 1  1 4\n 2 2  1 4\n 2 3  1 4\n"

#: Two classes of two items, one resource of 5.
KNAPSACK = "2 2 1\n 5\n 1\n 10.5 3\n 4.0 1\n 2\n 9.0 3\n 2.5 2\n Solutions by hand\n 0 1\n"

PROJECT = """\
jobs (incl. supersource/sink ):  4
horizon                       :  20
RESOURCES
  - renewable                 :  1   R
  - nonrenewable              :  1   N
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        2          1           4
   3        1          1           4
   4        1          0
************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  N 1
------------------------------------
  1      1     0       0    0
  2      1     2       2    5
         2     6       1    1
  3      1     4       1    0
  4      1     0       0    0
************************************
RESOURCEAVAILABILITIES:
  R 1  N 1
    2    {left}
"""


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="ascii")
    return path


@pytest.mark.parametrize("engine", ["cpsat", "highs"])
def test_both_layouts_of_assignment_are_the_same_problem(tmp_path: Path, engine: str) -> None:
    """Two items with agent 1 for 1 + 2, the third with agent 2 for 4, proven by both engines."""
    for text, layout in ((ASSIGNMENT, "orlibrary"), (STANDARD, "standard")):
        problem = read_assignment(_written(tmp_path, "gap", text), layout)
        assert problem.columns.group.tolist() == [0, 0, 1, 1, 2, 2]
        assert problem.capacity.tolist() == [4.0, 9.0]
        assert solve_given_plans(problem, engine, 5.0) == (7.0, 7.0, True)


@pytest.mark.parametrize("engine", ["cpsat", "highs"])
def test_knapsack_values_may_be_fractions(tmp_path: Path, engine: str) -> None:
    """One item of each class within 5 units: 10.5 + 2.5 and 4 + 9 tie at 13."""
    problem = read_knapsack(_written(tmp_path, "I", KNAPSACK))
    assert problem.scale == 10
    assert problem.columns.amount.tolist() == [3.0, 1.0, 3.0, 2.0]
    assert solve_given_plans(problem, engine, 5.0) == (13.0, 13.0, True)


@pytest.mark.parametrize(("left", "makespan"), [(5, 6.0), (4, 6.0), (0, None)])
def test_project_modes_and_resources_are_read(
    tmp_path: Path, left: int, makespan: float | None
) -> None:
    """Short with the whole resource and then the other job, or side by side; else impossible."""
    project = read_project(_written(tmp_path, "p.mm", PROJECT.format(left=left)))
    assert [len(modes) for modes in project.modes] == [1, 2, 1, 1]
    assert project.successors == ((1, 2), (3,), (3,), ())
    assert project.capacity == (2, left)
    found, _, proven = least_makespan(project, 10.0)
    assert proven
    assert found == makespan


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (read_assignment, "2 3\n 1 2", "costs: must be 6 numbers, the file has 2 left"),
        (read_assignment, ASSIGNMENT + "7", "1 numbers are left over"),
        (read_assignment, "0 3", "number of agents: must be a whole number >= 1, got 0"),
        (read_knapsack, KNAPSACK.replace(" 2\n 9.0", " 3\n 9.0"), "class 2: must follow in order"),
        (read_project, PROJECT.replace("horizon", "horizont"), "'horizon': must be followed"),
        (read_project, PROJECT.format(left="5  7"), "RESOURCEAVAILABILITIES: must be 2 numbers"),
    ],
)
def test_faults_are_named(tmp_path: Path, reader: object, text: str, message: str) -> None:
    """A file that is not in the format is refused with its name, the place and the rule."""
    path = _written(tmp_path, "bad", text)
    with pytest.raises(FormatError, match=message) as caught:
        reader(path)  # type: ignore[operator]
    assert str(path) in str(caught.value)


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    """The layouts that are known are told."""
    with pytest.raises(FormatError, match="known are orlibrary, standard"):
        read_assignment(_written(tmp_path, "gap", ASSIGNMENT), "other")


def _folder(tmp_path: Path, known: float = 7.0) -> Path:
    _written(
        tmp_path, "gap/values.csv", f"file,format,optimum,best_value\na,orlibrary,{known},{known}\n"
    )
    _written(tmp_path, "gap/a", ASSIGNMENT)
    _written(tmp_path, "mmkp/values.csv", "file,value,upper_bound,proved\nI,12,13,no\n")
    _written(tmp_path, "mmkp/I", KNAPSACK)
    _written(tmp_path, "mmrcpsp/values.csv", "file,makespan,feasible,proved\np.mm,6,yes,yes\n")
    _written(tmp_path, "mmrcpsp/p.mm", PROJECT.format(left=5))
    return tmp_path


def test_the_command_reports_and_proves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each instance and engine; a best known value that is not proven may be beaten."""
    assert main(["--folder", str(_folder(tmp_path)), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "edgeflow-third-party/1"
    assert [(row["instance"], row["solver"]) for row in document["rows"]] == [
        ("a", "cpsat"), ("a", "highs"), ("I", "cpsat"), ("I", "highs"), ("p.mm", "cpsat"),
    ]  # fmt: skip
    assert all(row["proven"] and row["gap"] == 0.0 for row in document["rows"])
    assert document["rows"][2]["worse"] == pytest.approx(-1.0 / 12.0)
    assert main(["--folder", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "gap cpsat: 1 instances, 1 proven, 1 at the known value or better" in printed
    assert "12?" in printed


def test_a_contradiction_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A known optimum that we beat, or do not reach with a proof, makes the exit code 1."""
    for known in (8.0, 6.0):
        assert main(["--folder", str(_folder(tmp_path, known)), "--only", "gap"]) == 1
        assert "CONTRADICTION: gap a cpsat" in capsys.readouterr().err


def test_a_missing_table_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the table of known values there is nothing to hold against: exit code 5."""
    assert main(["--folder", str(tmp_path)]) == 5
    assert "values.csv: must be the table of known values" in capsys.readouterr().err


def test_known_values_of_the_public_files(data_folder: Path) -> None:
    """The smallest public instances of every kind are read and solved to their known values."""
    folder = data_folder / "third_party"
    if not folder.is_dir():
        pytest.skip("the folder of public data has no third_party")
    for kind, names in (
        ("gap", ("gap1-0", "gap1-1")), ("mmkp", ("I01", "I02")), ("mmrcpsp", ("j1010_8.mm",))
    ):  # fmt: skip
        wanted = len(names) * (1 if kind == "mmrcpsp" else 2)
        found = []
        for row in rows(folder, (kind,), 20.0):
            if row.instance in names:
                found.append(row)
            if len(found) == wanted or row.instance not in names:
                break
        assert len(found) == wanted
        for row in found:
            assert row.proven
            assert row.value == pytest.approx(row.known)
