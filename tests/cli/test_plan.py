"""The plan for people: runs in words, and the chart of the sites."""

from __future__ import annotations

from itertools import pairwise

import pytest
from rich.console import Console

from edgeflow_opt.cli.plan import chart_columns, packed, plan_tables, site_use
from edgeflow_opt.problem import (
    Allocation,
    EpochProblem,
    Grid,
    Job,
    Mode,
    Schedule,
    Site,
    SolveStatus,
    evaluate,
)

MODES = (
    Mode(site="cloud", gpus=2, rate=1.0),
    Mode(site="cloud", gpus=4, rate=2.0),
    Mode(site="edge", gpus=1, rate=1.0),
    Mode(site="edge", gpus=2, rate=1.5),
)


def _job(name: str, deadline: float | None, work: float) -> Job:
    return Job(id=name, deadline=deadline, work=work, modes=MODES)


PROBLEM = EpochProblem(
    grid=Grid((0.0, 300.0, 600.0, 900.0)),
    sites=(
        Site(name="cloud", kind="cloud", capacity=((0.0, 4),)),
        Site(name="edge", kind="edge", capacity=((0.0, 2), (300.0, 0))),
    ),
    jobs=(
        _job("in time", 850.5, 1500.0),
        _job("behind", 100.0, 300.0),
        _job("never", 600.0, 5000.0),
        _job("whenever", None, 10.0),
    ),
)


def _allocation(job: str, start: float, end: float, site: str, gpus: int) -> Allocation:
    return Allocation(job=job, start=start, end=end, site=site, gpus=gpus)


def _schedule() -> Schedule:
    allocations = (
        _allocation("in time", 0, 300, "cloud", 4),
        _allocation("in time", 300, 600, "cloud", 4),
        _allocation("in time", 600, 900, "cloud", 2),
        _allocation("behind", 0, 300, "edge", 1),
        _allocation("never", 0, 300, "edge", 2),
    )
    value, outcomes = evaluate(PROBLEM, allocations)
    return Schedule(
        solver="x", status=SolveStatus.FEASIBLE, objective=value, allocations=allocations,
        outcomes=outcomes,
    )  # fmt: skip


def _lines(width: int, encoding: str = "utf-8") -> list[str]:
    console = Console(width=width, markup=False, highlight=False)
    with console.capture() as shown:
        for made in plan_tables(PROBLEM, _schedule(), width, encoding):
            console.print(made)
    return shown.get().splitlines()


def _line(lines: list[str], first: str) -> str:
    return next(line for line in lines if line.startswith(first))


def test_jobs_in_words() -> None:
    """Deadline, completion, outcome and runs of every job are told; abutting ones are one run."""
    lines = _lines(100)
    told = [
        ["in time", "850.5", "900", "late", "cloud x4 0-600, cloud x2 600-900"],
        ["behind", "100", "300", "late", "edge 0-300"],
        ["never", "600", "-", "unfinished", "edge x2 0-300"],
        ["whenever", "-", "-", "best effort", "-"],
    ]
    for row in told:
        line = _line(lines, row[0])
        for cell in row:
            assert cell in line
    assert _line(lines, "whenever").split() == ["whenever", "-", "-", "best", "effort", "-"]


def test_chart_of_the_sites() -> None:
    """Full, half and unused units and such as nobody may use have characters of their own."""
    lines = _lines(100)
    assert _line(lines, "cloud").split() == ["cloud", "█" * 8 + "▄" * 4, "83.3", "%", "4/4"]
    assert _line(lines, "edge").split() == ["edge", "█" * 4 + "·" * 8, "100", "%", "2/2"]
    plain = _lines(100, "ascii")
    assert _line(plain, "cloud").split()[1] == "#" * 8 + "=" * 4
    assert _line(plain, "edge").split()[1] == "#" * 4 + "x" * 8


def test_nothing_is_wider_than_the_terminal() -> None:
    """In a narrow terminal every line fits, and runs are not broken."""
    lines = _lines(64)
    assert max(map(len, lines)) <= 64
    text = "\n".join(lines)
    for run in ("cloud x4 0-600,", "cloud x2 600-900"):
        assert run in text


def test_use_by_slot() -> None:
    """A mode takes its GPUs in the cloud and one server on the edge, in the slots that it holds."""
    used, usable = site_use(PROBLEM, _schedule())
    assert used == [[4, 4, 2], [2, 0, 0]]
    assert usable == [[4, 4, 4], [2, 0, 0]]


@pytest.mark.parametrize(
    ("boundaries", "room"),
    [((0, 1, 2, 3), 20), ((0, 1, 5, 30), 17), (tuple(range(101)), 30), ((0, 7), 1)],
)
def test_characters_share_the_time(boundaries: tuple[float, ...], room: int) -> None:
    """All of every slot is in the chart, once; every character stands for as much time."""
    columns = chart_columns(boundaries, room)
    assert 0 < len(columns) <= room
    for slot, (left, right) in enumerate(pairwise(boundaries)):
        assert sum(share.get(slot, 0.0) for share in columns) == pytest.approx(right - left)
    span = (boundaries[-1] - boundaries[0]) / len(columns)
    assert [sum(share.values()) for share in columns] == pytest.approx([span] * len(columns))


def test_packed() -> None:
    """Lines break between parts only, each as full as fits."""
    assert packed(["aa", "bb", "cc"], 6 + 1) == "aa, bb,\ncc"
    assert packed(["a" * 9, "b"], 3) == "a" * 9 + ",\nb"
    assert packed([], 10) == "-"
