"""Names of rows and columns: readable, different, and read back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import UsageError
from edgeflow_opt.formulations.labels import Labels
from edgeflow_opt.formulations.named import FORMULATIONS, named_model
from edgeflow_opt.formulations.names import Names, holds_anything
from edgeflow_opt.problem import EpochProblem, problem_from_dict
from edgeflow_opt.problem.arrays import arrays_of
from tests.cli.helpers import INSTANCE
from tests.effort import examples
from tests.strategies import problems

#: What CPLEX LP, free MPS and PuLP all take.
ALLOWED = re.compile(r"[A-Za-z][A-Za-z0-9_.~(),]{0,254}")


@given(texts=st.lists(st.text(), unique=True, max_size=12))
@settings(max_examples=examples(60))
def test_labels_are_different_and_read_back(texts: list[str]) -> None:
    """Whatever the texts, each has a label of its own, of plain characters, that leads back."""
    labels = Labels(texts)
    assert [labels.number(label) for label in labels.labels] == list(range(len(texts)))
    assert all(re.fullmatch(r"[A-Za-z0-9_.~]{1,60}", label) for label in labels.labels)


def test_labels_of_plain_ids_are_the_ids() -> None:
    """Ids of letters and digits are kept; blanks, umlauts and long ids are escaped or cut."""
    labels = Labels(["job_1.a", "train 7", "ü", "a" * 80, "a" * 79])
    assert labels.labels == ("job_1.a", "train~207", "~C3~BC", "a" * 48 + "~~3", "a" * 48 + "~~4")


@pytest.mark.parametrize("level", [1, 5])
@settings(max_examples=examples(15))
@given(problem=problems(max_jobs=3, max_slots=3))
def test_names_survive_files_and_lead_back(problem: EpochProblem, level: int) -> None:
    """All names of a model differ, survive LP and MPS, and its columns are read back as they are."""
    keep = dict.fromkeys(("met", "progress", "leftover", "cost", "reconfigurations"), 0.0)
    model = named_model(problem, "malleable", level, keep)
    assert len(set(model.columns)) == model.sparse.num_columns
    assert len(set(model.rows)) == model.sparse.num_rows
    assert all(ALLOWED.fullmatch(name) for name in (*model.columns, *model.rows))
    names = Names(problem, arrays_of(problem))
    running = model.source.running  # type: ignore[union-attr]
    held = {
        column: (mode, slot)
        for column, mode, slot in zip(running.column, running.mode, running.slot, strict=True)
    }
    for column, name in enumerate(model.columns):
        meaning = names.read(name)
        assert meaning is not None
        assert holds_anything(meaning) is (column in held)
        if column in held:
            assert (meaning.mode, meaning.slot) == held[column]


def test_no_row_of_the_formulations_is_merely_numbered() -> None:
    """Every row of a model with losses on all levels has a name in the terms of the problem."""
    problem = problem_from_dict(INSTANCE)
    keep = {"met": 1.0, "progress": 0.0, "leftover": 0.0, "cost": 1e6}
    model = named_model(problem, "malleable", 5, keep)
    assert [name for name in model.rows if re.fullmatch(r"[a-z_]+\(\d+\)", name)] == []
    assert "keep(met)" in model.rows


def test_the_objective_is_named_with_its_sign() -> None:
    """All levels are maximised: what is to be small is named, and kept, by its negative."""
    problem = problem_from_dict(INSTANCE)
    keep = {"met": 1.0, "progress": 0.0, "leftover": 0.0, "cost": 1e6}
    models = [named_model(problem, "malleable", level, keep) for level in range(1, 6)]
    names = ["met", "progress", "leftover", "-cost", "-reconfigurations"]
    assert [model.objective_name for model in models] == names
    assert [(model.sparse.objective < 0).any() for model in models] == [
        name.startswith("-") for name in names
    ]
    sides = dict(zip(models[4].rows, models[4].sparse.row_lower, strict=True))
    assert sides["keep(cost)"] == pytest.approx(-1e6)
    assert sides["keep(met)"] == pytest.approx(1.0)


def test_names_of_other_instances_are_not_read() -> None:
    """A name with an unknown job, site, mode, slot or word says nothing."""
    problem = problem_from_dict(INSTANCE)
    names = Names(problem, arrays_of(problem))
    assert names.read("x(j1,cloud,2,0)") is not None
    for name in (
        "x(j9,cloud,2,0)", "x(j1,fog,2,0)", "x(j1,cloud,7,0)", "x(j1,cloud,2,3)", "q(j1)",
        "x(j1,cloud,2)", "c12", "x(j1,cloud,-2,0)",
    ):  # fmt: skip
        assert names.read(name) is None, name


@pytest.mark.parametrize("formulation", FORMULATIONS)
@settings(max_examples=examples(10))
@given(problem=problems(max_jobs=2, max_slots=2))
def test_models_have_no_empty_rows_and_some_column(formulation: str, problem: EpochProblem) -> None:
    """Whatever the instance, no row is empty and there is a column: LP files can say it."""
    model = named_model(problem, formulation).sparse
    assert model.num_columns > 0
    assert (model.starts[1:] > model.starts[:-1]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"formulation": "fluid"}, "formulation 'fluid' is not known; known are malleable"),
        ({"level": 6}, "level: must be a whole number from 1 to 5"),
        ({"level": 3, "keep": {"met": 1.0}}, "missing: progress"),
        ({"level": 2, "keep": {"mett": 1.0}}, "level 'mett' is not known"),
        ({"level": 2, "keep": {"met": float("nan")}}, "'met' must be a finite number"),
        ({"formulation": "plan", "level": 2, "keep": {"met": 1.0}}, "plan has level 1 only"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments: dict[str, object], message: str) -> None:
    """An unknown formulation or level, or a missing value to keep, is a clear usage error."""
    with pytest.raises(UsageError, match=re.escape(message)):
        named_model(problem_from_dict(INSTANCE), **arguments)  # type: ignore[arg-type]
