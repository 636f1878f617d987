"""Placement on the GPU tree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflow_opt.errors import UsageError
from edgeflow_opt.simulation.placement import GpuTree, Topology, place
from tests.effort import examples

POWERS = st.sampled_from([1, 1, 1, 2, 2, 4, 8, 16, 32])


def fitting(counts: list[int], most: int) -> list[int]:
    """Return the counts from the first on that fit together."""
    kept = []
    for count in counts:
        if count <= most:
            kept.append(count)
            most -= count
    return kept


def is_aligned(gpus: tuple[int, ...], per_node: int) -> bool:
    """Whether GPUs are one block that begins at a multiple of its size, or whole nodes."""
    if len(gpus) <= per_node:
        return gpus == tuple(range(gpus[0], gpus[0] + len(gpus))) and gpus[0] % len(gpus) == 0
    return all(
        tuple(gpus[i : i + per_node]) == tuple(range(gpus[i], gpus[i] + per_node))
        and gpus[i] % per_node == 0
        for i in range(0, len(gpus), per_node)
    )


def assert_sound(topology: Topology, placement, demands: dict[str, int]) -> None:
    """Assert that every job has its count of GPUs of its own."""
    held = [gpu for gpus in placement.gpus.values() for gpu in gpus]
    assert len(held) == len(set(held))
    assert all(0 <= gpu < topology.num_gpus for gpu in held)
    assert set(placement.gpus) | set(placement.waiting) == set(demands)
    for job, gpus in placement.gpus.items():
        assert len(gpus) == demands[job]
        assert (job in placement.spread) == (not topology.consolidated(gpus))


@given(
    st.sampled_from([1, 2, 4, 8, 16]),
    st.integers(1, 70),
    st.lists(st.lists(POWERS, max_size=30), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(100))
def test_where_the_counts_fit_there_is_an_aligned_placement(per_node, num_gpus, rounds, random):
    """Powers of two in nodes of a power of two: nobody waits or spreads, whatever came before."""
    topology = Topology(num_gpus=num_gpus, gpus_per_node=per_node)
    demands: dict[str, int] = {}
    held: dict[str, tuple[int, ...]] = {}
    for number, counts in enumerate(rounds):
        demands = {job: gpus for job, gpus in demands.items() if random.random() < 0.6}
        room = num_gpus - sum(demands.values())
        demands |= {f"{number}.{i}": c for i, c in enumerate(fitting(counts, room))}
        placement = place(topology, demands, held)
        assert_sound(topology, placement, demands)
        assert not placement.waiting
        assert not placement.spread
        assert all(is_aligned(gpus, per_node) for gpus in placement.gpus.values())
        held = dict(placement.gpus)


@given(
    st.sampled_from([1, 3, 6, 8]),
    st.integers(1, 40),
    st.lists(st.lists(st.integers(1, 20), max_size=12), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.sets(st.integers(0, 39), max_size=10),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(100))
def test_any_counts_are_placed_soundly(
    per_node, num_gpus, rounds, may_move, may_spread, down, random
):
    """No GPU is held twice or while down, and only those wait whom the rules let wait."""
    topology = Topology(num_gpus=num_gpus, gpus_per_node=per_node)
    usable = num_gpus - sum(gpu < num_gpus for gpu in down)
    held: dict[str, tuple[int, ...]] = {}
    demands: dict[str, int] = {}
    for number, counts in enumerate(rounds):
        demands = {job: g for job, g in demands.items() if job in held and random.random() < 0.6}
        room = usable - sum(demands.values())
        demands |= {f"{number}.{i}": c for i, c in enumerate(fitting(counts, room))}
        placement = place(
            topology, demands, held, down=down, may_move=may_move, may_spread=may_spread
        )
        assert_sound(topology, placement, demands)
        assert not down.intersection(g for gpus in placement.gpus.values() for g in gpus)
        if may_spread:
            assert not placement.waiting
        else:
            assert not placement.spread
        if not may_move:
            assert not placement.moved
        # Nobody who runs on usable GPUs loses its place.
        assert not set(placement.waiting) & set(held)
        held = dict(placement.gpus)


def test_best_fit_takes_the_closest_subtree() -> None:
    """A job of one GPU goes where switch, socket and node are fullest."""
    topology = Topology(num_gpus=16)
    placement = place(topology, {"a": 1, "b": 1}, {"a": (12,)})
    assert placement.gpus["b"] == (13,)
    placement = place(topology, {"a": 1, "b": 2}, {"a": (12,)})
    assert placement.gpus["b"] == (14, 15)
    placement = place(topology, {"a": 1, "b": 4}, {"a": (12,)})
    assert placement.gpus["b"] == (8, 9, 10, 11)
    placement = place(topology, {"a": 1, "b": 8}, {"a": (12,)})
    assert placement.gpus["b"] == tuple(range(8))


def test_the_fewest_gpus_move() -> None:
    """To make room for four GPUs the socket with one GPU in use is cleared, not that with two."""
    topology = Topology(num_gpus=8)
    held = {"a": (0, 1), "b": (4,)}
    placement = place(topology, {"a": 2, "b": 1, "new": 4}, held)
    assert placement.moved == {"b"}
    assert placement.gpus == {"a": (0, 1), "b": (2,), "new": (4, 5, 6, 7)}


def test_without_moves_a_job_waits_or_spreads() -> None:
    """Where 8 GPUs are free on two nodes, a job of 8 waits unless it may be spread or others move."""
    topology = Topology(num_gpus=16)
    held = {"a": (0, 1, 2, 3), "b": (8, 9, 10, 11)}
    demands = {"a": 4, "b": 4, "new": 8}
    assert place(topology, demands, held, may_move=False, may_spread=False).waiting == ("new",)
    spread = place(topology, demands, held, may_move=False)
    assert spread.spread == {"new"}
    assert spread.gpus["new"] == (4, 5, 6, 7, 12, 13, 14, 15)
    assert place(topology, demands, held).moved == {"a"}


def test_racks_are_kept_together() -> None:
    """A job of two nodes goes to the rack with just two free nodes."""
    topology = Topology(num_gpus=12, gpus_per_node=2, nodes_per_rack=3)
    placement = place(topology, {"a": 2, "new": 4}, {"a": (6, 7)})
    assert placement.gpus["new"] == (8, 9, 10, 11)
    assert [level.name for level in topology.levels()] == ["gpu", "node", "rack", "cluster"]


def test_levels_of_usual_nodes() -> None:
    """A node of 8 has switches of 2 and sockets of 4, one of 6 has sockets of 3."""
    eight = Topology(num_gpus=16).levels()
    assert [(level.name, level.size) for level in eight] == [
        ("gpu", 1), ("switch", 2), ("socket", 4), ("node", 8), ("cluster", 16),
    ]  # fmt: skip
    six = Topology(num_gpus=12, gpus_per_node=6).levels()
    assert [level.size for level in six] == [1, 3, 6, 12]


def test_fragmentation_compares_what_fits_with_what_is_free() -> None:
    """Four free GPUs on four nodes hold a job of one: three quarters are lost."""
    tree = GpuTree(Topology(num_gpus=16, gpus_per_node=4))
    assert tree.fragmentation() == 0.0
    assert tree.largest_fit() == 16
    for node in range(4):
        tree.take(f"{node}", range(4 * node, 4 * node + 3))
    assert tree.largest_fit() == 1
    assert tree.fragmentation() == 0.75
    tree.release("0")
    assert tree.largest_fit() == 4
    assert tree.fragmentation() == 0.0


@pytest.mark.parametrize(
    ("demands", "held", "message"),
    [
        ({"a": 0}, {}, "job 'a' wants 0 GPUs; give at least 1"),
        ({"a": 1}, {"a": (8,)}, "job 'a' holds GPU 8; the cluster has 8"),
        ({"a": 1}, {"a": (1,), "b": (1,)}, "GPU 1 is held by 'a' and by 'b'"),
    ],
)
def test_senseless_input_is_refused(demands, held, message) -> None:
    """What cannot be placed by any rule is named."""
    with pytest.raises(UsageError, match=message):
        place(Topology(num_gpus=8), demands, held)


@pytest.mark.parametrize(
    "fields", [{"num_gpus": -1}, {"num_gpus": 1, "gpus_per_node": 0}, {"num_gpus": 1.5}]
)
def test_senseless_topologies_are_refused(fields) -> None:
    """Numbers of a topology are whole and in their range."""
    with pytest.raises(UsageError, match=r"topology: \w+ must be a whole number"):
        Topology(**fields)
