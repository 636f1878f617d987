"""The trace files of ElasticFlow, in both spellings of their columns.

Source of the format: microsoft/elasticflow-traces (MIT) and pkusys/ElasticFlow (Apache-2.0); Gu et
al., ASPLOS 2023. Times are seconds on one clock, deadlines absolute. One word is added to the
format: a deadline ``none`` marks a best-effort job.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from edgeflow_opt.problem.files import write_text
from edgeflow_opt.problem.values import shown
from edgeflow_opt.workloads.readers.base import TraceFormat
from edgeflow_opt.workloads.table import Row
from edgeflow_opt.workloads.trace import Trace, TraceJob

#: A deadline so spelt marks a best-effort job.
NO_DEADLINE = "none"


def _job(
    row: Row, submission_column: str, iterations_column: str, deadline_column: str
) -> TraceJob:
    """Return the job of a row, given the spelling of three columns."""
    submission = row.number_in(submission_column)
    deadline: float | None = None
    if row.cells.get(deadline_column, "").lower() != NO_DEADLINE:
        deadline = row.number_in(deadline_column)
        if deadline < submission:
            row.refuse(
                deadline_column, f"must not be before the {submission_column} {submission:.15g}",
                shown(row.cells[deadline_column]), "deadlines are absolute times",
            )  # fmt: skip
    return TraceJob(
        id=row.text("job_id"),
        submission=submission,
        deadline=deadline,
        model=row.text("model_name"),
        batch=row.count_in("batch_size"),
        gpus=row.count_in("num_gpu"),
        iterations=row.number_in(iterations_column, positive=True),
        duration=row.number_in("duration", positive=True),
    )


def _itp_job(row: Row) -> TraceJob:
    return _job(row, "submission_time", "num_iteration", "deadline")


def _philly_job(row: Row) -> TraceJob:
    return _job(row, "submit_time", "iteration", "ddl")


#: Spelling of the traces of Microsoft ITP clusters and of the testbed.
ITP_FORMAT = TraceFormat(
    name="elasticflow",
    columns=(
        "job_id", "submission_time", "num_iteration", "model_name", "deadline", "batch_size",
        "num_gpu", "duration",
    ),
    job_of=_itp_job,
)  # fmt: skip

#: Spelling of the trace of a Philly virtual cluster.
PHILLY_FORMAT = TraceFormat(
    name="elasticflow-philly",
    columns=(
        "job_id", "submit_time", "model_name", "ddl", "batch_size", "num_gpu", "duration",
        "iteration",
    ),
    job_of=_philly_job,
)  # fmt: skip


def _number(value: float) -> str:
    """Return the shortest text that reads back as `value`; whole numbers without a point."""
    return str(int(value)) if value == int(value) else repr(float(value))


def trace_text(trace: Trace) -> str:
    """Return `trace` as CSV text in the first spelling; it reads back as the same jobs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(ITP_FORMAT.columns)
    for job in trace:
        writer.writerow(
            (
                job.id,
                _number(job.submission),
                _number(job.iterations),
                job.model,
                NO_DEADLINE if job.deadline is None else _number(job.deadline),
                job.batch,
                job.gpus,
                _number(job.duration),
            )
        )
    return out.getvalue()


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write `trace` as a CSV file in the first spelling, whole or not at all.

    Raises
    ------
    UsageError
        If the place cannot be written to.
    """
    write_text(path, trace_text(trace))
