"""The checker of what a simulation carried out: the same rules, in continuous time."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.problem import Allocation, Job, Mode, Outcome, Site, check_history, rules
from edgeflow_opt.problem.rules import capacity_violations, fits
from edgeflow_opt.problem.runs import RunKind
from tests.effort import examples
from tests.problem.examples import alloc

SITES = (
    Site(name="cloud", kind="cloud", capacity=((0.0, 2), (50.0, 1))),
    Site(name="edge", kind="edge", capacity=((0.0, 1),), memory_gib=16.0),
)
MODES = (
    Mode(site="cloud", gpus=1, rate=1.0),
    Mode(site="cloud", gpus=2, rate=2.0),
    Mode(site="edge", gpus=1, rate=0.5),
)
JOBS = (
    Job(
        id="a", deadline=100.0, work=60.0, modes=MODES, arrival=0.0, restart_s=5.0,
        migration_s=10.0,
    ),
    Job(id="b", deadline=80.0, work=20.0, modes=MODES, arrival=12.5, weight=3.0),
    Job(id="c", deadline=None, work=500.0, modes=MODES, arrival=0.0, memory_gib=20.0),
)  # fmt: skip
HISTORY = (
    # 25 by 12.5 s; then 5 s of loss and 35 at 1 a second until 52.5 s.
    alloc("a", 0.0, 12.5, "cloud", 2),
    alloc("a", 12.5, 60.0, "cloud", 1),
    alloc("b", 12.5, 52.5, "edge", 1),
)
OUTCOMES = (
    Outcome(job="a", met=True, completion=52.5),
    Outcome(job="b", met=True, completion=52.5),
    Outcome(job="c", met=None, completion=None),
)


def test_a_true_history_passes() -> None:
    """Allocations off any grid are fine, and weights are counted."""
    report = check_history(JOBS, SITES, HISTORY, OUTCOMES)
    assert report.valid, report.violations
    assert (report.met, report.met_weight) == (2, 4.0)


CASES: list[tuple[tuple[Allocation, ...], str, float | None]] = [
    ((alloc("a", 60.0, 61.0, "cloud", 2),), "capacity", 1.0),
    ((alloc("a", 59.5, 61.0, "edge", 1),), "overlap", 0.5),
    ((alloc("b", 12.0, 12.5, "cloud", 1),), "before_arrival", 0.5),
    ((alloc("c", 70.0, 71.0, "edge", 1),), "memory", 4.0),
    ((alloc("c", 70.0, 71.0, "cloud", 3),), "unknown_mode", 3.0),
    ((alloc("x", 70.0, 71.0, "cloud", 1),), "unknown_job", None),
    ((alloc("c", 70.0, 71.0, "x", 1),), "unknown_site", None),
    ((alloc("c", 70.0, 70.0, "cloud", 1),), "bad_interval", None),
]


@pytest.mark.parametrize(("extra", "kind", "amount"), CASES, ids=[case[1] for case in CASES])
def test_broken_rules_are_told(
    extra: tuple[Allocation, ...], kind: str, amount: float | None
) -> None:
    """Every rule but those of the grid holds for histories too."""
    report = check_history(JOBS, SITES, HISTORY + extra, OUTCOMES)
    found = [v for v in report.violations if v.kind == kind]
    assert [v.amount for v in found] == [amount]


@pytest.mark.parametrize(
    ("index", "change", "kind"),
    [
        (0, {"met": False}, "met"),
        (0, {"completion": 50.0}, "completion"),
        (0, {"completion": float("nan")}, "completion"),
        (1, {"completion": None}, "completion"),
        (2, {"met": True}, "met"),
        (2, {"job": "d"}, "outcomes"),
    ],
)
def test_false_claims_are_told(index: int, change: dict[str, Any], kind: str) -> None:
    """Outcomes are recomputed from the allocations."""
    outcomes = list(OUTCOMES)
    outcomes[index] = dataclasses.replace(outcomes[index], **change)
    assert check_history(JOBS, SITES, HISTORY, outcomes).kinds() == {kind}


def test_missing_outcomes_are_told() -> None:
    """Fewer outcomes than jobs are a violation, not an error."""
    assert check_history(JOBS, SITES, HISTORY, OUTCOMES[:1]).kinds() == {"outcomes"}


def test_another_rule_of_losses() -> None:
    """Losses follow the rule that is given instead of the fields of the job."""

    def rule(job: Job, kind: RunKind, gpus: int) -> float:
        return 7.0 * gpus if kind is RunKind.RESTARTED else 0.0

    later = (dataclasses.replace(OUTCOMES[0], completion=54.5), *OUTCOMES[1:])
    assert check_history(JOBS, SITES, HISTORY, later, rule).valid
    assert not check_history(JOBS, SITES, HISTORY, OUTCOMES, rule).valid


TIMES = st.integers(-2, 8).map(float)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(["cloud", "edge"]),
    st.lists(st.tuples(TIMES, st.integers(0, 4)), min_size=1, max_size=4, unique_by=lambda s: s[0]),
    st.lists(st.tuples(TIMES, TIMES, st.integers(1, 2)), max_size=6),
)
def test_capacity_by_array_is_the_same_rule(kind: str, steps: Any, spans: Any) -> None:
    """What fits by array has no violation by the wordy rule, and the other way round."""
    site = Site(name="s", kind=kind, capacity=tuple(sorted(steps)))  # type: ignore[arg-type]
    held = [alloc("a", start, end, "s", gpus) for start, end, gpus in spans if start < end]
    assert fits(site, held) is not any(capacity_violations([site], held))


def test_a_long_history_is_checked_by_the_same_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many allocations capacities are compared by array first; an excess is still told."""
    held = [alloc("a", float(t), t + 1.0, "cloud", 1) for t in range(49)]
    monkeypatch.setattr(rules, "_MANY_ALLOCATIONS", 10)
    assert not any(capacity_violations(SITES, held))
    (excess,) = capacity_violations(SITES, [*held, alloc("b", 20.0, 30.0, "cloud", 2)])
    assert (excess.time, excess.amount) == (20.0, 1.0)
