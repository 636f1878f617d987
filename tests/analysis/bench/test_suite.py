"""Suites: what a file stands for, and everything that is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

import edgeflow_opt
from edgeflow_opt.analysis.bench import read_suite
from edgeflow_opt.analysis.bench.cells import run_cell
from edgeflow_opt.analysis.bench.records import comparisons_of
from edgeflow_opt.errors import InputError
from edgeflow_opt.workloads import generate_problem, generate_trace, write_trace

HEAD = 'format = "edgeflow-suite/1"\nseeds = [0, 1]\n'


def written(folder: Path, text: str) -> Path:
    """Return a file with a suite."""
    path = folder / "suite.toml"
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def test_sweeps_are_all_combinations(tmp_path: Path) -> None:
    """Lists are swept, pairs of a generator are one value, and every cell has an id of its own."""
    suite = read_suite(
        written(
            tmp_path,
            """
            [[solve]]
            generate = { num_jobs = [3, 4], num_slots = 3, deadline_factors = [1.0, 2.0] }
            solvers = ["greedy", "auto"]
            time_limit_s = [1, 2]
            [[simulate]]
            generate = { num_jobs = 5, load = [0.5, 1.0] }
            policies = "edgeflow"
            cloud_gpus = 8
            edge_servers = [0, 2]
            deadlines = "0.5,1.5"
            """,
        )
    )
    solves = [cell for cell in suite.cells if cell.kind == "solve"]
    assert len(solves) == 2 * 2 * 2 * 2
    assert len(suite.cells) - len(solves) == 2 * 2 * 2
    assert len({cell.id for cell in suite.cells}) == len(suite.cells)
    assert solves[0].label == "3x3 deadline_factors=1.0-2.0 seed 0"
    assert {cell.name for cell in solves} >= {"greedy time_limit_s=1", "auto time_limit_s=2"}
    assert suite.cells[-1].settings["deadlines"] == [0.5, 1.5]
    assert suite.name == "suite"


def test_files_are_known_by_content(tmp_path: Path) -> None:
    """Patterns are looked up beside the suite; a cell is the same elsewhere, not with other content."""
    ids = []
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / folder).mkdir()
        edgeflow_opt.write_problem(generate_problem(3, 3, seed), tmp_path / folder / "i.json")
        path = written(tmp_path / folder, '[[solve]]\ninstances = "*.json"\nsolvers = ["greedy"]')
        ids.append(read_suite(path).cells[0].id)
    assert ids[0] == ids[1] != ids[2]


def test_cells_run_to_rows(tmp_path: Path) -> None:
    """A cell gives the row of its contender: of files and of generated input alike."""
    edgeflow_opt.write_problem(generate_problem(3, 3), tmp_path / "i.json")
    write_trace(generate_trace(4, 1), tmp_path / "t.csv")
    suite = read_suite(
        written(
            tmp_path,
            """
            [[solve]]
            instances = ["i.json"]
            generate = { num_jobs = 4, num_slots = 3 }
            solvers = ["greedy"]
            [[simulate]]
            traces = ["t.csv"]
            generate = { num_jobs = 5, load = 1.0 }
            policies = ["edgeflow-select"]
            cloud_gpus = 8
            bound_s = 5
            """,
        )
    )
    records = [run_cell(cell) for cell in suite.cells]
    assert [r.failure for r in records] == [None] * 12
    assert records[0].row["instance"] == "i.json"
    assert records[0].digest == records[1].digest  # one file, two seeds
    assert records[2].digest != records[3].digest  # generated with each seed
    assert records[-1].row["settings"]["load"] == 1.0
    assert records[-1].row["metrics"]["jobs"] == 5
    assert all(r.versions["edgeflow-opt"] for r in records)
    _, policies = comparisons_of(records)
    assert policies is not None
    assert all(r.bound is not None and (r.value("met") or 0) <= r.bound for r in policies.rows)
    assert len(policies.rows) == 4


def test_a_cell_that_fails_says_so(tmp_path: Path) -> None:
    """A file that has gone, or turned bad, is a record with its message, not a crash."""
    edgeflow_opt.write_problem(generate_problem(3, 3), tmp_path / "i.json")
    suite = read_suite(written(tmp_path, '[[solve]]\ninstances = "i.json"\nsolvers = "greedy"'))
    (tmp_path / "i.json").unlink()
    record = run_cell(suite.cells[0])
    assert record.failure == "error"
    assert "does not exist" in record.row["message"]


def test_all_faults_together(tmp_path: Path) -> None:
    """Every fault of a suite is named with its table, in one error."""
    text = """
    cell_limit_s = 0
    colour = "red"
    [[solve]]
    instances = "none-*.json"
    generate = { num_job = 3 }
    solvers = ["gredy"]
    time_limit_s = -1
    [[simulate]]
    generate = { num_jobs = 3 }
    policies = ["edgeflow"]
    policy_options.edgeflow = { beauty = 1 }
    overhead = "much"
    deadlines = "2,1"
    cloud_gpus = -3
    """
    with pytest.raises(InputError) as caught:
        read_suite(written(tmp_path, text))
    message = str(caught.value)
    for part in (
        "suite, cell_limit_s: must be a number above 0", "suite, colour: is not known",
        "did you mean 'greedy'", "names no file", "generate, num_job: is not known",
        "generate, num_jobs: is missing", "option time_limit_s", "'beauty'", "overhead",
        "simulate 1, deadlines", "simulate 1, cloud_gpus",
    ):  # fmt: skip
        assert part in message, part


def test_more_faults_together(tmp_path: Path) -> None:
    """What is no list, no table or no pair is named as well, whatever it is instead."""
    text = """
    [[solve]]
    instances = [3]
    generate = 5
    solvers = []
    params = 3
    [[simulate]]
    generate = { num_jobs = 3, seed = 1 }
    policies = "edf"
    failures = "often"
    withdrawals = "0,9"
    deadlines = "late"
    bound_s = true
    merge_s = "now"
    """
    with pytest.raises(InputError) as caught:
        read_suite(written(tmp_path, text))
    message = str(caught.value)
    for part in (
        "solve 1, instances: must be names of files", "solve 1, generate: must be a table",
        "solve 1, solvers: must be a list of names", "solve 1, params: must be tables",
        "simulate 1, generate, seed: is not known", "simulate 1, failures: must be 'UP,DOWN'",
        "simulate 1, withdrawals: must be 'UP,DOWN'", "simulate 1, deadlines: must be 'trace' or",
        "simulate 1, bound_s: must be a number above 0", "simulate 1, merge_s: must be a number",
    ):  # fmt: skip
        assert part in message, part


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "has no cell"), ("[[solve", "is no TOML"), ("solve = 3", r"headed \[\[solve\]\]")],
)
def test_no_suites(tmp_path: Path, text: str, message: str) -> None:
    """Empty and broken files are refused."""
    with pytest.raises(InputError, match=message):
        read_suite(written(tmp_path, text))


def test_the_sample_is_a_suite() -> None:
    """The suite that comes with the package is in order."""
    sample = Path(__file__).parents[3] / "benchmarks" / "suites" / "sample.toml"
    assert len(read_suite(sample).cells) == 5 * (4 * 4 + 2 * 2 * 3)
