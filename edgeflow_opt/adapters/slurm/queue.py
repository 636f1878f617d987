"""The jobs of Slurm, read from ``squeue --json`` of any version since 22.05.

The document changed with nearly every release: states are a text or a list of texts, numbers are
plain or ``{"set": ..., "infinite": ..., "number": ...}``, what is not set is 0, "" or null. Only
keys that all releases have are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edgeflow_opt.adapters.base import AdapterError
from edgeflow_opt.adapters.slurm.programs import SlurmPrograms

#: States in which a job holds nothing any more and will not come back by itself.
_ENDED = frozenset(
    {
        "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL",
        "DEADLINE", "OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED",
    }
)  # fmt: skip

#: Words of the older releases, which tell one flag in the place of the state.
_RUNNING = frozenset({"RUNNING", "RESIZING", "SIGNALING"})
_PENDING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"})

#: A job is on its way from its nodes.
_CLEARING = frozenset({"COMPLETING", "STAGE_OUT"})

#: A job is kept from going on by a signal.
_ASLEEP = frozenset({"SUSPENDED", "STOPPED"})

_GPUS = re.compile(r"(?:^|,)(?:gres[:/])?gpu(?::[^:=(,]*?)??[:=](\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """A job as Slurm tells of it.

    Parameters
    ----------
    id
        Slurm's number of it.
    name, user
        Of the job, and of its owner.
    states
        State and its flags, as ``{"PENDING"}`` or ``{"RUNNING", "COMPLETING"}``.
    reason
        Why it waits, as Slurm says.
    partitions
        The partition in which it runs, or those in which it may.
    comment, admin_comment
        As its owner, or an administrator, wrote them.
    deadline
        ``--deadline``, seconds since 1970; None = none.
    held
        Whether Slurm may not start it by itself.
    requeue
        Whether Slurm may stop it and queue it anew.
    nodes
        What it runs on as Slurm writes it, ``"c[1-2]"``; empty = nothing.
    node_count
        Number of nodes.
    gpus
        GPUs held on all of them.
    asks_total_gpus
        Whether it was submitted with a number of GPUs other than one per node (``--gpus`` and the
        like), which cannot be changed later.
    start
        When it last began to run, seconds since 1970; None = never, or not known.
    restarts
        How often it was queued anew.
    time_limit_min
        ``--time``, minutes; None = none.
    tasks_per_node, cpus_per_task
        As submitted, at least 1.
    dependency
        What it waits for, as Slurm writes it; empty = nothing.
    is_part
        Whether it belongs to an array or to a heterogeneous job.
    """

    id: int
    name: str
    user: str
    states: frozenset[str]
    reason: str = ""
    partitions: tuple[str, ...]
    comment: str = ""
    admin_comment: str = ""
    deadline: float | None = None
    held: bool = False
    requeue: bool = True
    nodes: str = ""
    node_count: int = 1
    gpus: int = 0
    asks_total_gpus: bool = False
    start: float | None = None
    restarts: int = 0
    time_limit_min: float | None = None
    tasks_per_node: int = 1
    cpus_per_task: int = 1
    dependency: str = ""
    is_part: bool = False

    @property
    def ended(self) -> bool:
        """Whether it will not run again by itself."""
        return bool(self.states & _ENDED)

    @property
    def completed(self) -> bool:
        """Whether it ended with success."""
        return "COMPLETED" in self.states

    @property
    def running(self) -> bool:
        """Whether it holds its nodes, or they are being made ready for it."""
        return bool(self.states & (_RUNNING | {"CONFIGURING"})) and not (
            self.states & (_CLEARING | _ASLEEP)
        )

    @property
    def pending(self) -> bool:
        """Whether it waits and holds nothing."""
        return bool(self.states & _PENDING) and not self.states & (_CLEARING | {"CONFIGURING"})

    @property
    def clearing(self) -> bool:
        """Whether it is on its way from its nodes."""
        return bool(self.states & _CLEARING)


def read_queue(programs: SlurmPrograms, partitions: Iterable[str]) -> dict[int, SlurmJob]:
    """Return the jobs in `partitions` by their numbers, those that ended a short time ago included.

    Raises
    ------
    AdapterError
        If Slurm does not answer, or with something else than a document of jobs.
    """
    wanted = set(partitions)
    text = programs.run(
        "squeue", "--json", "--all", "--states=all", f"--partition={','.join(sorted(wanted))}"
    )
    # The oldest release that writes JSON leaves out nothing.
    jobs = {}
    for job in jobs_of_text(text):
        if wanted.intersection(job.partitions):
            jobs[job.id] = job
    return jobs


def jobs_of_text(text: str) -> list[SlurmJob]:
    """Return the jobs of a document of ``squeue --json``.

    Raises
    ------
    AdapterError
        If it is none.
    """
    try:
        # A version that warns writes after the document what is no JSON.
        document, _ = json.JSONDecoder().raw_decode(text.lstrip())
        records = document["jobs"]
        return [_job_of(record) for record in records]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise AdapterError(
            f"squeue --json: the answer is not understood ({type(problem).__name__}: {problem}); "
            "Slurm 22.05 or later with its JSON plug-in is needed"
        ) from None


def gpus_of(text: str) -> int:
    """Return the GPUs in a list of resources, as ``gpu:a100:2(S:0-1)`` or ``cpu=4,gres/gpu=2``.

    Where a list names the same GPUs in total and by type (``gres/gpu=2,gres/gpu:a100=2``), they
    count once.
    """
    without_places = re.sub(r"\([^)]*\)", "", text)
    total = re.search(r"(?:^|,)gres/gpu=(\d+)", without_places)
    if total is not None:
        return int(total.group(1))
    return sum(int(count) for count in _GPUS.findall(without_places))


def _job_of(record: dict[str, Any]) -> SlurmJob:
    states = record["job_state"]
    states = [states] if isinstance(states, str) else states
    nodes = record.get("nodes") or ""
    if isinstance(nodes, dict):
        nodes = nodes.get("list") or ""
    held = record.get("gres_detail") or []
    gpus = sum(gpus_of(part) for part in held) or gpus_of(record.get("tres_alloc_str") or "")
    totals = ("tres_per_job", "tres_per_socket", "tres_per_task")
    return SlurmJob(
        id=int(record["job_id"]),
        name=record.get("name") or "",
        user=record.get("user_name") or "",
        states=frozenset(state.upper() for state in states),
        reason=record.get("state_reason") or "",
        partitions=tuple(name for name in (record.get("partition") or "").split(",") if name),
        comment=_text(record.get("comment")),
        admin_comment=_text(record.get("admin_comment")),
        deadline=_number(record.get("deadline")) or None,
        held=_number(record.get("priority")) == 0,
        requeue=bool(record.get("requeue", True)),
        nodes=nodes,
        node_count=int(_number(record.get("node_count")) or 1),
        gpus=gpus,
        asks_total_gpus=any("gpu" in (record.get(key) or "") for key in totals),
        start=_number(record.get("start_time")) or None,
        restarts=int(_number(record.get("restart_cnt")) or 0),
        time_limit_min=_number(record.get("time_limit")),
        tasks_per_node=int(_number(record.get("tasks_per_node")) or 1),
        cpus_per_task=int(_number(record.get("cpus_per_task")) or 1),
        dependency=record.get("dependency") or "",
        is_part=bool(_number(record.get("array_job_id")) or _number(record.get("het_job_id"))),
    )


def _number(value: Any) -> float | None:
    """Return a number of any version; None where it is not set or infinite."""
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite", False):
            return None
        value = value.get("number")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return None


def _text(value: Any) -> str:
    """Return a comment: a text, or in some releases one inside an object."""
    if isinstance(value, dict):
        return " ".join(part for part in value.values() if isinstance(part, str))
    return value if isinstance(value, str) else ""
