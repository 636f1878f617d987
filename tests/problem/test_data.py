"""The data classes: frozen, slotted, comparable, picklable, and their small computations."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from edgeflow_opt.problem import (
    Allocation,
    Grid,
    Job,
    Mode,
    Objective,
    ObjectiveValue,
    Outcome,
    Running,
    Site,
    Violation,
    Weights,
    check,
)
from tests.problem.examples import example_schedule, rich_problem, rich_schedule

OBJECTS: list[Any] = [
    Mode(site="s", gpus=1, rate=1.0),
    Running(site="s", gpus=1),
    Job(id="j", deadline=1.0, work=1.0, modes=()),
    Site(name="s", kind="edge", capacity=((0.0, 1),)),
    Grid((0.0, 1.0)),
    Weights(),
    Objective(),
    ObjectiveValue(met_weight=1.0),
    Allocation(job="j", start=0.0, end=1.0, site="s", gpus=1),
    Outcome(job="j", met=None, completion=None),
    example_schedule(),
    Violation(kind="met", message="m"),
    check(rich_problem(), rich_schedule(rich_problem())),
    rich_problem(),
]
IDS = [type(item).__name__ for item in OBJECTS]


@pytest.mark.parametrize("item", OBJECTS, ids=IDS)
def test_frozen(item: Any) -> None:
    """No field of a public object can be set."""
    name = dataclasses.fields(item)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError, match=name):
        setattr(item, name, None)


@pytest.mark.parametrize("item", OBJECTS[:-1], ids=IDS[:-1])
def test_slotted(item: Any) -> None:
    """All but the problem, which caches its indices, have slots and no dictionary."""
    assert not hasattr(item, "__dict__")


@pytest.mark.parametrize("item", OBJECTS, ids=IDS)
def test_pickles_to_an_equal_object(item: Any) -> None:
    """A public object survives pickling, and equal objects hash alike."""
    copy = pickle.loads(pickle.dumps(item))
    assert copy == item
    assert copy is not item
    assert hash(copy) == hash(item)


@pytest.mark.parametrize("item", OBJECTS, ids=IDS)
def test_differs_from_another(item: Any) -> None:
    """An object is unequal to an object of another kind."""
    assert item != Running(site="elsewhere", gpus=9)


@pytest.mark.parametrize(
    ("time", "units"), [(-1.0, 5), (0.0, 5), (9.9, 5), (10.0, 2), (19.9, 2), (20.0, 7), (1e9, 7)]
)
def test_capacity_at_a_step_is_that_after_it(time: float, units: int) -> None:
    """A step holds from its time on, the first also before it, the last for ever."""
    site = Site(name="s", kind="cloud", capacity=((0.0, 5), (10.0, 2), (20.0, 7)))
    assert site.capacity_at(time) == units


@pytest.mark.parametrize(
    ("start", "end", "units"),
    [(0, 10, 5), (0, 10.1, 2), (10, 20, 2), (15, 30, 2), (20, 30, 7), (0, 30, 2), (30, 40, 7)],
)
def test_least_capacity_is_of_a_half_open_interval(start: float, end: float, units: int) -> None:
    """A step at the end of the interval does not bind it, one inside it does."""
    site = Site(name="s", kind="cloud", capacity=((0.0, 5), (10.0, 2), (20.0, 7)))
    assert site.least_capacity(start, end) == units


def test_units_of_a_mode() -> None:
    """A mode takes its GPUs on a cloud site and one server on an edge site."""
    mode = Mode(site="s", gpus=3, rate=1.0)
    assert Site(name="s", kind="cloud", capacity=((0.0, 5),)).units(mode) == 3
    assert Site(name="s", kind="edge", capacity=((0.0, 5),)).units(mode) == 1
