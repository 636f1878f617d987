"""Hold CP-SAT and HiGHS on the plan master against third-party instances with known values.

    python -m benchmarks.third_party                          # all kinds, 10 s an instance
    python -m benchmarks.third_party --only mmkp --time-limit 30 --json

The folder is ``third_party`` in the one named by EDGEFLOW_DATA, or --folder. The exit code is 1
where a result contradicts a known value, 5 where a file cannot be read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.third_party.instance import FormatError
from benchmarks.third_party.run import KINDS, Row, rows

_HEAD = (
    f"{'kind':<8} {'instance':<12} {'solver':<6} {'known':>9} {'ours':>9} {'bound':>9} "
    f"{'gap %':>7} {'worse %':>8} {'seconds':>8}  proven"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Solve, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.third_party",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--time-limit", type=float, default=10.0, help="seconds an instance and solver"
    )
    parser.add_argument(
        "--only", choices=KINDS, action="append", help="kind of instances (repeatable)"
    )
    parser.add_argument("--folder", type=Path, help="folder with gap, mmkp and mmrcpsp")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args(arguments)
    if not options.time_limit > 0:
        parser.error(f"--time-limit: must be above 0, got {options.time_limit:g}")
    folder = options.folder
    if folder is None:
        data = os.environ.get("EDGEFLOW_DATA")
        if not data:
            parser.error("EDGEFLOW_DATA names no folder of public data; give --folder")
        folder = Path(data) / "third_party"
    found: list[Row] = []
    try:
        if not options.json:
            print(_HEAD)
        for row in rows(folder, tuple(options.only or KINDS), options.time_limit):
            found.append(row)
            if not options.json:
                print(_line(row), flush=True)
    except FormatError as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 5
    faults = [f"{row.kind} {row.instance} {row.solver}: {row.contradiction}"
              for row in found if row.contradiction]  # fmt: skip
    if options.json:
        document = {
            "format": "edgeflow-third-party/1",
            "time_limit_s": options.time_limit,
            "rows": [row.as_dict() for row in found],
            "contradictions": faults,
        }
        print(json.dumps(document, indent=1))
    else:
        _summary(found)
    for fault in faults:
        print(f"CONTRADICTION: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _line(row: Row) -> str:
    def shown(value: float | None, places: int = 1) -> str:
        return "-" if value is None else f"{value:.{places}f}".rstrip("0").rstrip(".")

    star = "" if row.known_optimal else "?"
    gap = None if row.gap is None else 100.0 * row.gap
    worse = None if row.worse is None else 100.0 * row.worse
    return (
        f"{row.kind:<8} {row.instance:<12} {row.solver:<6} {shown(row.known) + star:>9} "
        f"{shown(row.value):>9} {shown(row.bound):>9} {shown(gap, 3):>7} {shown(worse, 3):>8} "
        f"{row.seconds:8.2f}  {'yes' if row.proven else 'no'}"
    )


def _summary(found: Sequence[Row]) -> None:
    print("\n? = the known value is the best one found, not proven to be optimal")
    for kind in dict.fromkeys(row.kind for row in found):
        for solver in dict.fromkeys(row.solver for row in found if row.kind == kind):
            mine = [row for row in found if (row.kind, row.solver) == (kind, solver)]
            reached = sum(row.worse is not None and row.worse <= 1e-6 for row in mine)
            print(
                f"{kind} {solver}: {len(mine)} instances, {sum(row.proven for row in mine)} proven, "
                f"{reached} at the known value or better, {sum(row.seconds for row in mine):.1f} s"
            )


if __name__ == "__main__":
    sys.exit(main())
