"""What a job of Slurm says of itself: work, rates and losses, in its comment.

A job is ours where its comment is a JSON object with the key ``edgeflow``; what stands there are the
keys of a job of ``edgeflow-epoch/1``::

    sbatch --hold --deadline=now+2hours --comment='{"edgeflow": {"work": 1200, "restart_s": 30,
        "modes": [{"site": "cloud", "gpus": 1, "rate": 1.5}, {"site": "cloud", "gpus": 2, "rate": 2.6},
                  {"site": "edge", "gpus": 1, "rate": 0.8}]}}' train.sh
"""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from edgeflow_opt.adapters.slurm.queue import SlurmJob
from edgeflow_opt.errors import Fault, InstanceError
from edgeflow_opt.problem import Job
from edgeflow_opt.problem.formats import WireJob as EpochJob
from edgeflow_opt.problem.formats import WireMode, job_of_wire
from edgeflow_opt.problem.parsing import convert_part, parse_json

#: The key that marks a job as one of ours.
MARK = "edgeflow"

_Positive = Annotated[float, Meta(gt=0, le=1e15)]
_NonNegative = Annotated[float, Meta(ge=0, le=1e15)]


class Description(Struct, forbid_unknown_fields=True, kw_only=True):
    """What stands behind the mark.

    Parameters
    ----------
    work
        Iterations left when this was written: a job that writes it anew tells how far it is.
    modes
        Where it may run, on how many GPUs, and how fast.
    deadline
        Seconds since 1970; null = best effort; not given = ``--deadline`` of the job. Slurm knows
        nothing of it, so that a job may end late; past its ``--deadline`` it starts no job.
    weight, restart_s, migration_s, must_meet, memory_gib, malleable
        As in ``edgeflow-epoch/1``.
    shrink
        Whether the job survives losing nodes, so that it need not be stopped for fewer.
    """

    work: _Positive
    modes: Annotated[tuple[WireMode, ...], Meta(min_length=1)]
    deadline: (
        Annotated[float, Meta(ge=-1000000000000000.0, le=1000000000000000.0)] | UnsetType | None
    ) = UNSET
    weight: _NonNegative = 1.0
    memory_gib: _NonNegative = 0.0
    restart_s: _NonNegative = 0.0
    migration_s: _NonNegative = 0.0
    must_meet: bool = False
    malleable: bool = True
    shrink: bool = False


def describe_comment(job: SlurmJob) -> Job | None:
    """Return the job that the comment of a job of Slurm describes.

    Returns
    -------
    job
        None where the comment has no mark: it is none of ours.

    Raises
    ------
    InstanceError
        If there is a mark, and what stands behind it is at fault.
    """
    description = description_of(job)
    if description is None:
        return None
    rest = msgspec.structs.asdict(description)
    del rest["shrink"]
    if description.deadline is UNSET:
        rest["deadline"] = job.deadline
    described = job_of_wire(EpochJob(id=str(job.id), **rest))
    if description.malleable and not job.requeue and not description.shrink:
        # Slurm would not let it be stopped and begun anew.
        return dataclasses.replace(described, malleable=False)
    return described


def may_shrink(job: SlurmJob) -> bool:
    """Whether the comment of a job says that it survives losing nodes."""
    try:
        description = description_of(job)
    except InstanceError:
        return False
    return description is not None and description.shrink


def description_of(job: SlurmJob) -> Description | None:
    """Return what stands behind the mark in the comment of a job; None where there is no mark.

    Raises
    ------
    InstanceError
        With every fault of it.
    """
    if MARK not in job.comment:
        return None
    owner = f"job {job.id}, comment"
    try:
        loose = json.loads(job.comment)
    except (ValueError, RecursionError):
        # Quotes that the shell took away are the usual fault: say so rather than overlook the job.
        if job.comment.lstrip().startswith("{"):
            remedy = "put the whole comment into single quotes"
            fault = Fault(owner, "", "is not JSON", job.comment[:60], remedy)
            raise InstanceError((fault,)) from None
        return None
    if not isinstance(loose, dict) or MARK not in loose:
        return None
    document: Any = parse_json(job.comment.encode(), owner, InstanceError)
    found = convert_part(document[MARK], Description, owner)
    if isinstance(found, Description):
        return found
    raise InstanceError(found)
