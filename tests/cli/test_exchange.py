"""``edgeflow export`` and ``edgeflow import``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import edgeflow


@pytest.mark.parametrize("form", ["mps", "lp", "cpsat", "json"])
@pytest.mark.parametrize("formulation", ["malleable", "moldable", "plan"])
def test_every_format_goes_to_stdout_or_a_file(
    instance_file: Path, tmp_path: Path, form: str, formulation: str
) -> None:
    """The text on stdout is that of the file, and names the job of the instance."""
    arguments = ("export", instance_file, "--formulation", formulation, "--format", form)
    shown = edgeflow(*arguments)
    output = tmp_path / "model"
    assert edgeflow(*arguments, "--output", output).out == ""
    assert shown.code == 0
    assert shown.out == output.read_text()
    assert "(j1" in shown.out


def test_a_solution_comes_back_as_a_schedule_that_check_accepts(
    instance_file: Path, tmp_path: Path
) -> None:
    """A solution by name becomes a schedule file, which ``edgeflow check`` finds valid."""
    solution, schedule = tmp_path / "model.sol", tmp_path / "schedule.json"
    solution.write_text("z(j1) 1\nstart(j1,cloud,2,0,new) 0.9999999\nx(j1,cloud,2,1) 1\n")
    done = edgeflow("import", instance_file, solution, "--output", schedule)
    assert done.code == 0, done.err
    assert "1 of 1" in done.out
    assert edgeflow("check", instance_file, schedule).code == 0
    document = edgeflow("import", instance_file, "-", "--json", stdin=solution.read_text()).document
    assert document["solver"] == "import:plain"
    assert document["allocations"][0]["gpus"] == 2


def test_a_claim_without_a_plan_is_told(instance_file: Path, tmp_path: Path) -> None:
    """A file that calls a job met and runs nothing is valid, with a word on what it claims."""
    solution = tmp_path / "model.sol"
    solution.write_text("z(j1) 1\n")
    done = edgeflow("import", instance_file, solution)
    assert done.code == 0
    assert "0 of 1" in done.out
    words = " ".join(done.out.split())
    assert "the file claims 1 met job that its plan does not meet: 'j1'" in words
    machine = edgeflow("import", instance_file, solution, "--json")
    assert machine.document["outcomes"][0]["met"] is False
    assert machine.err.startswith("Note: the file claims 1 met job")
    solution.write_text("z(j1) 1\nx(j1,cloud,2,0) 1\nx(j1,cloud,2,1) 1\n")
    assert "its plan does not meet" not in edgeflow("import", instance_file, solution).out


def test_an_invalid_solution_fails_and_writes_nothing(instance_file: Path, tmp_path: Path) -> None:
    """A solution that breaks a capacity ends with 6, one of another instance with 5; no file."""
    solution, schedule = tmp_path / "model.sol", tmp_path / "schedule.json"
    solution.write_text("x(j1,edge,1,2) 1\n")
    done = edgeflow("import", instance_file, solution, "--output", schedule)
    assert done.code == 6
    assert "capacity" in done.out
    solution.write_text("x(other,edge,1,2) 1\n")
    done = edgeflow("import", instance_file, solution, "--output", schedule)
    assert done.code == 5
    assert "not of a model of this instance" in done.err
    assert not schedule.exists()


def test_a_later_level_keeps_what_a_schedule_reached(instance_file: Path, tmp_path: Path) -> None:
    """Levels to keep are taken from a schedule, or by name; missing ones are a usage error."""
    schedule = tmp_path / "schedule.json"
    assert edgeflow("solve", instance_file, "--quiet", "--output", schedule).code == 0
    by_file = edgeflow("export", instance_file, "--level", "4", "--keep-schedule", schedule)
    values = ("--keep", "met=1", "--keep", "progress=0", "--keep", "leftover=1")
    by_name = edgeflow("export", instance_file, "--level", "4", *values)
    assert by_file.code == by_name.code == 0
    assert by_file.out == by_name.out
    assert "keep(met)" in by_name.out
    missing = edgeflow("export", instance_file, "--level", "3", "--keep", "met=1")
    assert missing.code == 2
    assert "missing: progress" in missing.err


def test_the_schema_of_the_model_is_published() -> None:
    """``edgeflow schema model`` prints the schema of the JSON format."""
    assert edgeflow("schema", "model").document["title"] == "edgeflow-model/1"
