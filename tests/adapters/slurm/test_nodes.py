"""Answers of ``scontrol show nodes``, and where jobs are placed."""

from __future__ import annotations

import pytest

from edgeflow_opt.adapters.slurm.nodes import Place, SlurmNode, ever_fits, nodes_of_text, place

#: Recorded from Slurm 22.05.
RECORDED = (
    "NodeName=c1 Arch=x86_64 CoresPerSocket=1  CPUAlloc=1 CPUEfctv=16 CPUTot=16 "
    "AvailableFeatures=(null) ActiveFeatures=(null) Gres=gpu:4 GresDrain=N/A "
    "GresUsed=gpu:2(IDX:0-1) NodeAddr=127.0.0.1 NodeHostName=vm Port=27821 Version=22.05.8 "
    "OS=Linux 6.18 #1 SMP PREEMPT_DYNAMIC @0  RealMemory=1 State=MIXED ThreadsPerCore=1 "
    "Partitions=cloud,all  BootTime=2026-11-29T17:50:09 CfgTRES=cpu=16,mem=1M,billing=16 "
    "AllocTRES=cpu=1 Reason=a b State=IDLE [root@2026-11-30T00:47:01]"
)


def test_a_recorded_node_is_read() -> None:
    """Name, partitions and GPUs come from their fields, and nothing from the free text behind."""
    assert nodes_of_text(RECORDED + "\n\n") == [
        SlurmNode(name="c1", partitions=("cloud", "all"), gpus=4, used=2, usable=True)
    ]
    typed = RECORDED.replace("Gres=gpu:4", "Gres=gpu:a100:4(S:0-1)")
    (node,) = nodes_of_text(typed.replace("GresUsed=gpu:2", "GresUsed=gpu:a100:2"))
    assert (node.gpu_type, node.gpus, node.used, node.free) == ("a100", 4, 2, 2)


@pytest.mark.parametrize(
    ("state", "usable"),
    [
        ("IDLE", True),
        ("ALLOCATED", True),
        ("MIXED+PLANNED", True),
        ("IDLE+CLOUD+POWERED_DOWN", True),
        ("IDLE*", False),
        ("DOWN", False),
        ("MIXED+DRAIN", False),
        ("IDLE+MAINT+RESERVED", False),
        ("IDLE+NOT_RESPONDING", False),
    ],
)
def test_nodes_that_take_no_jobs_are_known(state: str, usable: bool) -> None:
    """A node that is down, drained, reserved or silent is not counted; one asleep is."""
    (node,) = nodes_of_text(RECORDED.replace("State=MIXED", f"State={state}"))
    assert node.usable is usable
    assert node.free == (2 if usable else 0)


def nodes(*free: int, gpus: int = 4) -> list[SlurmNode]:
    """Return nodes n0, n1, ... with so many free GPUs."""
    return [
        SlurmNode(name=f"n{i}", partitions=("p",), gpus=gpus, used=gpus - f, usable=True)
        for i, f in enumerate(free)
    ]


@pytest.mark.parametrize(
    ("gpus", "free", "where"),
    [
        (2, (4, 2, 3), Place(("n1",), 2)),
        (4, (3, 2, 2), Place(("n1", "n2"), 2)),
        (6, (4, 4, 4), Place(("n0", "n1"), 3)),
        (3, (1, 1, 1), Place(("n0", "n1", "n2"), 1)),
        (5, (4, 4, 4), None),
        (3, (2, 2, 0), None),
        (16, (4, 4, 4), None),
    ],
)
def test_cloud_jobs_go_to_the_fewest_and_fullest_nodes(
    gpus: int, free: tuple[int, ...], where: Place | None
) -> None:
    """As few nodes as do, as many GPUs on each, those with the least left over first."""
    assert place("cloud", gpus, nodes(*free)) == where


def test_edge_jobs_get_a_server_to_themselves() -> None:
    """A server with a job takes no second one, and the smallest that does is taken."""
    servers = nodes(4, 3) + nodes(2, gpus=2)
    servers = [SlurmNode(name=f"e{i}", partitions=("p",), gpus=n.gpus, used=n.used, usable=True)
               for i, n in enumerate(servers)]  # fmt: skip
    assert place("edge", 1, servers) == Place(("e2",), 1)
    assert place("edge", 3, servers) == Place(("e0",), 3)
    assert place("edge", 5, servers) is None


def test_what_could_never_be_placed_is_known() -> None:
    """A job fits if it would on empty nodes, whatever they do now."""
    assert ever_fits("cloud", 8, nodes(0, 0))
    assert not ever_fits("cloud", 5, nodes(4, 4))
    assert not ever_fits("edge", 8, nodes(4, 4))
