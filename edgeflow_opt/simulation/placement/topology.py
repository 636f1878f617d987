"""The shape of a cluster: GPU - PCIe switch - CPU socket - node - rack.

The tree is regular: every subtree of a level is a range of GPU numbers that begins at a multiple of
the level's size. So parents and children are found by division, and plain tuples of sizes hold what
a graph library would hold in nodes and edges; none is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edgeflow_opt.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level of the tree.

    Parameters
    ----------
    name
        For people.
    size
        GPUs of one subtree; the last subtree of a level may have fewer.
    """

    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """A cluster of GPUs, numbered from 0, node after node.

    Parameters
    ----------
    num_gpus
        GPUs in all, at least 0. The last node may have fewer than the others.
    gpus_per_node
        At least 1. A node is halved into two sockets and these into two switches each, and so on,
        as long as it divides evenly: 8 gives switches of 2 and sockets of 4 GPUs, 6 gives sockets
        of 3.
    nodes_per_rack
        At least 1; None = all nodes are in one rack.

    Raises
    ------
    UsageError
        If a number is out of its range.
    """

    num_gpus: int
    gpus_per_node: int = 8
    nodes_per_rack: int | None = None

    def __post_init__(self) -> None:
        for name, value, least in (
            ("num_gpus", self.num_gpus, 0),
            ("gpus_per_node", self.gpus_per_node, 1),
            ("nodes_per_rack", self.nodes_per_rack, 1),
        ):
            if value is not None and (not isinstance(value, int) or value < least):
                raise UsageError(
                    f"topology: {name} must be a whole number of at least {least}, got {value!r}"
                )

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return -(-self.num_gpus // self.gpus_per_node)

    def levels(self) -> tuple[Level, ...]:
        """Return the levels from single GPUs up to the whole cluster, sizes rising."""
        sizes = [self.gpus_per_node]
        while sizes[-1] % 2 == 0:
            sizes.append(sizes[-1] // 2)
        if sizes[-1] != 1:
            sizes.append(1)
        within = [size for size in reversed(sizes) if size < self.gpus_per_node]
        names = dict(zip(reversed(within), ("socket", "switch"), strict=False))
        levels = [
            Level(name="gpu" if size == 1 else names.get(size, f"group of {size}"), size=size)
            for size in within
        ]
        levels.append(Level(name="node", size=self.gpus_per_node))
        if self.nodes_per_rack is not None:
            levels.append(Level(name="rack", size=self.gpus_per_node * self.nodes_per_rack))
        levels.append(Level(name="cluster", size=max(self.num_gpus, levels[-1].size)))
        return tuple(levels)

    def node_of(self, gpu: int) -> int:
        """Return the number of the node that `gpu` is in."""
        return gpu // self.gpus_per_node

    def fewest_nodes(self, gpus: int) -> int:
        """Return the number of nodes that a job of `gpus` GPUs needs at least."""
        return -(-gpus // self.gpus_per_node)

    def consolidated(self, gpus: Iterable[int]) -> bool:
        """Whether these GPUs lie on no more nodes than their number needs."""
        held = tuple(gpus)
        nodes = {gpu // self.gpus_per_node for gpu in held}
        return len(nodes) <= self.fewest_nodes(len(held))
