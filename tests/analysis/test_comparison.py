"""Comparisons of solvers: the run, the tables, the statistics."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import pickle
from pathlib import Path

import pandas as pd
import pytest

import edgeflow_opt
from edgeflow_opt import Comparison, InputError, UsageError, compare
from edgeflow_opt.analysis.comparison import comparison_from_document, named_problems
from edgeflow_opt.analysis.rows import digest_of
from edgeflow_opt.workloads import generate_problem
from tests.analysis.helpers import row, two_solvers


@pytest.fixture(scope="module")
def real() -> Comparison:
    """Two heuristics on two small instances with two seeds."""
    problems = {f"seed {seed}": generate_problem(8, 6, seed) for seed in (0, 1)}
    return compare(problems, ["greedy", "edgeflow-select"], seeds=(0, 1), time_limit_s=5)


def test_every_cell_has_a_row(real: Comparison) -> None:
    """There is one row per instance, solver and seed, in that order, with the digest."""
    assert [(r.instance, r.solver, r.seed) for r in real.rows] == [
        (i, s, n)
        for i in ("seed 0", "seed 1")
        for s in ("greedy", "edgeflow-select")
        for n in (0, 1)
    ]
    assert all(r.status == "feasible" and r.value is not None for r in real.rows)
    assert real.rows[0].digest == digest_of(generate_problem(8, 6, 0)) != real.rows[-1].digest
    assert real.settings["time_limit_s"] == 5
    assert real.versions["edgeflow-opt"] == edgeflow_opt.__version__


def test_the_best_of_an_instance(real: Comparison) -> None:
    """The largest value and the least bound of any solver, None where nobody has one."""
    first = dataclasses.replace(real.rows[0], instance="i", value=None, bound=None)
    said = ((3.0, 9.0), (4.0, None), (None, 5.0))
    rows = [dataclasses.replace(first, value=value, bound=bound) for value, bound in said]
    found = Comparison(rows=(*rows, dataclasses.replace(first, instance="j")))
    assert (found.best_value("i"), found.best_bound("i")) == (4.0, 5.0)
    assert (found.best_value("j"), found.best_bound("j")) == (None, None)
    assert not found.interrupted
    rows[1] = dataclasses.replace(rows[1], limit="interrupted")
    assert Comparison(rows=tuple(rows)).interrupted


def test_round_trip(real: Comparison) -> None:
    """The document tells everything, through JSON too; the object can be pickled."""
    assert comparison_from_document(json.loads(real.to_json())) == real
    assert pickle.loads(pickle.dumps(real)) == real


def test_rows_and_watch_are_called() -> None:
    """Rows are reported one by one; a watch is open around each solve, and sees its progress."""
    import contextlib
    from collections.abc import Iterator
    from typing import Any

    calls: list[Any] = []

    @contextlib.contextmanager
    def watch(instance: str, solver: str, seed: int) -> Iterator[Any]:
        calls.append(("open", instance, solver, seed))
        yield lambda point: calls.append("progress")
        calls.append("close")

    compare(
        generate_problem(4, 4), ["greedy"], seeds=[7], watch=watch,
        on_row=lambda row: calls.append(row.solver),
    )  # fmt: skip
    assert calls[0] == ("open", "instance 1", "greedy", 7)
    assert calls[-2:] == ["close", "greedy"]
    assert "progress" in calls


def test_two_settings_of_one_solver() -> None:
    """Settings have labels of their own: their options hold for their rows alone."""
    instances = {"one": generate_problem(12, 6, 1, load=1.5)}
    settings = {
        "published": "greedy",
        "nothing for the late": ("greedy", {"params": {"late": "nothing"}}),
    }
    comparison = compare(instances, settings, time_limit_s=5)
    assert comparison.solvers == tuple(settings)
    alone = [
        edgeflow_opt.solve(instances["one"], "greedy", params=params).value
        for params in ({}, {"late": "nothing"})
    ]
    assert [row.value for row in comparison.rows] == alone
    assert alone[0] != alone[1]
    assert comparison.settings["solvers"]["published"] == {"solver": "greedy"}
    with pytest.raises(UsageError, match="give the seeds of all in seeds"):
        compare(instances, {"a": ("greedy", {"seed": 3})})
    with pytest.raises(UsageError, match="did you mean 'greedy'"):
        compare(instances, {"a": ("gredy", {})})


@pytest.mark.parametrize(
    ("solvers", "seeds", "message"),
    [
        (["gredy"], [0], "did you mean 'greedy'"),
        (["greedy", "greedy"], [0], "'greedy' is given twice"),
        (["greedy"], [1, 1], "1 is given twice"),
        (["greedy"], [-1], "option seed"),
    ],
)
def test_bad_questions(solvers: list[str], seeds: list[int], message: str) -> None:
    """Unknown or repeated names and bad seeds are refused before any solve."""
    with pytest.raises(UsageError, match=message):
        compare(generate_problem(3, 3), solvers, seeds)


def test_names_of_files(tmp_path: Path) -> None:
    """Files are named by their file names, by their paths where those clash."""
    paths = [tmp_path / "a.json", tmp_path / "b" / "a.json"]
    paths[1].parent.mkdir()
    for path in paths:
        edgeflow_opt.write_problem(generate_problem(3, 3), path)
    assert list(named_problems([paths[0]])) == ["a.json"]
    assert list(named_problems(paths)) == [str(path) for path in paths]
    assert named_problems(paths)[str(paths[0])].now == 0


def test_table_formats(tmp_path: Path) -> None:
    """Every format has all rows; Parquet comes back as the same frame."""
    comparison = two_solvers()
    frame = comparison.to_pandas()
    assert len(frame) == 12
    assert frame["bound"].isna().sum() == 6
    assert frame["met"].dtype == "Int64"
    entries = list(csv.DictReader(io.StringIO(comparison.to_csv())))
    assert len(entries) == 12
    assert entries[0]["solver"] == "exact"
    assert (entries[0]["bound"], entries[1]["bound"]) == ("10.0", "")
    for name in ("t.csv", "t.json", "t.parquet", "t.tex", "t.html"):
        comparison.save(tmp_path / name)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "t.parquet"), frame)
    assert (tmp_path / "t.csv").read_text() == comparison.to_csv()
    latex = (tmp_path / "t.tex").read_text()
    assert latex.count(r"\\") == 13
    assert r"\toprule" in latex
    assert latex.count("- &") >= 6
    assert (tmp_path / "t.html").read_text().count("<tr") == 13


def test_unknown_ends_and_columns(tmp_path: Path) -> None:
    """A name whose end says no format, and a column that is not there, are refused."""
    with pytest.raises(UsageError, match=r"known are \.csv, \.json"):
        two_solvers().save(tmp_path / "t.xlsx")
    with pytest.raises(UsageError, match="column 'nope' is not known"):
        two_solvers().to_latex(columns=["nope"])


def test_names_cannot_break_tables() -> None:
    """What LaTeX or HTML would obey in a name comes out as text."""
    comparison = Comparison(rows=(row("a_b & <script>", "s%", value=1.0),))
    assert r"a\_b \& <script>" in comparison.to_latex()
    assert "<script>" not in comparison.to_html()


def test_summary() -> None:
    """The summary counts proofs and best values, and means only what is there."""
    exact, quick = two_solvers().summary()
    assert (exact["optimal"], exact["best"], exact["gap_rows"]) == (6, 6, 6)
    assert (quick["optimal"], quick["best"], quick["gap"], quick["gap_rows"]) == (0, 2, None, 0)
    assert exact["seconds"] == pytest.approx(2.5)


def test_units_of_paired_tests() -> None:
    """Instances are the units, with the mean over their seeds; of one instance the seeds are."""
    comparison = two_solvers()
    (test,) = comparison.paired_tests("seconds")
    assert test.count == 3
    assert test.difference.mean == pytest.approx(2.4)
    one = Comparison(rows=tuple(r for r in comparison.rows if r.instance == "i0"))
    (test,) = one.paired_tests("value", reference="quick")
    assert (test.first, test.second, test.count, test.wins) == ("exact", "quick", 2, 2)


def test_missing_values_leave_their_unit_out() -> None:
    """An instance on which one run has no value does not take part in the pairs of its solver."""
    rows = list(two_solvers().rows)
    rows[1] = row("i0", "quick", status="error", seconds=None, message="no")
    (test,) = Comparison(rows=tuple(rows)).paired_tests("value")
    assert test.count == 2


def test_documents_at_fault() -> None:
    """A document of another format, and every bad row, are named."""
    with pytest.raises(InputError, match="edgeflow-compare/1"):
        comparison_from_document({"format": "edgeflow-epoch/1"})
    with pytest.raises(InputError, match=r"(?s)row 0, jobs: is missing.*row 1"):
        comparison_from_document(
            {"format": "edgeflow-compare/1", "rows": [{"instance": "a", "solver": "b", "status": "c"}, 3]}
        )  # fmt: skip
