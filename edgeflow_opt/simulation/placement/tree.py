"""The GPU tree with what is free in every subtree, and best fit in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeflow_opt.simulation.placement.topology import Topology


class GpuTree:
    """Who holds which GPU, and the free GPUs of every subtree.

    Parameters
    ----------
    topology
        The cluster.
    down
        GPUs that are not usable.

    Attributes
    ----------
    held
        GPUs, rising, by the job that holds them. To be read only.
    """

    def __init__(self, topology: Topology, down: Iterable[int] = ()) -> None:
        self.topology = topology
        self.held: dict[str, tuple[int, ...]] = {}
        self._owner: list[str | None] = [None] * topology.num_gpus
        self._up = [True] * topology.num_gpus
        self._sizes = [level.size for level in topology.levels()]
        self._node = self._sizes.index(topology.gpus_per_node)
        self._free = [
            [min(size, topology.num_gpus - first) for first in range(0, topology.num_gpus, size)]
            for size in self._sizes
        ]
        for gpu in set(down):
            if gpu < topology.num_gpus:
                self._up[gpu] = False
                self._count(gpu, -1)

    def copy(self) -> GpuTree:
        """Return a tree that can be changed by itself."""
        other = copy(self)
        other.held = dict(self.held)
        other._owner = self._owner[:]  # noqa: SLF001
        other._free = [counts[:] for counts in self._free]  # noqa: SLF001
        return other

    @property
    def num_free(self) -> int:
        """Usable GPUs that nobody holds."""
        return sum(self._free[-1])

    def is_free(self, gpus: Iterable[int]) -> bool:
        """Whether all these GPUs are usable and held by nobody."""
        return all(self._up[gpu] and self._owner[gpu] is None for gpu in gpus)

    def take(self, job: str, gpus: Iterable[int]) -> None:
        """Give free GPUs to a job that holds none."""
        taken = tuple(sorted(gpus))
        assert job not in self.held
        assert self.is_free(taken)
        for gpu in taken:
            self._owner[gpu] = job
            self._count(gpu, -1)
        self.held[job] = taken

    def release(self, job: str) -> tuple[int, ...]:
        """Take all GPUs from a job and return them."""
        gpus = self.held.pop(job)
        for gpu in gpus:
            self._owner[gpu] = None
            self._count(gpu, 1)
        return gpus

    def best_fit(self, gpus: int, *, aligned: bool = False) -> tuple[int, ...] | None:
        """Return free GPUs for a job on the fewest nodes that can hold it; None = there are none.

        The lowest level with a subtree that has enough free GPUs, there the subtree whose free
        GPUs are closest to the need; of equal ones that whose switch, socket, node and rack have
        the fewest free, then the first (Gu, Jin, Liu, 2025, section on placement: the subtree
        closest to the need). A job larger than a node takes whole free nodes, of the rack whose
        free nodes are closest to the need if one has enough, and the rest elsewhere by this rule.

        Parameters
        ----------
        gpus
            How many, at least 1; any number.
        aligned
            Only within one subtree of the lowest level that could hold so many (for a power of two
            in nodes of a power of two GPUs: a block that begins at a multiple of its size), not
            wherever a node has as many.
        """
        whole, rest = divmod(gpus, self.topology.gpus_per_node)
        if not whole:
            return self._within_a_node(gpus, aligned, ())
        nodes = self._whole_nodes(whole)
        if nodes is None:
            return None
        size = self.topology.gpus_per_node
        chosen = tuple(gpu for node in nodes for gpu in range(node * size, (node + 1) * size))
        if not rest:
            return chosen
        more = self._within_a_node(rest, aligned, nodes)
        return None if more is None else tuple(sorted((*chosen, *more)))

    def spread_fit(self, gpus: int) -> tuple[int, ...] | None:
        """Return free GPUs wherever they are, on few nodes: those with most free GPUs first."""
        if gpus > self.num_free:
            return None
        chosen: list[int] = []
        counts = self._free[self._node]
        for node in sorted(range(len(counts)), key=lambda node: (-counts[node], node)):
            chosen += self._first_free(self._node, node, min(counts[node], gpus - len(chosen)))
            if len(chosen) == gpus:
                break
        return tuple(sorted(chosen))

    def largest_fit(self) -> int:
        """Return the largest power of two that a new job could get on the fewest nodes."""
        counts = self._free[self._node]
        size = self.topology.gpus_per_node
        most = max(counts, default=0)
        best = 1 << (most.bit_length() - 1) if most else 0
        whole = sum(count == size for count in counts)
        # Beyond a node: whole nodes, and for the rest (where a node is no power of two) one more.
        wanted = 1 << size.bit_length()
        while wanted <= self.num_free:
            nodes, rest = divmod(wanted, size)
            others = sorted(counts, reverse=True)[nodes:]
            if nodes > whole or (rest and (not others or others[0] < rest)):
                break
            best = wanted
            wanted *= 2
        return best

    def fragmentation(self) -> float:
        """Return 1 - (largest job that fits now) / (largest that the free GPUs could hold).

        Jobs of powers of two, on the fewest nodes, nobody moved; 0 where nothing is free.
        """
        free = self.num_free
        return 1.0 - self.largest_fit() / (1 << (free.bit_length() - 1)) if free else 0.0

    def blocks_for(self, gpus: int) -> list[tuple[int, range]]:
        """Return the subtrees that could hold a job of at most a node: (free GPUs, their numbers).

        They are those of the lowest level whose size is at least `gpus`.
        """
        level = next(i for i, size in enumerate(self._sizes) if size >= gpus)
        return [(free, self._range(level, i)) for i, free in enumerate(self._free[level])]

    def holders(self, gpus: Iterable[int]) -> dict[str, int]:
        """Return how many of these GPUs each job holds, in the order of the GPUs."""
        found: dict[str, int] = {}
        for gpu in gpus:
            owner = self._owner[gpu]
            if owner is not None:
                found[owner] = found.get(owner, 0) + 1
        return found

    def usable(self, gpus: Collection[int]) -> int:
        """Return how many of these GPUs are usable, held or not."""
        return sum(self._up[gpu] for gpu in gpus)

    def _count(self, gpu: int, change: int) -> None:
        for size, counts in zip(self._sizes, self._free, strict=True):
            counts[gpu // size] += change

    def _range(self, level: int, index: int) -> range:
        size = self._sizes[level]
        return range(index * size, min((index + 1) * size, self.topology.num_gpus))

    def _within_a_node(
        self, gpus: int, aligned: bool, without: Collection[int]
    ) -> tuple[int, ...] | None:
        """Return free GPUs of one node that is not among `without`."""
        lowest = next(i for i, size in enumerate(self._sizes) if size >= gpus)
        per_node = self.topology.gpus_per_node
        for level in range(lowest, self._node + 1):
            counts = self._free[level]
            size = self._sizes[level]
            best = min(
                (
                    (free, *self._free_above(level, index), index)
                    for index, free in enumerate(counts)
                    if free >= gpus and index * size // per_node not in without
                ),
                default=None,
            )
            if best is not None:
                return tuple(self._pick(level, best[-1], gpus))
            if aligned:
                break
        return None

    def _free_above(self, level: int, index: int) -> list[int]:
        """Return the free GPUs of the subtrees around one, from the inside out."""
        first = index * self._sizes[level]
        return [
            self._free[above][first // self._sizes[above]]
            for above in range(level + 1, len(self._sizes))
        ]

    def _pick(self, level: int, index: int, gpus: int) -> list[int]:
        """Return `gpus` free GPUs of a subtree, whole subtrees below it before parts of such."""
        if self._free[level][index] == gpus or level == 0:
            return self._first_free(level, index, gpus)
        size, below = self._sizes[level], self._sizes[level - 1]
        counts = self._free[level - 1]
        children = range(
            index * size // below, -(-min((index + 1) * size, self.topology.num_gpus) // below)
        )
        enough = [child for child in children if counts[child] >= gpus]
        if enough:
            return self._pick(level - 1, min(enough, key=lambda c: (counts[c], c)), gpus)
        chosen: list[int] = []
        for child in sorted(children, key=lambda c: (-counts[c], c)):
            part = min(counts[child], gpus - len(chosen))
            chosen += self._pick(level - 1, child, part) if part else []
        return chosen

    def _first_free(self, level: int, index: int, gpus: int) -> list[int]:
        return [
            gpu for gpu in self._range(level, index) if self._up[gpu] and self._owner[gpu] is None
        ][:gpus]

    def _whole_nodes(self, number: int) -> tuple[int, ...] | None:
        """Return that many nodes that are wholly free, in as few racks as possible."""
        size = self.topology.gpus_per_node
        racks: dict[int, list[int]] = {}
        for node, free in enumerate(self._free[self._node]):
            if free == size:
                racks.setdefault(node // (self.topology.nodes_per_rack or 1 << 62), []).append(node)
        enough = [nodes for nodes in racks.values() if len(nodes) >= number]
        if enough:
            return tuple(min(enough, key=len)[:number])
        chosen = [n for nodes in sorted(racks.values(), key=len, reverse=True) for n in nodes]
        return tuple(sorted(chosen[:number])) if len(chosen) >= number else None
