"""How pods and nodes say what they are: labels, and a description of the job.

The template of the pods of a job carries the label ``edgeflow-opt/job`` with its name, and, where
the session learns of it by Kueue, the annotation ``edgeflow-opt/description``: a JSON object with the
keys of a job of ``edgeflow-epoch/1``, without its id; times are seconds since 1970. A node carries the
label ``edgeflow-opt/site``. For the session a job is called ``namespace/name``.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from edgeflow_opt.errors import Fault, InstanceError
from edgeflow_opt.problem import Job
from edgeflow_opt.problem.formats import WireJob, job_of_wire
from edgeflow_opt.problem.parsing import convert_part, parse_json
from edgeflow_opt.service.decision import JobReason

JOB_LABEL = "edgeflow-opt/job"
SITE_LABEL = "edgeflow-opt/site"
DESCRIPTION = "edgeflow-opt/description"

#: The resource that counts as a GPU.
GPU = "nvidia.com/gpu"

#: Labels (of old, an annotation) by which the pods of one job are numbered from 0.
_INDEX = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")


def job_id_of(metadata: Mapping[str, Any], namespace: str) -> str | None:
    """Return the id for the session of the job with these labels; None = none of ours."""
    name = (metadata.get("labels") or {}).get(JOB_LABEL)
    return f"{namespace}/{name}" if name else None


def index_of(metadata: Mapping[str, Any]) -> int:
    """Return the number of a pod among those of its job; 0 where they are not numbered."""
    for part in ("labels", "annotations"):
        for key in _INDEX:
            text = str((metadata.get(part) or {}).get(key, ""))
            if re.fullmatch(r"[0-9]{1,9}", text):
                return int(text)
    return 0


def gpus_of(pod_spec: Mapping[str, Any]) -> int:
    """Return the GPUs that a pod asks for."""
    total = 0
    for container in pod_spec.get("containers") or ():
        resources = container.get("resources") or {}
        for kind in ("limits", "requests"):
            given = str((resources.get(kind) or {}).get(GPU, ""))
            if re.fullmatch(r"[0-9]{1,9}", given):
                total += int(given)
                break
    return total


def described_job(job_id: str, metadata: Mapping[str, Any]) -> Job:
    """Return the job that the description among these annotations gives.

    Raises
    ------
    InstanceError
        With every fault of it.
    """
    owner = f"job {job_id}, annotation {DESCRIPTION}"
    text = (metadata.get("annotations") or {}).get(DESCRIPTION)
    if not isinstance(text, str):
        remedy = "give the keys of a job of edgeflow-epoch/1 as JSON, without its id"
        raise InstanceError((Fault(owner, "", "must be there", remedy=remedy),))
    given = parse_json(text.encode(), owner, InstanceError)
    found = convert_part(
        {**given, "id": job_id} if isinstance(given, dict) else given, WireJob, owner
    )
    if not isinstance(found, WireJob):
        raise InstanceError(found)
    return job_of_wire(found)


def time_text(time: float) -> str:
    """Return seconds since 1970 as Kubernetes writes times."""
    moment = datetime.datetime.fromtimestamp(time, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def told(reason: JobReason) -> str:
    """Return why a job gets what it gets, with times that people can read."""
    text = str(reason.code)
    if reason.start is not None:
        text += f", starts at {time_text(reason.start)}"
    if reason.met is False:
        text += ", does not meet its deadline"
    return text
