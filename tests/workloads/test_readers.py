"""Trace files: both spellings, round trips, and every way in which a file can be bad."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflow_opt.errors import TraceError, UsageError
from edgeflow_opt.workloads import (
    DEFAULT_CATALOG,
    TRACE_FORMATS,
    Trace,
    TraceJob,
    generate_trace,
    read_trace,
    trace_from_bytes,
    write_trace,
)
from edgeflow_opt.workloads.readers.elasticflow import trace_text

HEADER = "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n"
GOOD = "0,100,3249,deepspeech2,793,32,1,1075\n"


def read_text(text: str, **options: bool) -> Trace:
    """Return the trace in a text."""
    return trace_from_bytes(text.encode(), "t.csv", **options)  # type: ignore[arg-type]


def test_first_spelling_is_read() -> None:
    """A row of the ITP spelling becomes the job that it states."""
    trace = read_text(HEADER + GOOD)
    assert trace.entries == (
        TraceJob(
            id="0",
            submission=100.0,
            deadline=793.0,
            model="deepspeech2",
            batch=32,
            gpus=1,
            iterations=3249.0,
            duration=1075.0,
        ),
    )


def test_second_spelling_is_read_the_same() -> None:
    """The Philly spelling of the same row gives the same job; further columns do not matter."""
    text = (
        "job_id,submit_time,model_name,ddl,batch_size,num_gpu,duration,iteration,extra\n"
        "0,100,deepspeech2,793,32,1,1075,3249,x\n"
    )
    assert read_text(text).entries == read_text(HEADER + GOOD).entries


def test_gzip_bom_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    """A compressed file with byte order mark, CRLF and blank lines reads like the plain one."""
    path = tmp_path / "t.csv.gz"
    text = "\ufeff" + HEADER.replace("\n", "\r\n\r\n") + GOOD.replace("\n", "\r\n") + "\r\n"
    path.write_bytes(gzip.compress(text.encode()))
    assert read_trace(path).entries == read_text(HEADER + GOOD).entries


def test_rows_are_sorted_stably_by_submission() -> None:
    """Unsorted rows are sorted; equal times keep their order."""
    row = "{},{},10,bert,900,64,1,10\n"
    trace = read_text(HEADER + row.format("b", 5) + row.format("c", 1) + row.format("a", 5))
    assert [job.id for job in trace] == ["c", "b", "a"]


def test_every_format_of_the_registry_names_its_columns() -> None:
    """Each registered format has a name equal to its key and a set of columns of its own."""
    formats = {name: TRACE_FORMATS.get(name) for name in TRACE_FORMATS.names()}
    assert all(found.name == name for name, found in formats.items())
    assert len({frozenset(found.columns) for found in formats.values()}) == len(formats) >= 2


@pytest.mark.parametrize(
    ("row", "column", "rule"),
    [
        ("1,,10,bert,900,64,1,10", "submission_time", "must not be blank"),
        ("1,5,10,bert,,64,1,10", "deadline", "must not be blank"),
        ("1,nan,10,bert,900,64,1,10", "submission_time", "must be a finite number, got 'nan'"),
        ("1,5,inf,bert,900,64,1,10", "num_iteration", "must be a finite number, got 'inf'"),
        ("1,5,10,bert,900,64,1,1e308", "duration", "magnitude must be at most 1e+15, got '1e308'"),
        ("1,5,1e999,bert,900,64,1,1", "num_iteration", "must be a finite number, got '1e999'"),
        ("1,5,-10,bert,900,64,1,10", "num_iteration", "must be above 0, got '-10'"),
        ("1,5,0,bert,900,64,1,10", "num_iteration", "must be above 0, got '0'"),
        ("1,5,10,bort,900,64,1,10", "model_name", "model 'bort' is not known; known are bert"),
        ("1,5,10,bert,900,63,1,10", "batch_size", "batch 63 of model 'bert' is not known"),
        ("1,5,10,,900,64,1,10", "model_name", "must not be blank"),
        ("1,5,10,bert,900,64,0,10", "num_gpu", "must be above 0, got '0'"),
        ("1,5,10,bert,900,64,1.5,10", "num_gpu", "must be a whole number, got '1.5'"),
        ("1,5,10,bert,900,64,1,0", "duration", "must be above 0, got '0'"),
        ("0,5,10,bert,900,64,1,10", "job_id", "must be unique, stands in row 2 too"),
        (",5,10,bert,900,64,1,10", "job_id", "must not be blank"),
        ("1,5,10,bert,4,64,1,10", "deadline", "must not be before the submission_time 5, got '4'"),
        ("1,5,1_0,bert,900,64,1,10", "num_iteration", "must be a number, got '1_0'"),
        ("1,5,\u0661\u0660,bert,900,64,1,10", "num_iteration", "must be a number"),
        ("1,5,ten,bert,900,64,1,10", "num_iteration", "must be a number, got 'ten'"),
    ],
)
def test_every_kind_of_bad_cell_is_named(row: str, column: str, rule: str) -> None:
    """A bad cell: one fault with row, column, rule and value; skipped and counted on request."""
    text = HEADER + GOOD + row + "\n"
    with pytest.raises(TraceError, match=r"t\.csv: row 3") as caught:
        read_text(text)
    (fault,) = caught.value.faults
    assert (fault.object, fault.field) == ("row 3", column)
    assert rule in str(fault)
    trace = read_text(text, skip_bad_rows=True)
    assert ([job.id for job in trace], trace.skipped) == (["0"], 1)


@pytest.mark.parametrize(
    "row", ["1,5,10", "1,5,10,bert,900,64,1,10,11", '1,5,10,"be\nrt",900,64,1,10']
)
def test_rows_of_a_wrong_shape_are_bad(row: str) -> None:
    """Too few or too many cells, or a line break in a cell, make a bad row."""
    with pytest.raises(TraceError, match=r"must have 8 cells|a cell holds a line break"):
        read_text(HEADER + GOOD + row + "\n")
    assert read_text(HEADER + row + "\n" + GOOD, skip_bad_rows=True).skipped == 1


def test_all_faults_come_together() -> None:
    """Several faults in several rows, and two in one row, are one error."""
    text = (
        HEADER
        + "0,x,-1,bert,900,64,1,10\n"
        + GOOD.replace("0,", "1,", 1)
        + "2,5,1,bert,900,64,0,1\n"
    )
    with pytest.raises(TraceError, match="3 faults") as caught:
        read_text(text)
    assert [(f.object, f.field) for f in caught.value.faults] == [
        ("row 2", "submission_time"),
        ("row 2", "num_iteration"),
        ("row 4", "num_gpu"),
    ]


def test_unknown_header_names_the_known_formats() -> None:
    """A header of no format: the known formats and their columns are told."""
    with pytest.raises(
        TraceError, match=r"no known trace format.*'elasticflow' \(job_id, "
    ) as caught:
        read_text("a,b,c\n1,2,3\n")
    assert "'elasticflow-philly' (job_id, submit_time" in str(caught.value)


def test_missing_columns_are_named() -> None:
    """A header that lacks some columns of a format: those are told."""
    with pytest.raises(TraceError, match=r"2 faults(.|\n)*header, num_iteration: is missing"):
        read_text(HEADER.replace("num_iteration", "x").replace("num_gpu", "y") + GOOD)


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (HEADER.encode(), "has a header but no rows"),
        (b"\x7fELF\x00\x01\x02", "is binary"),
        (HEADER.encode() + b"0,1,2,b\xff,3,4,5,6\n", "row 2: is not UTF-8 text, got byte 0xff"),
        (HEADER.encode() + b'0,"1,2,bert,3,4,5,6\n', "is not CSV"),
        (HEADER.encode() + b"," * 1_100_000 + b"\n", "row 2: is longer than 1 MiB"),
        (HEADER.encode() + b"0" * 200_000 + b"\n", "is not CSV .field larger than"),
        ((HEADER[:-1] + ",job_id\n" + GOOD).encode(), "header, job_id: stands more than once"),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_unreadable_files_are_refused_whole(data: bytes, rule: str, skip: bool) -> None:
    """What cannot be told apart into rows is refused, whether or not bad rows may be skipped."""
    with pytest.raises(TraceError, match=rule):
        trace_from_bytes(data, "t.csv", skip_bad_rows=skip)


def test_a_file_of_bad_rows_only_is_refused_even_when_skipping() -> None:
    """Nothing good left is an error, not an empty trace."""
    with pytest.raises(TraceError, match="must be a number, got 'x'"):
        read_text(HEADER + "0,x,1,bert,900,64,1,1\n", skip_bad_rows=True)


def test_much_junk_gives_a_short_error() -> None:
    """Megabytes of junk, under a good header or none, end in one error of bounded size."""
    junk = b"junk,junk\n" * 500_000
    with pytest.raises(TraceError, match="no known trace format"):
        trace_from_bytes(junk, "t.csv")
    with pytest.raises(TraceError, match="1001 faults") as caught:
        trace_from_bytes(HEADER.encode() + b"junk\n" * 100_000, "t.csv")
    assert "reading stopped at" in str(caught.value.faults[-1])
    with pytest.raises(TraceError, match="1001 faults"):
        trace_from_bytes(HEADER.encode() + b"junk\n" * 200_000, "t.csv", skip_bad_rows=True)
    trace = trace_from_bytes((HEADER + GOOD).encode() + b"junk\n" * 50_000, skip_bad_rows=True)
    assert trace.skipped == 50_000


def test_missing_and_damaged_files_are_refused(tmp_path: Path) -> None:
    """No file, a folder, and gzip that is none: each is told."""
    with pytest.raises(TraceError, match="does not exist"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(TraceError, match="is a folder"):
        read_trace(tmp_path)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(HEADER.encode() * 99)[:40])
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(path)


@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_bytes_end_in_a_trace_or_a_trace_error(data: bytes) -> None:
    """Whatever follows a good header, reading gives a trace or a TraceError, nothing else."""
    for skip in (False, True):
        try:
            trace = trace_from_bytes((HEADER + GOOD).encode() + data, "t", skip_bad_rows=skip)
        except TraceError:
            continue
        assert len(trace) >= 1


NUMBER = st.one_of(st.integers(1, 10**9).map(float), st.floats(1e-3, 1e12))


@given(
    rows=st.lists(
        st.tuples(
            st.floats(-1e9, 1e9), st.one_of(st.none(), st.floats(0, 1e9)),
            st.sampled_from(DEFAULT_CATALOG.profiles), st.integers(1, 64), NUMBER, NUMBER,
        ),
        min_size=1,
        max_size=8,
    )
)  # fmt: skip
def test_written_traces_read_back_the_same(rows: list[tuple]) -> None:  # type: ignore[type-arg]
    """Write and read give the same jobs to the last bit, best effort included."""
    trace = Trace(
        entries=tuple(
            TraceJob(
                id=f'job, "{index}"',
                submission=submission,
                deadline=None if window is None else submission + window,
                model=profile.model,
                batch=profile.batch,
                gpus=gpus,
                iterations=iterations,
                duration=duration,
            )
            for index, (submission, window, profile, gpus, iterations, duration) in enumerate(rows)
        )
    )
    assert read_text(trace_text(trace)).entries == trace.entries


def test_write_trace_is_whole_or_nothing(tmp_path: Path) -> None:
    """A trace is written to a file that reads back; a folder that is not there is a usage error."""
    trace = generate_trace(5, 1)
    write_trace(trace, tmp_path / "t.csv")
    assert read_trace(tmp_path / "t.csv").entries == trace.entries
    with pytest.raises(UsageError, match="cannot be written"):
        write_trace(trace, tmp_path / "none" / "t.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("name", "rows", "deadline_slack"),
    [
        ("testbed195.csv", 195, 0.01),
        ("philly_vc_103959.csv", 876, 0.01),
        ("cluster01.csv.gz", 1595, 0.01),
        ("cluster10.csv.gz", 260, 0.01),
    ],
)
def test_identities_of_the_public_traces(
    data_folder: Path, name: str, rows: int, deadline_slack: float
) -> None:
    """Duration = iterations / rate within 0.2 %, and deadline factors within [0.5, 1.5]."""
    trace = read_trace(data_folder / "elasticflow_itp" / name)
    assert (len(trace), trace.skipped) == (rows, 0)
    for job in trace:
        rate = DEFAULT_CATALOG.rates(job.model, job.batch)[job.gpus]
        assert job.iterations / rate == pytest.approx(job.duration, rel=0.002)
        assert job.deadline_factor is not None
        assert 0.5 - deadline_slack <= job.deadline_factor <= 1.5 + deadline_slack


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("a/b/cluster02.csv.gz", "cluster02"),
        ("t.csv", "t"),
        ("v1.2.csv", "v1.2"),
        ("stdin", "stdin"),
    ],
)
def test_traces_are_named_after_their_files(source: str, name: str) -> None:
    """The name is that of the file, without folders and endings."""
    assert trace_from_bytes((HEADER + GOOD).encode(), source).name == name
