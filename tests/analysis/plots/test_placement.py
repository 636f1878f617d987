"""Where blocks of a Gantt chart stand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeflow_opt.analysis.plots.placement import Block, place

Capacity = list[tuple[float, int]]
Runs = list[tuple[str, float, float, int]]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Runs, Capacity]:
    """Draw a tide of six slots and runs that it has room for."""
    tide = draw(st.lists(st.integers(0, 6), min_size=6, max_size=6))
    left = list(tide)
    runs: Runs = []
    for number in range(draw(st.integers(0, 10))):
        start = draw(st.integers(0, 5))
        end = draw(st.integers(start + 1, 6))
        units = draw(st.integers(1, 4))
        if min(left[start:end]) >= units:
            runs.append((f"j{number}", float(start), float(end), units))
            for slot in range(start, end):
                left[slot] -= units
    return runs, [(float(slot), units) for slot, units in enumerate(tide)]


@given(histories())
def test_blocks_are_the_runs(history: tuple[Runs, Capacity]) -> None:
    """At any time each job has its units, no row has two jobs, and none is above the capacity."""
    runs, capacity = history
    blocks = place(runs, capacity)
    for slot, (time, units) in enumerate(capacity):
        now = time + 0.5
        rows = [
            (row, block.job)
            for block in blocks
            if block.start <= now < block.end
            for row in range(block.low, block.high)
        ]
        assert len({row for row, _ in rows}) == len(rows)
        assert all(row < units for row, _ in rows)
        for job, start, end, size in runs:
            held = sum(name == job for _, name in rows)
            assert held == (size if start <= slot < end else 0)


def test_runs_below_a_coming_fall_do_not_move() -> None:
    """A run that outlasts a fall of capacity is put below it from the start."""
    blocks = place([("a", 0, 1, 2), ("b", 0, 2, 2)], [(0, 4), (1, 2)])
    assert Block("b", 0, 2, 0, 2) in blocks
    assert Block("a", 0, 1, 2, 4) in blocks


def test_a_job_comes_back_to_its_rows() -> None:
    """After a pause a job takes the rows that it had, if they are free."""
    blocks = place([("a", 0, 1, 1), ("b", 0, 3, 1), ("a", 2, 3, 1)], [(0, 3)])
    assert len({(b.low, b.high) for b in blocks if b.job == "a"}) == 1


def test_too_much_is_seen() -> None:
    """Runs beyond the capacity are drawn above it, not left out."""
    blocks = place([("a", 0, 2, 2), ("b", 0, 2, 2)], [(0, 2)])
    assert {b.job for b in blocks} == {"a", "b"}
    assert max(b.high for b in blocks) == 4


def test_what_abuts_is_one_block() -> None:
    """Allocations of a job that abut with equal units are drawn as one; with others they are not."""
    runs = [("a", 0.0, 1.0, 2), ("b", 0.0, 2.0, 1), ("a", 1.0, 2.0, 2), ("a", 2.0, 3.0, 1)]
    blocks = [block for block in place(runs, [(0.0, 3)]) if block.job == "a"]
    assert [(b.start, b.end, b.high - b.low) for b in blocks] == [(0.0, 2.0, 2), (2.0, 3.0, 1)]


def test_a_run_above_a_fall_moves_down() -> None:
    """Where all rows below a coming fall are taken, a run begins above it and goes down with it."""
    blocks = place([("a", 0, 10, 1), ("b", 5, 20, 1)], [(0, 3), (15, 1)])
    assert [(b.start, b.end, b.low) for b in blocks if b.job == "b"] == [(5, 15, 1), (15, 20, 0)]
