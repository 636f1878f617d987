"""The jobs of Microsoft Philly: arrival, duration and GPUs, nothing else.

Source of the format: the trace of siasosp23/artifacts, made of msr-fiddle/philly-traces (CC-BY-4.0;
Jeon et al., ATC 2019). The trace names no model: model and batch are drawn from the rate catalogue,
the work is the duration times the rate at the requested GPUs (rounded down to a count of the rate
table), and the deadline is ElasticFlow's ``submission + U[0.5, 1.5] x duration``.
"""

from __future__ import annotations

from edgeflow_opt.workloads.readers.base import TraceFormat
from edgeflow_opt.workloads.readers.drawn import draw
from edgeflow_opt.workloads.table import Row
from edgeflow_opt.workloads.trace import TraceJob


def _job(row: Row, seed: int) -> TraceJob:
    name = row.text("job_id")
    submission = row.number_in("submit_time_s")
    duration = row.number_in("duration_s", positive=True)
    drawn = draw(name, row.count_in("num_gpus"), seed)
    return TraceJob(
        id=name,
        submission=submission,
        deadline=submission + drawn.factor * duration,
        model=drawn.model,
        batch=drawn.batch,
        gpus=drawn.gpus,
        iterations=duration * drawn.rate,
        duration=duration,
    )


PHILLY_JOBS = TraceFormat(
    name="philly",
    columns=("job_id", "submit_time_s", "duration_s", "num_gpus", "virtual_cluster"),
    job_of=_job,
    draws=True,
)
