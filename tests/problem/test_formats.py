"""The two file formats: the published examples, round trips, and everything that is refused."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from edgeflow_opt.errors import InputError, InstanceError, ScheduleError, UsageError
from edgeflow_opt.problem import (
    EpochProblem,
    Limit,
    Schedule,
    SolveStatus,
    check,
    json_schema,
    problem_from_dict,
    problem_to_dict,
    read_problem,
    read_schedule,
    schedule_from_dict,
    schedule_to_dict,
    write_problem,
    write_schedule,
)
from edgeflow_opt.problem.formats import dumps
from tests.effort import examples
from tests.problem.examples import (
    INSTANCE_TEXT,
    SCHEDULE_TEXT,
    instance_document,
    rich_problem,
    rich_schedule,
    schedule_document,
)
from tests.strategies import problems, problems_with_schedules

Path_ = tuple[str | int, ...]


def _changed(document: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    """Return `document` with `value` put in at `path`."""
    result = copy.deepcopy(document)
    place: Any = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return result


def test_published_examples_read_and_check(tmp_path: Path) -> None:
    """The example documents are read as files, mean what they say, and belong together."""
    (tmp_path / "i.json").write_text(INSTANCE_TEXT, encoding="utf-8")
    (tmp_path / "s.json").write_text(SCHEDULE_TEXT, encoding="utf-8")
    problem, schedule = read_problem(tmp_path / "i.json"), read_schedule(tmp_path / "s.json")
    assert problem.grid.boundaries == (0.0, 300.0, 600.0, 900.0)
    assert problem.sites[1].capacity == ((0.0, 4), (600.0, 0))
    job = problem.jobs[0]
    assert (job.id, job.deadline, job.work, job.restart_s, job.migration_s) == (
        "j1", 850.0, 1200.0, 10.0, 30.0,
    )  # fmt: skip
    assert job.running is not None
    assert job.last_site == "cloud"
    assert schedule.status is SolveStatus.OPTIMAL
    report = check(problem, schedule)
    assert report.valid, report.violations
    assert report.met_weight == 1.0


def test_published_examples_round_trip() -> None:
    """Writing what was read gives documents of the same meaning."""
    problem = problem_from_dict(instance_document())
    assert problem_from_dict(problem_to_dict(problem)) == problem
    schedule = schedule_from_dict(schedule_document())
    assert schedule_from_dict(schedule_to_dict(schedule)) == schedule


@given(problems())
def test_instances_round_trip(problem: EpochProblem) -> None:
    """Every instance is the same after a way through JSON text."""
    text = dumps(problem_to_dict(problem))
    assert problem_from_dict(json.loads(text)) == problem


@given(problems(weighted=True, max_jobs=1))
def test_weighted_instances_round_trip(problem: EpochProblem) -> None:
    """The weights of the levels survive, defaults and zeros included."""
    assert problem_from_dict(problem_to_dict(problem)) == problem


@given(problems_with_schedules())
def test_schedules_round_trip(drawn: tuple[EpochProblem, Schedule]) -> None:
    """Every schedule is the same after a way through JSON text."""
    _, schedule = drawn
    assert schedule_from_dict(json.loads(dumps(schedule_to_dict(schedule)))) == schedule


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
def test_files_round_trip(tmp_path: Path, suffix: str) -> None:
    """Instance and schedule survive writing and reading; a name in .gz is read as gzip."""
    import gzip

    problem = rich_problem()
    schedule = rich_schedule(problem)
    write_problem(problem, tmp_path / "i.json")
    write_schedule(schedule, tmp_path / "s.json")
    if suffix == "json.gz":
        for name in ("i", "s"):
            packed = gzip.compress((tmp_path / f"{name}.json").read_bytes())
            (tmp_path / f"{name}.json.gz").write_bytes(packed)
    assert read_problem(tmp_path / f"i.{suffix}") == problem
    assert read_schedule(tmp_path / f"s.{suffix}") == schedule


@pytest.mark.parametrize("status", ["infeasible", "no_solution", "error"])
def test_documents_without_a_plan_round_trip(status: str) -> None:
    """A schedule without a plan has empty lists and a null objective."""
    schedule = Schedule(solver="x", status=SolveStatus(status), limit=Limit.TIME)
    document = schedule_to_dict(schedule)
    assert document["allocations"] == document["outcomes"] == []
    assert document["objective"] is None
    assert schedule_from_dict(document) == schedule


def test_defaults_of_an_instance() -> None:
    """What is left out has the documented default."""
    document = instance_document()
    document["jobs"] = [{"id": "j", "deadline": -5, "work": 1,
                         "modes": [{"site": "cloud", "gpus": 1, "rate": 1}]}]  # fmt: skip
    problem = problem_from_dict(document)
    job = problem.jobs[0]
    assert (job.weight, job.memory_gib, job.running, job.last_site) == (1.0, 0.0, None, None)
    assert (job.restart_s, job.migration_s, job.must_meet, job.malleable) == (0.0, 0.0, False, True)
    assert job.arrival == -5.0
    assert problem.sites[0].price == 1.0
    assert problem.objective.mode == "lexicographic"


def test_whole_floats_are_whole_numbers() -> None:
    """2.0 is 2 for counts and units, and the object holds an int."""
    document = _changed(instance_document(), ("jobs", 0, "modes", 1, "gpus"), 2.0)
    document = _changed(document, ("sites", 0, "capacity"), [[0.0, 64.0]])
    problem = problem_from_dict(document)
    assert problem == problem_from_dict(instance_document())
    assert type(problem.jobs[0].modes[1].gpus) is int
    assert type(problem.sites[0].capacity[0][1]) is int
    assert type(problem.jobs[0].work) is float


# Where a value is put in, the value, and what the message must say.
BAD_VALUES: list[tuple[Path_, Any, str]] = [
    (("format",), "edgeflow-epoch/2", "format: must be 'edgeflow-epoch/1', got 'edgeflow-epoch/2'"),
    (("format",), None, "format: must be 'edgeflow-epoch/1', got None"),
    (("now",), "0", "document, now: must be a number, got '0'"),
    (("now",), 5, r"now: must equal the first boundary of the grid, 0.0, got 5.0; start the grid"),
    (("grid",), {}, r"document, grid: must be a list, got \{\}"),
    (("grid",), [0], r"document, grid: must be a list of length >= 2, got \[0\]"),
    (("grid", 1), None, r"document, grid\[1\]: must be a number, got None"),
    (("grid", 1), math.nan, r"document, grid\[1\]: must be a number >= -1e15, got nan"),
    (("grid", 3), 1e999, r"document, grid\[3\]: must be a number <= 1e15, got inf"),
    (("grid", 3), 1e308, r"document, grid\[3\]: must be a number <= 1e15, got 1"),
    (("grid", 3), 10**400, r"document, grid\[3\]: must be at most 1e15, got 1000"),
    (("sites",), [], r"document, sites: must be a list of length >= 1, got \[\]"),
    (("sites",), None, "document, sites: must be a list, got None"),
    (("sites", 0), 7, r"document, sites\[0\]: must be a JSON object, got 7"),
    (("sites", 0, "name"), 7, r"sites\[0\], name: must be a text, got 7"),
    (("sites", 0, "name"), "", "site '', name: must be a text of length >= 1, got ''"),
    (("sites", 0, "gpu_type"), "\ud800", "text that can be written as UTF-8"),
    (("sites", 0, "kind"), "fog", "site 'cloud', kind: must be one of 'cloud', 'edge', got 'fog'"),
    (("sites", 0, "capacity"), 64, "site 'cloud', capacity: must be a list, got 64"),
    (("sites", 0, "capacity"), [], "site 'cloud', capacity: must be a list of length >= 1"),
    (("sites", 0, "capacity"), [[0]], r"capacity\[0\]: must be a list of length 2, got \[0\]"),
    (("sites", 0, "capacity"), [[0, 1, 2]], r"capacity\[0\]: must be a list of length 2, got"),
    (("sites", 0, "capacity"), [[0, 1.5]], r"capacity\[0\]\[1\]: must be a whole number, got 1.5"),
    (("sites", 0, "capacity"), [[0, True]], r"capacity\[0\]\[1\]: must be a whole number, got Tru"),
    (("sites", 0, "capacity"), [[0, -1]], r"capacity\[0\]\[1\]: must be a whole number >= 0, got "),
    (("sites", 0, "gpu_type"), None, "site 'cloud', gpu_type: must be a text, got None"),
    (("sites", 0, "gpus_per_node"), 0, "gpus_per_node: must be a whole number >= 1, got 0"),
    (("sites", 1, "memory_gib"), "16", "site 'edge', memory_gib: must be a number or null, got"),
    (("jobs",), {"j1": {}}, "document, jobs: must be a list, got"),
    (("jobs", 0), "j1", r"document, jobs\[0\]: must be a JSON object, got 'j1'"),
    (("jobs", 0, "id"), 1, r"jobs\[0\], id: must be a text, got 1"),
    (("jobs", 0, "deadline"), "soon", "job 'j1', deadline: must be a number or null, got 'soon'"),
    (("jobs", 0, "deadline"), True, "job 'j1', deadline: must be a number or null, got True"),
    (("jobs", 0, "arrival"), None, "job 'j1', arrival: must be a number, got None"),
    (("jobs", 0, "work"), 0, "job 'j1', work: must be a number > 0, got 0"),
    (("jobs", 0, "work"), 10**400, "job 'j1', work: must be at most 1e15, got 1000"),
    (("jobs", 0, "weight"), -1, "job 'j1', weight: must be a number >= 0, got -1"),
    (("jobs", 0, "must_meet"), 1, "job 'j1', must_meet: must be true or false, got 1"),
    (("jobs", 0, "malleable"), "no", "job 'j1', malleable: must be true or false, got 'no'"),
    (("jobs", 0, "modes"), [], "job 'j1', modes: must be a list of length >= 1"),
    (("jobs", 0, "modes", 1), [], r"job 'j1', modes\[1\]: must be a JSON object, got \[\]"),
    (("jobs", 0, "modes", 0, "gpus"), 0, r"job 'j1', modes\[0\], gpus: must be a whole number >= "),
    (("jobs", 0, "modes", 0, "gpus"), True, r"modes\[0\], gpus: must be a whole number, got True"),
    (("jobs", 0, "modes", 0, "gpus"), 1.5, r"modes\[0\], gpus: must be a whole number, got 1.5"),
    (("jobs", 0, "modes", 0, "gpus"), 10**30, r"modes\[0\], gpus: must be a whole number <= 1e15"),
    (("jobs", 0, "modes", 0, "rate"), 0, r"modes\[0\], rate: must be a number > 0, got 0"),
    (("jobs", 0, "modes", 0, "rate"), "1", r"modes\[0\], rate: must be a number, got '1'"),
    (("jobs", 0, "running"), "cloud", "job 'j1', running: must be a JSON object or null, got"),
    (("jobs", 0, "running", "gpus"), 0, "job 'j1', running, gpus: must be a whole number >= 1"),
    (("jobs", 0, "last_site"), 3, "job 'j1', last_site: must be a text or null, got 3"),
    (("objective",), None, "document, objective: must be a JSON object, got None"),
    (("objective",), {"mode": "best"}, "objective, mode: must be one of 'lexicographic', 'weight"),
    (("objective",), {"mode": "weighted", "weights": {"met": -1}}, "objective, weights, met: must"),
    (("objective",), {"mode": "weighted", "weights": {"fun": 1}}, "'fun': is not a known key; kn"),
    (("extra",), 1, "document, 'extra': is not a known key; known are format, now, grid"),
    (("sites", 0, "units"), 1, "site 'cloud', 'units': is not a known key; known are name, kind"),
    (("jobs", 0, "deadlin"), 1, "job 'j1', 'deadlin': is not a known key; known are id, deadline"),
    (("jobs", 0, "modes", 2, "speed"), 1, r"job 'j1', modes\[2\], 'speed': is not a known key"),
    (("jobs", 0, "running", "x"), 1, "job 'j1', running, 'x': is not a known key; known are site"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), BAD_VALUES, ids=lambda v: str(v)[:40])
def test_bad_value_in_an_instance(path: Path_, value: Any, message: str) -> None:
    """A wrong value at any level gives one fault that names it."""
    with pytest.raises(InstanceError, match=message) as caught:
        problem_from_dict(_changed(instance_document(), path, value), "i.json")
    assert len(caught.value.faults) == 1
    assert str(caught.value).startswith("i.json: ")


REQUIRED: list[Path_] = [
    *[(key,) for key in ("now", "grid", "sites", "jobs")],
    *[("sites", 0, key) for key in ("name", "kind", "capacity")],
    *[("jobs", 0, key) for key in ("id", "deadline", "work", "modes")],
    *[("jobs", 0, "modes", 0, key) for key in ("site", "gpus", "rate")],
    *[("jobs", 0, "running", key) for key in ("site", "gpus")],
]


@pytest.mark.parametrize("path", REQUIRED, ids=str)
def test_missing_key_of_an_instance(path: Path_) -> None:
    """Every required key is asked for by name."""
    document = instance_document()
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    with pytest.raises(InstanceError, match=rf"{path[-1]}: is missing; add the key '{path[-1]}'"):
        problem_from_dict(document)


def test_every_required_key_of_a_schedule() -> None:
    """A schedule must have all its keys; only `leftover` and `weighted` may be absent."""
    for key in schedule_document():
        document = schedule_document()
        del document[key]
        with pytest.raises(ScheduleError, match=f"{key}: (is missing|must be 'edgeflow-schedule)"):
            schedule_from_dict(document)


BAD_SCHEDULES: list[tuple[Path_, Any, str]] = [
    (("format",), "edgeflow-epoch/1", "must be 'edgeflow-schedule/1', got 'edgeflow-epoch/1'"),
    (("solver",), None, "document, solver: must be a text, got None"),
    (("status",), "great", "status: must be one of 'optimal', 'feasible', 'infeasible', 'no_solu"),
    (("limit",), "money", "limit: must be one of 'time', 'iterations', 'memory', 'interrupted', g"),
    (("bound",), math.nan, "document, bound: must be a number >= -1e"),
    (("bound",), math.inf, "document, bound: must be a number <= 1e"),
    (("seconds",), -1, "document, seconds: must be a number >= 0, got -1"),
    (("seconds",), None, "document, seconds: must be a number, got None"),
    (("objective", "cost"), math.nan, "objective, cost: must be a number >= "),
    (("objective", "reconfigurations"), 0.5, "objective, reconfigurations: must be a whole number"),
    (("objective", "reconfigurations"), -1, "reconfigurations: must be a whole number >= 0, got -"),
    (("objective", "happiness"), 1, "objective, 'happiness': is not a known key"),
    (("allocations", 0, "start"), math.nan, r"allocations\[0\], start: must be a number >= -1e15"),
    (("allocations", 0, "end"), 1e308, r"allocations\[0\], end: must be a number <= 1e15, got 1"),
    (("allocations", 0, "gpus"), True, r"allocations\[0\], gpus: must be a whole number, got True"),
    (("allocations", 0, "gpus"), -2, r"allocations\[0\], gpus: must be a whole number >= 1, got -"),
    (("allocations", 0, "job"), None, r"allocations\[0\], job: must be a text, got None"),
    (("allocations",), None, "document, allocations: must be a list, got None"),
    (("outcomes", 0, "met"), "yes", r"outcomes\[0\], met: must be true or false or null, got 'ye"),
    (("outcomes", 0, "completion"), math.inf, r"outcomes\[0\], completion: must be a number <= 1e"),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD_SCHEDULES, ids=lambda v: str(v)[:40])
def test_bad_value_in_a_schedule(path: Path_, value: Any, message: str) -> None:
    """A wrong or absurd value gives one fault that names it."""
    with pytest.raises(ScheduleError, match=message) as caught:
        schedule_from_dict(_changed(schedule_document(), path, value))
    assert len(caught.value.faults) == 1


def test_faults_at_all_levels_come_together() -> None:
    """Wrong types, ranges, missing and unknown keys anywhere are in one error."""
    document = instance_document()
    document["now"] = "x"
    document["grid"][1], document["grid"][2] = None, "y"
    document["sites"][0]["extra"] = 1
    del document["jobs"][0]["work"]
    document["jobs"][0]["modes"][0]["gpus"] = True
    document["jobs"][0]["modes"][2]["rate"] = -1
    with pytest.raises(InstanceError, match="7 faults") as caught:
        problem_from_dict(document)
    assert [(fault.object, fault.field) for fault in caught.value.faults] == [
        ("document", "now"),
        ("document", "grid[1]"),
        ("document", "grid[2]"),
        ("site 'cloud'", "'extra'"),
        ("job 'j1'", "work"),
        ("job 'j1', modes[0]", "gpus"),
        ("job 'j1', modes[2]", "rate"),
    ]


def test_now_off_the_grid_comes_with_the_other_faults() -> None:
    """A `now` that is not the first boundary does not hide the faults of the jobs."""
    document = _changed(instance_document(), ("now",), 5)
    document["jobs"][0]["arrival"] = 900
    with pytest.raises(InstanceError, match="must equal the first boundary") as caught:
        problem_from_dict(document)
    assert "must not be after the deadline" in str(caught.value)


@pytest.mark.parametrize("document", [None, 1, "text", [], [instance_document()], True])
@pytest.mark.parametrize(
    ("reader", "error"),
    [(problem_from_dict, InstanceError), (schedule_from_dict, ScheduleError)],
)
def test_a_document_must_be_an_object(document: Any, reader: Any, error: type[InputError]) -> None:
    """Any other JSON value is refused at once."""
    with pytest.raises(error, match="document: must be a JSON object, got"):
        reader(document)


def test_text_is_one_document_of_short_lines() -> None:
    """The text is JSON with line breaks and ends with one."""
    text = dumps(problem_to_dict(rich_problem()))
    assert text.endswith("}\n")
    assert text.count("\n") > 50
    assert json.loads(text)["format"] == "edgeflow-epoch/1"


def _validator(name: str) -> Any:
    schema = json_schema(name)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    return validator(schema)


def test_schema_accepts_the_examples() -> None:
    """The published schemas are valid and accept the published documents and what is written."""
    problem = rich_problem()
    written = json.loads(dumps(problem_to_dict(problem)))
    told = json.loads(dumps(schedule_to_dict(rich_schedule(problem))))
    instance, schedule = _validator("edgeflow-epoch/1"), _validator("edgeflow-schedule/1")
    for validator, documents in (
        (instance, (instance_document(), written)),
        (schedule, (schedule_document(), told)),
    ):
        for document in documents:
            assert list(validator.iter_errors(document)) == []
            # It speaks of these documents: a key more is one too many.
            assert not validator.is_valid({**document, "unheard_of": 1})


STRUCTURAL = [
    case for case in BAD_VALUES
    if not any(word in case[2] for word in ("UTF-8", "first boundary", "nan"))
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), STRUCTURAL, ids=lambda v: str(v)[:40])
def test_schema_refuses_what_the_reader_refuses(path: Path_, value: Any, message: str) -> None:
    """Whatever is wrong in structure, type or range is refused by the schema too."""
    with pytest.raises(jsonschema.ValidationError, match=r".+"):
        _validator("edgeflow-epoch/1").validate(_changed(instance_document(), path, value))


@pytest.mark.parametrize("path", REQUIRED, ids=str)
def test_schema_requires_the_same_keys(path: Path_) -> None:
    """The schema asks for the same keys as the reader."""
    document = instance_document()
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    with pytest.raises(jsonschema.ValidationError, match=r"is a required property|not valid under"):
        _validator("edgeflow-epoch/1").validate(document)


@settings(max_examples=examples(25))
@given(problems())
def test_schema_accepts_every_instance(problem: EpochProblem) -> None:
    """What the package writes, its schema accepts, and no other format."""
    document = json.loads(dumps(problem_to_dict(problem)))
    validator = _validator("edgeflow-epoch/1")
    assert list(validator.iter_errors(document)) == []
    assert not validator.is_valid({**document, "format": "edgeflow-epoch/2"})


def test_unknown_schema() -> None:
    """A format that does not exist is a usage error that names those that do."""
    with pytest.raises(UsageError, match=r"'edgeflow-epoch/9' is not known; known are"):
        json_schema("edgeflow-epoch/9")


def test_faults_of_types_and_of_meaning_come_together() -> None:
    """What has the right types is looked at even where something else has not."""
    document = instance_document()
    job = document["jobs"][0]
    document["unknown"] = 1
    document["sites"][0]["capacity"] = [[5, 64]]
    document["jobs"] = [
        {**job, "id": "typed", "work": -1},
        {**job, "id": "lost", "running": None, "modes": [{"site": "moon", "gpus": 1, "rate": 1.0}]},
        job,
        job,
        7,
    ]
    with pytest.raises(InstanceError, match="unknown") as caught:
        problem_from_dict(document)
    told = [(fault.object, fault.field) for fault in caught.value.faults]
    assert told == [
        ("document", "'unknown'"),
        ("job 'typed'", "work"),
        ("document", "jobs[4]"),
        ("site 'cloud'", "capacity[0][0]"),
        ("job 'lost'", "modes[0].site"),
        ("job 'j1'", "id"),
    ]
