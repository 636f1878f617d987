"""``edgeflow demo`` and ``edgeflow warm-up``."""

from __future__ import annotations

from edgeflow_opt.analysis import Row
from edgeflow_opt.cli.demo import reading
from tests.cli.helpers import edgeflow


def _row(solver: str, met: int | None, status: str = "feasible") -> Row:
    return Row(
        instance="demo", solver=solver, num_jobs=9, status=status, met=met,
        met_weight=met,
    )  # fmt: skip


def test_reading_tells_the_figures_of_the_table() -> None:
    """The sentences under the table are made from its rows."""
    rows = [_row("greedy", 5), _row("edgeflow-select", 6), _row("a", 7), _row("b", 7, "optimal")]
    text = reading(rows)
    assert "7 jobs on time is proven optimal, reached by a and b" in text
    assert "the greedy reaches 5, with job selection 6" in text
    text = reading([_row("greedy", 5), _row("a", 6)])
    assert "6 jobs on time is the best found, reached by a; the greedy reaches 5, in" in text
    text = reading([_row("greedy", 6), _row("a", 6), _row("b", 6, "optimal")])
    assert "reached by greedy, a and b" in text
    assert " 1 job on time" in reading([_row("greedy", 1), _row("a", 1)])
    assert "greedy" not in reading([_row("a", 6)])
    assert "greedy" not in reading([_row("greedy", 6), _row("a", None, "error")])


def test_demo() -> None:
    """The demonstration compares the solvers and simulates a trace: one document with --json."""
    ran = edgeflow("demo", "--time-limit", "0.5", "--json", "--quiet")
    assert ran.code == 0, ran.err
    document = ran.document
    assert document["format"] == "edgeflow-demo/1"
    rows = {row["solver"]: row for row in document["rows"]}
    assert {"greedy", "cpsat", "highs", "auto"} <= set(rows)
    assert rows["greedy"]["bound"] is None
    reached = max(row["met_weight"] for row in rows.values())
    told = {name: (row["met_weight"], row["bound"], row["status"]) for name, row in rows.items()}
    for row in rows.values():
        assert row["message"] is None
        assert row["bound"] is None or row["bound"] >= reached - 1e-6, told
    assert rows["auto"]["met_weight"] >= rows["greedy"]["met_weight"]
    policies = [row["policy"] for row in document["simulation"]["results"]]
    assert policies == ["edgeflow", "edgeflow-select", "exact"]


def test_warm_up() -> None:
    """The kernels are compiled and the time is told."""
    ran = edgeflow("warm-up", "--json")
    assert ran.code == 0, ran.err
    assert ran.document["seconds"] >= 0
    assert "compiled" in edgeflow("warm-up").out
