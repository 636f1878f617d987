"""The experiments on whole traces, on tiny generated ones."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import imperfections, online
from edgeflow_opt.policies import POLICIES


@pytest.mark.parametrize("name", sorted(online.EXPERIMENTS))
def test_every_experiment_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each gives a point for every value and contender, with an interval over two seeds."""
    file = tmp_path / "out.json"
    policies = [] if name == "ablation" else ["--policies", "edgeflow", "edf"]
    code = online.main(
        [
            name,
            "--trace",
            "generated",
            "--jobs",
            "6",
            "--seeds",
            "2",
            "--json",
            str(file),
            *policies,
        ]
    )
    document = json.loads(file.read_text())
    experiment = online.EXPERIMENTS[name]
    contenders = len(online.ABLATION) if name == "ablation" else 2
    assert (code, document["format"]) == (0, "edgeflow-experiment/1")
    assert len(document["rows"]) == contenders * len(experiment.values)
    for row in document["rows"]:
        low, high = sorted(row["values"])
        assert row["mean"] == pytest.approx((low + high) / 2)
        # Student's t of one degree of freedom at 97.5 %, times the standard error.
        assert row["half_width"] == pytest.approx(12.7062 * (high - low) / 2, rel=1e-4)
    assert "load" in capsys.readouterr().out


def test_the_motivating_instance_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The optimum of 7 and 9 stands above what the policies meet."""
    assert online.main(["motivating", "--policies", "edgeflow-select"]) == 0
    assert "exact optimum                    7     9" in capsys.readouterr().out


@pytest.mark.parametrize("module", [online, imperfections])
def test_a_trace_that_is_not_there_is_told_at_once(
    module: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is compiled or simulated, with the ways out."""
    experiment = {online: "table", imperfections: "placement"}[module]
    monkeypatch.setattr("edgeflow_opt.solvers.kernels.warm_up", pytest.fail)
    monkeypatch.delenv("EDGEFLOW_DATA", raising=False)
    with pytest.raises(SystemExit, match="2"):
        module.main([experiment])
    assert "give --data or set EDGEFLOW_DATA, or take --trace generated" in capsys.readouterr().err


def test_all_policies_but_the_exact_one_are_compared() -> None:
    """A policy that is added has to be named here as well."""
    assert set(online.ALL) | {"exact"} == set(POLICIES.names())


def test_the_readme_table_has_four_columns(
    data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On testbed195 EDF as published meets next to nobody, whatever the cluster."""
    assert online.main(["table", "--policies", "edf", "--data", str(data_folder)]) == 0
    assert "| `edf` | 2 | 2 |" in capsys.readouterr().out
