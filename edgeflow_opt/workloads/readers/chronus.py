"""The traces of Chronus: Philly jobs with strict, soft or no deadlines.

Source of the format: S-Lab-System-Group/ChronusArtifact (MIT); Gao et al., SoCC 2021. Times are
taken for minutes, which the source does not say but the range of the arrivals fits (14 days).

Deadlines
    ``expect_time_list`` has one or more steps, minutes after submission, and ``expect_value_list``
    what it is worth to be done by then. A soft deadline becomes a hard one: the last step of the
    highest value, after which the job is worth less. The lesser values of the later steps are not
    counted, so a job that is done by one of them counts as late. ``best_effort`` 1 has no deadline.
Model
    Rates are known of vgg16 and inception_v3 (as inception3); for the other models (alexnet,
    mobilenet_v2, resnet101) model and batch are drawn from the rate catalogue. The work is the
    duration times the rate at the requested GPUs; the column ``iterations`` belongs to GPUs that
    nobody has rates of, and is passed over.

Rows with ``num_gpu`` 0 are bad rows.
"""

from __future__ import annotations

import math

from edgeflow_opt.problem.values import shown
from edgeflow_opt.workloads.readers.base import TraceFormat
from edgeflow_opt.workloads.readers.drawn import draw
from edgeflow_opt.workloads.table import Row
from edgeflow_opt.workloads.trace import TraceJob

#: Seconds of the unit of time of the files.
_MINUTE = 60.0

#: Models of which the catalogue has rates.
_KNOWN = {"vgg16": "vgg16", "inception_v3": "inception3"}


def _steps(row: Row, column: str) -> list[float]:
    """Return the numbers of a cell, joined by "-"; empty where one is none."""
    text = row.text(column)
    try:
        steps = [float(part) for part in text.split("-")]
    except ValueError:
        steps = []
    if text and not (steps and all(math.isfinite(step) and step >= 0 for step in steps)):
        row.refuse(column, "must be numbers of at least 0 joined by -", shown(text))
        return []
    return steps


def _deadline(row: Row) -> float | None:
    """Return the deadline in seconds after submission; None = best effort, or a fault was noted."""
    flag = row.number_in("best_effort", whole=True, nonnegative=True)
    if flag == 1:
        return None
    times, values = _steps(row, "expect_time_list"), _steps(row, "expect_value_list")
    if not times or not values:
        return None
    if len(times) != len(values):
        row.refuse(
            "expect_value_list", f"must have as many values as there are times, {len(times)}",
            shown(row.cells["expect_value_list"]),
        )  # fmt: skip
        return None
    best = max(values)
    return _MINUTE * max(t for t, value in zip(times, values, strict=True) if value == best)


def _job(row: Row, seed: int) -> TraceJob:
    name = row.text("job_id")
    submission = _MINUTE * row.number_in("submit_time")
    duration = _MINUTE * row.number_in("duration", positive=True)
    drawn = draw(name, row.count_in("num_gpu"), seed, _KNOWN.get(row.text("model_name")))
    window = _deadline(row)
    return TraceJob(
        id=name,
        submission=submission,
        deadline=None if window is None else submission + window,
        model=drawn.model,
        batch=drawn.batch,
        gpus=drawn.gpus,
        iterations=duration * drawn.rate,
        duration=duration,
    )


CHRONUS_JOBS = TraceFormat(
    name="chronus",
    columns=(
        "job_id", "num_gpu", "submit_time", "model_name", "duration", "expect_time_list",
        "expect_value_list", "best_effort",
    ),
    job_of=_job,
    draws=True,
)  # fmt: skip
