"""Tides: edge capacity over time."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflow_opt.errors import TraceError, UsageError
from edgeflow_opt.problem import Site
from edgeflow_opt.workloads import (
    cluster,
    constant_tide,
    daily_tide,
    read_tide,
    repeat_tide,
    shift_tide,
)
from edgeflow_opt.workloads.tides import daily_load


def test_daily_load_has_the_two_published_figures() -> None:
    """Midnight load is 1/50 of the peak, and the load is below 50 % for about half of the day."""
    loads = [daily_load(minute * 60.0) for minute in range(1440)]
    assert max(loads) == pytest.approx(1.0)
    assert loads[0] == min(loads) == pytest.approx(1 / 50)
    assert 0.45 < sum(load < 0.5 for load in loads) / 1440 < 0.55


@given(
    units=st.integers(0, 60),
    start=st.floats(-1e6, 1e6),
    hours=st.floats(0, 60),
    midnight=st.floats(0, 86400),
    step=st.sampled_from([300.0, 900.0, 3600.0, 40000.0]),
)
def test_daily_tide_never_promises_a_busy_server(
    units: int, start: float, hours: float, midnight: float, step: float
) -> None:
    """At any time the steps are at most units (1 - load), and they rise in time from the start."""
    end = start + hours * 3600.0
    steps = daily_tide(units, start, end, midnight_s=midnight, step_s=step)
    site = Site(name="edge", kind="edge", capacity=steps)
    assert steps[0][0] == start
    assert all(a[0] < b[0] and a[1] != b[1] for a, b in itertools.pairwise(steps))
    for k in range(50):
        time = start + (end - start) * k / 50
        assert 0 <= site.capacity_at(time) <= units * (1 - daily_load(time, midnight)) + 1e-6


def test_daily_tide_is_full_at_midnight_and_empty_at_noon() -> None:
    """Of 100 servers nearly 98 are idle at midnight, none at noon."""
    site = Site(name="edge", kind="edge", capacity=daily_tide(100, 0.0, 86400.0))
    assert 96 <= site.capacity_at(0.0) <= 98
    assert site.capacity_at(43200.0) == 0


def test_tide_of_units_is_read(tmp_path: Path) -> None:
    """A file of units gives its steps, joined where nothing changes, capped by the servers."""
    path = tmp_path / "t.csv"
    path.write_text("units,time_s\n4,0\n4,60\n1,120\n")
    assert read_tide(path) == ((0.0, 4), (120.0, 1))
    assert read_tide(path, 3) == ((0.0, 3), (120.0, 1))


def test_tide_of_loads_is_read(tmp_path: Path) -> None:
    """A compressed file of loads gives what the load leaves idle."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"time_s,load\n0,0.9\n60,0.25\n120,1\n"))
    assert read_tide(path, 10) == ((0.0, 1), (60.0, 7), (120.0, 0))
    with pytest.raises(UsageError, match="say how many edge servers"):
        read_tide(path)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("time_s,load\n0,0.5\n0,0.6\n", "row 3, time_s: must be above 0, the time of row 2, got 0"),
        ("time_s,load\n0,50\n", "must be from 0 to 1, got 50.0; give fractions"),
        ("time_s,units\n0,1.5\n", "must be a whole number"),
        ("time_s,units\n0,-1\n", "must be at least 0"),
        ("time_s,units\nnan,1\n", "must be a finite number"),
        ("time_s,units\n", "has a header but no rows"),
        ("time_s,units,load\n0,1,1\n", "exactly one of units and load"),
        ("a,b\n0,1\n", "must have time_s"),
        ("", "is empty"),
    ],
)
def test_bad_tides_are_refused(tmp_path: Path, content: str, rule: str) -> None:
    """Every fault of a tide file is named."""
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(TraceError, match=rule):
        read_tide(path, 10)


def test_tides_shift_and_repeat() -> None:
    """A day is moved and repeated; what holds at the start comes first."""
    day = ((0.0, 2), (10.0, 5))
    assert shift_tide(day, 3.0) == ((3.0, 2), (13.0, 5))
    assert repeat_tide(day, 20.0, 35.0, 65.0) == ((35.0, 5), (40.0, 2), (50.0, 5), (60.0, 2))
    with pytest.raises(UsageError, match="period above 0"):
        repeat_tide(day, 0.0, 0.0, 1.0)


def test_cluster_has_the_two_sites_of_the_paper() -> None:
    """A100 nodes of 8 and single V100; a site without units stays with capacity 0."""
    cloud, edge = cluster(32, 0)
    assert (cloud.kind, cloud.gpu_type, cloud.gpus_per_node) == ("cloud", "a100", 8)
    assert cloud.capacity == ((0.0, 32),)
    assert (edge.kind, edge.gpu_type, edge.capacity) == ("edge", "v100", ((0.0, 0),))


def test_cluster_takes_every_kind_of_tide(tmp_path: Path) -> None:
    """constant, daily, a file and steps all become capacity."""
    path = tmp_path / "t.csv"
    path.write_text("time_s,load\n0,0.5\n")
    assert cluster(8, 4, tide=str(path))[1].capacity == ((0.0, 2),)
    assert cluster(8, 4, tide=path)[1].capacity == ((0.0, 2),)
    assert cluster(8, 4, tide=[(0.0, 3)])[1].capacity == ((0.0, 3),)
    assert cluster(8, 4, start_s=5.0)[1].capacity == constant_tide(4, 5.0)
    daily = cluster(8, 4, tide="daily", start_s=0.0, end_s=1e5)[1].capacity
    assert daily == daily_tide(4, 0.0, 1e5)


def test_senseless_clusters_are_refused(tmp_path: Path) -> None:
    """Negative counts, an endless day, and a tide that begins too late are usage errors."""
    with pytest.raises(UsageError, match="number of cloud GPUs"):
        cluster(-1)
    with pytest.raises(UsageError, match="number of edge servers"):
        cluster(1, -1)
    with pytest.raises(UsageError, match="needs end_s"):
        cluster(1, 1, tide="daily")
    with pytest.raises(UsageError, match="after the start at 0 s; shift it"):
        cluster(1, 1, tide=[(10.0, 1)])
    with pytest.raises(UsageError, match="at least one step"):
        cluster(1, 1, tide=[])
    with pytest.raises(TraceError, match="does not exist"):
        cluster(1, 1, tide=tmp_path / "none.csv")
