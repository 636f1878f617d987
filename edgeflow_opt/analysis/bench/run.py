"""Running a suite to its end: every cell once, whatever is killed on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from edgeflow_opt.analysis.bench.cells import Cell, failed_record
from edgeflow_opt.analysis.bench.crew import Crew
from edgeflow_opt.analysis.bench.records import Record, append, open_ledger
from edgeflow_opt.analysis.bench.suite import Suite
from edgeflow_opt.errors import UsageError

#: How often a cell is begun whose process dies, before it is given up.
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run of a suite came to.

    Parameters
    ----------
    total
        Cells of the suite.
    kept
        Those that were finished before.
    ran
        Those that were run now.
    failures
        Cells of the suite without a proper result, now or before.
    strangers
        Results in the file that are of no cell of the suite (it was changed since).
    """

    total: int
    kept: int
    ran: int
    failures: int
    strangers: int


def run_suite(
    suite: Suite,
    output: str | Path,
    *,
    workers: int = 1,
    dask: str | None = None,
    on_record: Callable[[Record, int, int], None] | None = None,
) -> Outcome:
    """Run all cells of a suite that are not finished yet, and append their results to `output`.

    Every result is on the disk before the next is taken up, and only this process writes, so that
    a kill of a worker or of this process loses no finished cell and leaves none twice: run the
    suite again and it goes on. A cell whose process dies is begun anew, three times at most.

    Parameters
    ----------
    suite
        The suite.
    output
        File of JSON lines; may hold results from before.
    workers
        Processes of this machine, at least 1. They are spawned: a script that calls this needs the
        usual guard ``if __name__ == "__main__":``.
    dask
        Address of a Dask scheduler whose workers run the cells instead; the package must be
        installed there, and files of the suite must be found under the same path.
    on_record
        Called with every new record, the number of finished cells, and that of all.

    Raises
    ------
    UsageError
        If a library is missing, the file cannot be written to or another run is at it, or no
        scheduler answers.
    InputError
        If the file holds something else.
    """
    if workers < 1:
        raise UsageError(f"option workers: must be at least 1, got {workers}")
    with open_ledger(Path(output)) as (file, records):
        cells = {cell.id: cell for cell in suite.cells}
        done = {record.cell for record in records}
        kept = len(done & set(cells))
        failures = sum(r.failure is not None for r in records if r.cell in cells)
        waiting = [cell for name, cell in cells.items() if name not in done]
        ran = 0
        if waiting:
            crew = _crew(suite, min(workers, len(waiting)), dask)
            finished = False
            try:
                for record in _records(crew, waiting):
                    append(file, record)
                    ran += 1
                    failures += record.failure is not None
                    if on_record is not None:
                        on_record(record, kept + ran, len(cells))
                finished = True
            finally:
                crew.close(finished)
    return Outcome(
        total=len(cells), kept=kept, ran=ran, failures=failures, strangers=len(done - set(cells))
    )


def _records(crew: Crew, cells: list[Cell]) -> Iterator[Record]:
    """Yield a record for each cell, in the order in which they end."""
    import dataclasses

    waiting = list(reversed(cells))
    attempts: dict[str, int] = {}
    under_way = 0
    while waiting or under_way:
        while waiting and under_way < crew.room:
            cell = waiting.pop()
            attempts[cell.id] = attempts.get(cell.id, 0) + 1
            crew.begin(cell)
            under_way += 1
        for end in crew.ended():
            under_way -= 1
            count = attempts[end.cell.id]
            if end.record is not None:
                yield dataclasses.replace(end.record, attempts=count)
            elif end.reason == "died" and count < MAX_ATTEMPTS:
                waiting.append(end.cell)
            else:
                yield failed_record(end.cell, end.reason, end.message, count)


def _crew(suite: Suite, workers: int, dask: str | None) -> Crew:
    if dask is not None:
        from edgeflow_opt.analysis.bench.cluster import DaskCrew

        return DaskCrew(dask, suite.cell_limit_s)
    from edgeflow_opt.analysis.bench.processes import ProcessCrew

    return ProcessCrew(workers, suite.cell_limit_s)
