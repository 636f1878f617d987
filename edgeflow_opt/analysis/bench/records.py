"""The results of a suite: JSON lines, one for each finished cell, that survive a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from edgeflow_opt.analysis.comparison import Comparison
from edgeflow_opt.analysis.policy_comparison import PolicyComparison
from edgeflow_opt.analysis.policy_rows import PolicyRow
from edgeflow_opt.analysis.rows import Row
from edgeflow_opt.errors import Fault, InputError, UsageError

#: Name and version of a line.
BENCH_FORMAT = "edgeflow-bench/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One finished cell.

    Parameters
    ----------
    suite
        Name of the suite.
    cell
        Id of the cell: a hash of all that it is made of.
    kind
        ``"solve"``, ``"simulate"`` or ``"bound"``.
    seed
        Of the cell.
    digest
        Hash of the instance or trace; empty where it could not be made.
    row
        The row of ``edgeflow-compare/1`` or ``edgeflow-compare-policies/1``.
    failure
        Why there is no proper row: ``"time"`` (the limit of the cell), ``"died"`` (its process
        did), ``"error"``; None where there is one (a solver that refuses has one).
    seconds
        Wall seconds of the cell, reading and building included; None where it did not end.
    attempts
        How often it was begun in the run that finished it, at least 1.
    finished
        Wall-clock time at its end, UTC, ISO 8601.
    host
        Name of the machine.
    versions
        Of the package and the libraries that took part.
    """

    suite: str
    cell: str
    kind: str
    seed: int
    digest: str
    row: Mapping[str, Any]
    failure: str | None = None
    seconds: float | None = None
    attempts: int = 1
    finished: str = ""
    host: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    def line(self) -> bytes:
        """Return the record as one line."""
        document = {"format": BENCH_FORMAT, **asdict(self)}
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def parse_records(text: str, source: str) -> list[Record]:
    """Return the records of a file; a last line that was cut off by a kill is left out.

    Raises
    ------
    InputError
        If another line is no record; all such lines are named.
    """
    records: list[Record] = []
    faults: list[Fault] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip() or number == len(lines):
            continue  # what follows the last line feed was never finished
        try:
            document = json.loads(line)
            if document.pop("format") != BENCH_FORMAT:
                raise ValueError("another format")
            known = {
                name: document[name] for name in Record.__dataclass_fields__ if name in document
            }
            records.append(Record(**known))
        except (ValueError, KeyError, TypeError, AttributeError):
            faults.append(
                Fault(
                    f"line {number}", "", f"is no result in format {BENCH_FORMAT}",
                    remedy="name a file that 'edgeflow bench' wrote",
                )
            )  # fmt: skip
    if faults:
        raise InputError(tuple(faults), source)
    return records


def read_records(path: str | Path) -> list[Record]:
    """Return the records of a file that ``edgeflow bench`` wrote, those of a running suite too.

    Raises
    ------
    InputError
        If the file is unreadable, or a line is no record.
    """
    from edgeflow_opt.problem.files import read_bytes

    return parse_records(read_bytes(path, InputError).decode("utf-8", "replace"), str(path))


@contextmanager
def open_ledger(path: Path) -> Iterator[tuple[BinaryIO, list[Record]]]:
    """Open the results of a suite to go on with them; yield the file and what is in it.

    The file is this process's alone while it is open. A last line that a kill cut off is removed.

    Raises
    ------
    InputError
        If a line is no record.
    UsageError
        If it cannot be written to, or another process is at it.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as problem:
        raise UsageError(
            f"output '{path}': cannot be written ({problem.strerror}); "
            "name a file in a folder that exists and may be written to"
        ) from None
    with os.fdopen(handle, "r+b", buffering=0) as file:
        _lock(file, path)
        data = file.read() or b""
        whole = data.rfind(b"\n") + 1
        records = parse_records(data[:whole].decode("utf-8", "replace"), str(path))
        if whole < len(data):
            file.truncate(whole)
        file.seek(whole)
        yield file, records


def append(file: BinaryIO, record: Record) -> None:
    """Write a record so that it is on the disk when this returns."""
    data = record.line()
    while data:
        data = data[file.write(data) :]
    os.fsync(file.fileno())


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other processes off; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # no such lock on Windows: two runs at one file are the user's care there
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(
            f"output '{path}': another run is writing to it; wait for its end, or name another file"
        ) from None


def comparisons_of(
    records: Iterable[Record],
) -> tuple[Comparison | None, PolicyComparison | None]:
    """Return the results of solvers and of policies, sorted by name; None where there are none.

    Cells end in an order of chance; pictures and tables of them should not depend on it.
    """
    records = sorted(records, key=_order)
    versions: dict[str, str] = {}
    for record in records:
        versions |= record.versions
    rows = tuple(Row.from_document(r.row) for r in records if r.kind == "solve")
    bounds = {
        _scenario_key(r.row): r.row["bound"] for r in records if r.kind == "bound" and not r.failure
    }
    simulated = tuple(
        replace(_policy_row(r.row), bound=bounds.get(_scenario_key(r.row)))
        for r in records
        if r.kind == "simulate"
    )
    solvers = Comparison(rows=rows, versions=versions) if rows else None
    policies = PolicyComparison(rows=simulated, versions=versions) if simulated else None
    return solvers, policies


def _order(record: Record) -> tuple[str, int, str]:
    row = record.row
    return (
        str(row.get("instance") or row.get("trace")), record.seed,
        str(row.get("solver") or row.get("policy")),
    )  # fmt: skip


def _scenario_key(row: Mapping[str, Any]) -> str:
    """Return what the simulations of one trace with one seed under the same settings share."""
    return json.dumps([row["trace"], row["seed"], row["settings"]], sort_keys=True)


def _policy_row(document: Mapping[str, Any]) -> PolicyRow:
    known = PolicyRow.__dataclass_fields__
    return PolicyRow(**{name: value for name, value in document.items() if name in known})
