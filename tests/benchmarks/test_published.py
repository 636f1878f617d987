"""The command that puts published figures and ours side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import published
from benchmarks.published import Figure, deviations


def figure(scheduler: str, said: float, ours: float, trace: str = "t") -> Figure:
    """Return a row."""
    return Figure(
        figure="f", trace=trace, scheduler=scheduler, kind="simulation", gpus=8, published=said,
        ours=ours, jobs=100, met=round(100 * ours), events=1, seconds=0.0,
    )  # fmt: skip


def test_deviations_are_elasticflow_and_the_order() -> None:
    """ElasticFlow within 0.05 is well, and the order counts only between figures further apart."""
    near = [
        figure("ElasticFlow", 0.80, 0.84),
        figure("EDF", 0.10, 0.30),
        figure("Themis", 0.14, 0.2),
    ]
    assert deviations(near) == []
    far = [
        figure("ElasticFlow", 0.80, 0.86),
        figure("EDF", 0.10, 0.30),
        figure("Themis", 0.16, 0.2),
    ]
    texts = [deviation.text for deviation in deviations(far)]
    assert texts[0] == "t: ElasticFlow differs by +0.060"
    assert texts[1].startswith("t: EDF (0.300) is not below Themis (0.200)")
    assert all(deviation.explanation is None for deviation in deviations(far))


def test_explanations_are_given() -> None:
    """A known deviation comes with its reason."""
    (known,) = deviations([figure("ElasticFlow", 0.667, 0.749, trace="testbed195")])
    assert known.explanation is not None
    assert "real testbed" in known.explanation


def test_the_command_runs_a_folder_of_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two jobs of our own, one of which EDF meets: the table, a line of JSON, exit code 0."""
    folder = tmp_path / "elasticflow_itp"
    folder.mkdir()
    (folder / "published_deadline_ratios.csv").write_text(
        "figure,trace,gpu_type,num_gpus,kind,scheduler,deadline_satisfactory_ratio\n"
        "f,mine,A100,8,simulation,EDF,0.5\n"
    )
    (folder / "mine.csv").write_text(
        "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
        "a,0,1000,vgg16,90,64,1,198\nb,0,100000,vgg16,100,64,1,19790\n"
    )
    code = published.main(["--data", str(tmp_path), "--json", str(tmp_path / "out.jsonl")])
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert (code, row["ours"], row["difference"]) == (0, 0.5, 0.0)
    assert "mine" in capsys.readouterr().out


def test_cluster10_is_as_published(data_folder: Path) -> None:
    """EDF meets 0.769 of cluster10 as published, ElasticFlow within 0.05 of 0.981."""
    found = published.figures(
        data_folder, traces=["cluster10"], schedulers=["EDF", "ElasticFlow", "Tiresias"]
    )
    assert {f.scheduler for f in found} == {"EDF", "ElasticFlow", "Tiresias"}
    assert deviations(found) == []
    assert next(f.ours for f in found if f.scheduler == "EDF") == pytest.approx(0.769, abs=0.01)
