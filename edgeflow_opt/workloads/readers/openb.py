"""The pods of Alibaba's heterogeneous GPU cluster ("openb"), taken as a workload.

Source of the format: hkust-adsl/kubernetes-scheduler-simulator and alibaba/clusterdata,
cluster-trace-gpu-v2023 (Apache-2.0; Weng et al., ATC 2023).

* A pod is submitted at its creation and lasts from its scheduling (its creation, if it was never
  scheduled) to its deletion.
* A share of a GPU (``gpu_milli`` below 1000) counts as a whole one. Pods without GPUs are bad rows.
* ``qos`` BE is best effort; the other classes get ElasticFlow's deadline, submission + U[0.5, 1.5] x
  duration, since the trace has none.
* Model and batch are drawn from the rate catalogue; the work is the duration times the rate at the
  GPUs of the pod (rounded down to a count of the rate table).
"""

from __future__ import annotations

from edgeflow_opt.workloads.readers.base import TraceFormat
from edgeflow_opt.workloads.readers.drawn import draw
from edgeflow_opt.workloads.table import Row
from edgeflow_opt.workloads.trace import TraceJob


def _job(row: Row, seed: int) -> TraceJob:
    name = row.text("pod_id")
    created = row.number_in("creation_time")
    deleted = row.number_in("deletion_time")
    begun = row.number_in("scheduled_time") if row.cells.get("scheduled_time") else created
    duration = deleted - begun
    if duration <= 0:
        row.refuse("deletion_time", f"must be after the start {begun:.15g}", f"{deleted:.15g}")
    drawn = draw(name, row.count_in("num_gpu"), seed)
    best_effort = row.text("qos") == "BE"
    return TraceJob(
        id=name,
        submission=created,
        deadline=None if best_effort else created + drawn.factor * duration,
        model=drawn.model,
        batch=drawn.batch,
        gpus=drawn.gpus,
        iterations=duration * drawn.rate,
        duration=duration,
    )


OPENB_PODS = TraceFormat(
    name="openb",
    columns=(
        "pod_id", "num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time", "scheduled_time",
    ),
    job_of=_job,
    draws=True,
)  # fmt: skip
