"""One door for all trace files: the format is told by the header."""

from __future__ import annotations

from pathlib import Path, PurePath

from edgeflow_opt.errors import Fault, TraceError
from edgeflow_opt.problem.files import read_bytes
from edgeflow_opt.problem.values import shown
from edgeflow_opt.registry import Registry
from edgeflow_opt.workloads.rates import DEFAULT_CATALOG, RateCatalog
from edgeflow_opt.workloads.readers.base import TraceFormat
from edgeflow_opt.workloads.table import MAX_FAULTS, Row, Table
from edgeflow_opt.workloads.trace import Trace, TraceJob

#: Every entry is a :class:`~edgeflow_opt.workloads.readers.base.TraceFormat`.
TRACE_FORMATS = Registry(
    "trace format",
    "edgeflow_opt.trace_formats",
    {
        "elasticflow": "edgeflow_opt.workloads.readers.elasticflow:ITP_FORMAT",
        "elasticflow-philly": "edgeflow_opt.workloads.readers.elasticflow:PHILLY_FORMAT",
        "philly": "edgeflow_opt.workloads.readers.philly:PHILLY_JOBS",
        "chronus": "edgeflow_opt.workloads.readers.chronus:CHRONUS_JOBS",
        "openb": "edgeflow_opt.workloads.readers.openb:OPENB_PODS",
    },
)

#: So many bad rows without a good one before them are no trace, even where bad rows may be skipped.
MAX_BAD_ROWS = 100_000


def read_trace(
    path: str | Path,
    *,
    skip_bad_rows: bool = False,
    catalog: RateCatalog | None = DEFAULT_CATALOG,
    seed: int = 0,
) -> Trace:
    """Return the trace in a file.

    Parameters
    ----------
    path
        CSV or CSV.gz, UTF-8, with a header that tells the format (see :data:`TRACE_FORMATS`). Rows
        need not be sorted; columns that the format does not know are passed over.
    skip_bad_rows
        Drop bad rows and count them in :attr:`Trace.skipped`, instead of refusing the file.
    catalog
        A row whose model and batch it lacks is bad; None = any model will do.
    seed
        Of what formats without models, rates or deadlines leave open; each job has draws of its
        own, which do not depend on the other rows.

    Raises
    ------
    TraceError
        With every fault of the file: row, column, rule, value. Of a thousand and more faults
        the first thousand.
    """
    data = read_bytes(path, TraceError)
    return trace_from_bytes(
        data, str(path), skip_bad_rows=skip_bad_rows, catalog=catalog, seed=seed
    )


def trace_from_bytes(
    data: bytes,
    source: str = "",
    *,
    skip_bad_rows: bool = False,
    catalog: RateCatalog | None = DEFAULT_CATALOG,
    seed: int = 0,
) -> Trace:
    """Return the trace in a document; see :func:`read_trace`.

    Parameters
    ----------
    data
        The CSV text.
    source
        Where it came from, for messages; the trace is named after it, without folders and endings
        (``runs/cluster02.csv.gz`` makes ``cluster02``).
    skip_bad_rows, catalog, seed
        As there.

    Raises
    ------
    TraceError
        As there.
    """
    table = Table(data, source)
    trace_format = _format_of(table)
    table.refuse_doubles(trace_format.columns)
    entries: list[TraceJob] = []
    first_row: dict[str, int] = {}
    faults: list[Fault] = []
    skipped = 0
    for row in table.rows():
        if not row.misshapen:
            job = trace_format.job(row, seed)
            _check(row, job, catalog, first_row)
            if not row.faults:
                first_row[job.id] = row.number
                entries.append(job)
                continue
        skipped += 1
        if len(faults) < MAX_FAULTS:
            faults += row.faults
        elif not skip_bad_rows or (not entries and skipped > MAX_BAD_ROWS):
            faults.append(
                Fault("file", "", f"reading stopped at {row.name}", remedy="correct these first")
            )
            break
    if faults and not (skip_bad_rows and entries):
        raise table.error(*faults)
    if not entries:
        raise table.error(Fault("file", "", "has a header but no rows", remedy="give some jobs"))
    return Trace(entries=tuple(entries), name=_stem(source), skipped=skipped)


def _stem(source: str) -> str:
    """Return the name of a file without its folders and the endings of a trace."""
    name = PurePath(source).name
    for ending in (".gz", ".csv"):
        stem = name.removesuffix(ending)
        name = stem or name
    return name


def _check(row: Row, job: TraceJob, catalog: RateCatalog | None, first_row: dict[str, int]) -> None:
    """Note what is wrong with a row in the light of the catalog and of the rows before it."""
    if job.id in first_row:
        row.refuse(
            "job_id", f"must be unique, stands in row {first_row[job.id]} too", shown(job.id),
            "rename one of the two",
        )  # fmt: skip
    known = catalog is None or catalog.has(job.model, job.batch)
    if known or not job.model or any("batch" in fault.field for fault in row.faults):
        return
    assert catalog is not None
    column = "batch_size" if catalog.batches(job.model) else "model_name"
    row.refuse(column, catalog.unknown(job.model, job.batch), remedy="or give a catalog with it")


def _format_of(table: Table) -> TraceFormat:
    """Return the format that the header tells."""
    formats: list[TraceFormat] = [TRACE_FORMATS.get(name) for name in TRACE_FORMATS.names()]
    present = set(table.columns)
    fitting = [f for f in formats if present.issuperset(f.columns)]
    if fitting:
        # The most telling one, should one format's columns include those of another.
        return max(fitting, key=lambda f: len(f.columns))
    nearest = max(formats, key=lambda f: len(present.intersection(f.columns)))
    missing = [column for column in nearest.columns if column not in present]
    if len(missing) < len(nearest.columns) / 2:
        raise table.error(
            *(
                Fault("header", column, f"is missing (format '{nearest.name}')",
                      remedy=f"needed are {', '.join(nearest.columns)}")
                for column in missing
            )
        )  # fmt: skip
    known = "; ".join(f"'{f.name}' ({', '.join(f.columns)})" for f in formats)
    raise table.error(
        Fault(
            "header", "", "is that of no known trace format", shown(list(table.columns)),
            f"known formats and their columns are: {known}",
        )
    )  # fmt: skip
