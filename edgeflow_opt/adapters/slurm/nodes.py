"""The nodes of Slurm, read from ``scontrol show nodes``, and which of them a job is placed on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgeflow_opt.adapters.slurm.programs import SlurmPrograms
from edgeflow_opt.adapters.slurm.queue import gpus_of
from edgeflow_opt.problem.data import SiteKind

#: Words in the state of a node that may not be used, or does not answer.
_UNUSABLE = (
    "DOWN", "DRAIN", "FAIL", "ERROR", "UNKNOWN", "FUTURE", "INVAL", "MAINT", "RESERVED", "REBOOT",
    "NOT_RESPONDING", "NO_RESPOND", "BLOCKED", "POWERING_DOWN",
)  # fmt: skip

_FIELD = re.compile(r"(?:^|\s)(\w+)=(\S*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """A node.

    Parameters
    ----------
    name
        As Slurm calls it.
    partitions
        Those that it belongs to.
    gpus
        GPUs that it has.
    used
        GPUs that jobs hold on it.
    usable
        Whether new jobs may begin on it.
    gpu_type
        As in the settings of Slurm; empty = not said.
    """

    name: str
    partitions: tuple[str, ...]
    gpus: int
    used: int
    usable: bool
    gpu_type: str = ""

    @property
    def free(self) -> int:
        """GPUs that no job holds; 0 where the node may not be used."""
        return max(0, self.gpus - self.used) if self.usable else 0


@dataclass(frozen=True, slots=True)
class Place:
    """Nodes for a job, and how many GPUs it holds on each."""

    nodes: tuple[str, ...]
    gpus_per_node: int


def read_nodes(programs: SlurmPrograms) -> list[SlurmNode]:
    """Return all nodes, in the order of Slurm.

    Raises
    ------
    AdapterError
        If Slurm does not answer.
    """
    text = programs.run("scontrol", "--details", "--oneliner", "--all", "show", "nodes")
    return nodes_of_text(text)


def nodes_of_text(text: str) -> list[SlurmNode]:
    """Return the nodes of an answer of ``scontrol --details --oneliner show nodes``."""
    nodes = []
    for line in text.splitlines():
        fields: dict[str, str] = {}
        for key, value in _FIELD.findall(line):
            # The first counts: free text comes last, and may hold what looks like a field.
            fields.setdefault(key, value)
        if "NodeName" in fields:
            nodes.append(_node_of(fields))
    return nodes


def _node_of(fields: dict[str, str]) -> SlurmNode:
    state = fields.get("State", "UNKNOWN").upper()
    # Down for saving power is fine, Slurm wakes such nodes; a star says that it does not answer.
    awake = state.replace("POWERED_DOWN", "").replace("POWER_DOWN", "")
    kind = re.match(r"(?:.*,)?gpu:([^:,(]*\D[^:,(]*):\d", fields.get("Gres", ""))
    return SlurmNode(
        name=fields["NodeName"],
        partitions=tuple(name for name in fields.get("Partitions", "").split(",") if name),
        gpus=gpus_of(fields.get("Gres", "")),
        used=gpus_of(fields.get("GresUsed", "")),
        usable=not any(word in awake for word in _UNUSABLE) and "*" not in state,
        gpu_type=kind.group(1) if kind else "",
    )


def place(kind: SiteKind, gpus: int, nodes: Sequence[SlurmNode]) -> Place | None:
    """Return where a job fits now: the fewest nodes with as many GPUs on each, the fullest first.

    A job in the cloud is spread over `n` nodes only where `n` divides its GPUs, since one number of
    GPUs per node is what data-parallel training asks for. At the edge it gets one server to itself.

    Parameters
    ----------
    kind
        Of the site.
    gpus
        That the job shall hold.
    nodes
        Of the site.

    Returns
    -------
    place
        None where it does not fit.
    """
    if kind == "edge":
        servers = [n for n in nodes if n.usable and n.used == 0 and n.gpus >= gpus]
        best = min(servers, key=lambda n: n.gpus, default=None)
        return None if best is None else Place((best.name,), gpus)
    for count in range(1, len(nodes) + 1):
        if gpus % count:
            continue
        each = gpus // count
        fitting = sorted((n for n in nodes if n.free >= each), key=lambda n: n.free)
        if len(fitting) >= count:
            return Place(tuple(sorted(n.name for n in fitting[:count])), each)
    return None


def ever_fits(kind: SiteKind, gpus: int, nodes: Iterable[SlurmNode]) -> bool:
    """Whether a job would fit if all nodes were up and empty."""
    empty = [
        SlurmNode(name=n.name, partitions=n.partitions, gpus=n.gpus, used=0, usable=True)
        for n in nodes
    ]
    return place(kind, gpus, empty) is not None
