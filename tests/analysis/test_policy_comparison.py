"""Comparisons of online policies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from edgeflow_opt.analysis import PolicyComparison, compare_policies
from edgeflow_opt.analysis.policy_comparison import policies_from_document
from edgeflow_opt.analysis.policy_rows import PolicyRow
from edgeflow_opt.errors import InputError, UsageError
from edgeflow_opt.simulation import simulate, simulation_document
from edgeflow_opt.workloads import Trace, cluster, demo_trace, generate_trace


def made(seed: int) -> Trace:
    """Return a small trace."""
    return generate_trace(12, seed, load=1.2, cloud_gpus=8, name="made")


@pytest.fixture(scope="module")
def real() -> PolicyComparison:
    """Two policies, two seeds, two loads."""
    return compare_policies(
        made, ["edgeflow", "edgeflow-select"], (0, 1), cloud_gpus=8,
        sweep={"arrival_scale": [1.0, 2.0]},
    )  # fmt: skip


def test_rows_are_the_simulations(real: PolicyComparison) -> None:
    """Every combination has a row whose numbers are those of the simulation by itself."""
    assert [(r.settings["arrival_scale"], r.seed, r.policy) for r in real.rows] == [
        (x, s, p) for x in (1.0, 2.0) for s in (0, 1) for p in ("edgeflow", "edgeflow-select")
    ]
    trace = made(1).scale_arrivals(2.0)
    sites = cluster(8, 0, start_s=trace.start, end_s=trace.end)
    direct = simulate(trace.jobs(), sites, "edgeflow-select", overhead="none")
    assert real.rows[-1].value("met") == direct.metrics.met
    assert real.swept == ("arrival_scale",)


def test_processes_make_the_same_rows(real: PolicyComparison) -> None:
    """With several workers rows and their order are the same, and every run is told of."""
    told: list[tuple[int, int]] = []
    rows = compare_policies(
        made, ["edgeflow", "edgeflow-select"], (0, 1), cloud_gpus=8,
        sweep={"arrival_scale": [1.0, 2.0]}, workers=2,
        on_progress=lambda done, total: told.append((done, total)),
    ).rows  # fmt: skip
    assert told == [(done, 8) for done in range(1, 9)]

    def untimed(row: PolicyRow) -> dict[str, Any]:
        return {n: v for n, v in (row.metrics or {}).items() if n != "decision_s"}

    for row, alone in zip(rows, real.rows, strict=True):
        assert (row.policy, row.seed, row.settings) == (alone.policy, alone.seed, alone.settings)
        assert untimed(row) == untimed(alone)


def test_means_by_setting(real: PolicyComparison) -> None:
    """A point is the mean over the seeds at one value of the sweep."""
    points = real.means("met")
    assert len(points) == 4
    rows = [r for r in real.rows if r.policy == "edgeflow" and r.settings["arrival_scale"] == 1.0]
    first = points[0]
    assert (first.policy, dict(first.settings)) == ("edgeflow", {"arrival_scale": 1.0})
    assert first.mean.mean == sum(r.value("met") or 0 for r in rows) / 2
    assert [p.mean.count for p in real.means("met", by=[])] == [4, 4]


def test_units_are_seeds(real: PolicyComparison) -> None:
    """Policies are paired by trace and seed, averaged over the sweep."""
    (test,) = real.paired_tests("dsr", reference="edgeflow")
    assert test.count == 2
    assert test.first == "edgeflow-select"


def test_round_trip_and_table(real: PolicyComparison, tmp_path: Path) -> None:
    """The document comes back the same; the table has a column for each setting and measure."""
    again = policies_from_document(json.loads(real.to_json()))
    assert again.to_json() == real.to_json()
    real.save(tmp_path / "p.parquet")
    frame = pd.read_parquet(tmp_path / "p.parquet")
    assert len(frame) == 8
    assert {"arrival_scale", "dsr", "decision_mean_s", "digest"} <= set(frame)
    assert r"\toprule" in real.to_latex()


def test_deadlines_are_drawn_by_seed() -> None:
    """With one trace the seed re-draws the deadlines, so digests differ."""
    comparison = compare_policies(
        demo_trace(), ["edgeflow-select"], (0, 1), cloud_gpus=8, head=10, deadlines=(0.5, 1.5),
        bound_s=5.0,
    )  # fmt: skip
    for row in comparison.rows:
        assert row.bound is not None
        assert row.value("met") <= row.bound <= 10
    assert comparison.rows[0].digest != comparison.rows[1].digest
    assert comparison.rows[0].value("jobs") == 10


def test_a_failing_policy_has_a_row() -> None:
    """A policy that breaks a rule is a row with its message; the others go on."""
    from edgeflow_opt.policies import POLICIES, ClusterState, Decision

    class Refuser:
        def decide(self, state: ClusterState) -> Decision:
            raise ZeroDivisionError("by zero")

    with pytest.MonkeyPatch.context() as patch:
        get = POLICIES.get
        patch.setattr(POLICIES, "get", lambda name: Refuser if name == "bad" else get(name))
        bad, good = compare_policies(made, ["bad", "edgeflow-select"], cloud_gpus=8).rows
    assert bad.metrics is None
    assert "ZeroDivisionError" in str(bad.message)
    assert good.value("jobs") == 12


def test_simulation_documents_are_read() -> None:
    """What ``edgeflow simulate`` writes is a comparison with one seed."""
    trace = made(0)
    sites = cluster(8, 0, start_s=trace.start, end_s=trace.end)
    result = simulate(trace.jobs(), sites, "edgeflow-select")
    document = simulation_document("made", {"cloud_gpus": 8, "seed": 3}, [result])
    (row,) = policies_from_document(document).rows
    assert (row.trace, row.policy, row.seed) == ("made", "edgeflow-select", 3)
    assert row.value("dsr") == result.metrics.dsr


def test_bad_questions() -> None:
    """Unknown policies, settings, measures and documents are refused."""
    with pytest.raises(UsageError, match="setting 'gpus' is not known"):
        compare_policies(made, ["edgeflow"], gpus=3)
    with pytest.raises(UsageError, match="option workers: must be at least 1"):
        compare_policies(made, ["edgeflow"], workers=0)
    with pytest.raises(UsageError, match="did you mean 'edgeflow'"):
        compare_policies(made, ["edgeflaw"])
    with pytest.raises(UsageError, match="measure 'speed' is not known"):
        PolicyComparison(rows=()).means("speed")
    with pytest.raises(InputError, match="edgeflow-compare-policies/1"):
        policies_from_document({"format": "x"})
