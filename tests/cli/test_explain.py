"""``edgeflow explain``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import edgeflow_opt as ef
from edgeflow_opt.cli.explain import _marginals_table
from edgeflow_opt.problem import Job, write_problem
from tests.cli.helpers import edgeflow
from tests.solvers.instances import MODES, small


def test_people_get_tables_and_machines_one_document(tmp_path: Path) -> None:
    """Missed jobs, reasons and remedies are in the tables, and all of it in one JSON document."""
    path, output = tmp_path / "instance.json", tmp_path / "explanation.json"
    write_problem(small(), path)
    shown = edgeflow("explain", path, "--quiet", "--output", output)
    assert shown.code == 0, shown.err
    assert "1 more unit of 'cloud' in [0, 20) (proven least)" in shown.out
    assert "Worth of one more unit" in shown.out
    assert "re-solved: verified gain of one whole unit" in shown.out
    document = edgeflow("explain", path, "--job", "j3", "--no-marginals", "--json").document
    assert document["format"] == "edgeflow-explanation/1"
    assert [job["job"] for job in document["jobs"]] == ["j3"]
    remedy = document["jobs"][0]["remedies"][0]
    assert (remedy["kind"], remedy["units"], remedy["site"]) == ("capacity", 1, "cloud")
    assert remedy["schedule"]["format"] == "edgeflow-schedule/1"
    assert output.exists()


def test_an_open_gain_is_an_interval() -> None:
    """A gain that is not known is told as its least and its most, and that time ran out."""
    from rich.console import Console

    from edgeflow_opt.analysis.explain import explain

    found = explain(small(), time_limit_s=20.0, jobs=[])
    (first, *_) = found.marginals
    half = dataclasses.replace(first, gain_at_least=0.0, gain_at_most=4.0)
    none = dataclasses.replace(first, gain_at_least=None, gain_at_most=None)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(_marginals_table(dataclasses.replace(found, marginals=(first, half, none))))
    ends = [line.split()[4:] for line in shown.get().splitlines()[-3:]]
    assert ends == [["1"], ["0-4,", "not", "closed", "in", "time"], ["-"]]


def test_a_given_schedule_is_explained(tmp_path: Path) -> None:
    """A schedule given is the one explained; one that leaves room is told so."""
    path, plan = tmp_path / "instance.json", tmp_path / "schedule.json"
    write_problem(small(), path)
    ef.write_schedule(ef.import_solution(small(), {}).schedule, plan)
    shown = edgeflow("explain", path, plan, "--job", "j0", "--no-marginals")
    assert shown.code == 0
    assert "another schedule of the same instance meets it" in shown.out


def test_a_contradiction_ends_with_3(tmp_path: Path) -> None:
    """Hard deadlines that contradict each other are named, and the exit code says infeasible."""
    path = tmp_path / "instance.json"
    job = Job(id="hopeless", deadline=10.0, work=1e6, modes=MODES, must_meet=True)
    write_problem(small(jobs=(job,)), path)
    shown = edgeflow("explain", path)
    assert shown.code == 3
    assert "job 'hopeless' cannot meet its deadline, whatever the others do" in shown.out


def test_an_unknown_job_is_a_usage_error(instance_file: Path) -> None:
    """A job that the instance has not ends with 2."""
    shown = edgeflow("explain", instance_file, "--job", "nobody")
    assert shown.code == 2
    assert "job 'nobody' is not one of the instance" in shown.err
