"""Outages: their draws, and the capacity that they leave."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflow_opt.errors import UsageError
from edgeflow_opt.problem import Site
from edgeflow_opt.workloads import Outage, cluster, draw_outages, with_outages


def outage(start, end, first=0, units=1, site="cloud"):
    """Return an outage."""
    return Outage(start=float(start), end=float(end), site=site, first_unit=first, units=units)


def cloud(*steps):
    """Return a cloud of capacity `steps`."""
    return Site(name="cloud", kind="cloud", capacity=tuple(steps))


def test_an_outage_takes_its_units_for_its_time():
    """Of 16 GPUs 8 are gone from 10 to 20 s."""
    (site,) = with_outages([cloud((0.0, 16))], [outage(10, 20, 8, 8)])
    assert site.capacity == ((0.0, 16), (10.0, 8), (20.0, 16))


def test_overlapping_outages_count_a_unit_once():
    """Units 0-7 and 4-11 away together are 12 units, not 16."""
    (site,) = with_outages([cloud((0.0, 16))], [outage(10, 30, 0, 8), outage(20, 40, 4, 8)])
    assert site.capacity == ((0.0, 16), (10.0, 8), (20.0, 4), (30.0, 8), (40.0, 16))


def test_units_that_are_not_usable_anyway_cannot_be_lost():
    """Units 8-15 away while the tide leaves 8: nothing changes; when it rises they are missing."""
    (site,) = with_outages([cloud((0.0, 8), (15.0, 16))], [outage(10, 20, 8, 8)])
    assert site.capacity == ((0.0, 8), (20.0, 16))


def test_an_outage_before_the_first_step_counts_from_there():
    """What begins before the capacity is known is in force at its first step."""
    (site,) = with_outages([cloud((5.0, 4))], [outage(0, 9, 0, 1)])
    assert site.capacity == ((5.0, 3), (9.0, 4))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 7), st.integers(1, 9))),
    st.lists(st.integers(0, 8), min_size=1, max_size=4),
)
def test_what_is_left_is_what_no_outage_holds(drawn, levels):
    """At every moment the capacity is the number of usable units that are not away."""
    outages = [outage(a, a + length, first, units) for a, length, first, units in drawn]
    base = cloud(*((5.0 * index, level) for index, level in enumerate(levels)))
    (site,) = with_outages([base], outages)
    for moment in range(22):
        away = {
            unit
            for o in outages
            if o.start <= moment < o.end
            for unit in range(o.first_unit, o.first_unit + o.units)
        }
        usable = set(range(base.capacity_at(moment)))
        assert site.capacity_at(moment) == len(usable - away)


def test_draws_are_of_whole_nodes_and_seeded():
    """Every cloud outage is a node of 8 (the last one of 4), the same for the same seed."""
    sites = cluster(20, 3)
    drawn = draw_outages(sites, "cloud", 500.0, 50.0, start_s=0.0, end_s=1e5, seed=4)
    assert {(o.first_unit, o.units) for o in drawn} == {(0, 8), (8, 8), (16, 4)}
    assert drawn == draw_outages(sites, "cloud", 500.0, 50.0, start_s=0.0, end_s=1e5, seed=4)
    assert drawn != draw_outages(sites, "cloud", 500.0, 50.0, start_s=0.0, end_s=1e5, seed=5)
    assert {o.site for o in drawn} == {"cloud"}
    assert list(drawn) == sorted(drawn)
    # 3 nodes, 1e5 s, one in 550 s each.
    assert len(drawn) == pytest.approx(3 * 1e5 / 550, rel=0.15)


def test_a_larger_cluster_has_the_outages_of_the_smaller():
    """Nodes are drawn one by one: more nodes change nothing for the others."""
    few, many = (
        draw_outages(cluster(8, n), "edge", 300.0, 50.0, start_s=0.0, end_s=1e4, seed=1)
        for n in (2, 5)
    )
    assert set(few) < set(many)


def test_outages_of_a_node_do_not_overlap():
    """A node fails again only after its repair."""
    drawn = draw_outages(cluster(8, 0), "cloud", 10.0, 30.0, start_s=5.0, end_s=4000.0, seed=0)
    assert drawn[0].start >= 5.0
    assert all(a.end <= b.start for a, b in itertools.pairwise(drawn))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (outage(1, 2, site="x"), "no site is called 'x'"),
        (outage(2, 2), "must have a finite start before a finite end"),
        (outage(1, 2, units=0), "must take at least 1 unit"),
    ],
)
def test_outages_that_make_no_sense_are_refused(bad, message):
    """Site, times and units are named."""
    with pytest.raises(UsageError, match=message):
        with_outages([cloud((0.0, 1))], [bad])


def test_draws_that_make_no_sense_are_refused():
    """Means must be above 0, and not lead to millions of outages."""
    with pytest.raises(UsageError, match="mean_down_s must be a finite number above 0, got 0"):
        draw_outages(cluster(8), "cloud", 1.0, 0.0, start_s=0.0, end_s=9.0, seed=0)
    with pytest.raises(UsageError, match="are too many"):
        draw_outages(cluster(800), "cloud", 1e-3, 1e-3, start_s=0.0, end_s=1e6, seed=0)
