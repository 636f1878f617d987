"""What a decision of a session costs after one event, beside one from scratch.

    python -m benchmarks.session                        # 100x48, 300x96, 1000x96: two minutes
    python -m benchmarks.session --sizes 100x48 --limit 1 --json session.json

A session decides once; then one event comes (an arrival, a completion, a corrected rate), and it
decides anew from the plan and the prices that it holds, in an eighth of the time limit, a quarter,
and all of it. Beside it a session that knows the same cluster but has no plan and no prices yet
decides in all of the limit. A row tells what each has met, its bound and the CPU seconds it took;
``ratio`` is the CPU time of the shortest incremental decision that is as good in value and gap as the
one from scratch, over that of the latter (`-` = none was). All in this process, by the solver ``price``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.service import Event

#: Shares of the time limit given to decisions that begin from the plan before.
SHARES = (0.125, 0.25, 1.0)

#: Relative amount of a value or gap that is no difference.
_SLACK = 1e-6


def events_on(problem: EpochProblem, now: float) -> Iterator[tuple[str, Event]]:
    """Yield one event of each kind, with its name."""
    import dataclasses

    from edgeflow_opt.service import JobArrived, JobCompleted, RateCorrected

    *known, new = problem.jobs
    new = dataclasses.replace(new, arrival=now, running=None, last_site=None)
    if new.deadline is not None and new.deadline <= now:
        new = dataclasses.replace(new, deadline=now + (problem.grid.end - problem.now) / 2)
    yield "arrival", JobArrived(time=now, job=new)
    yield "completion", JobCompleted(time=now, job=known[0].id)
    mode = known[1].modes[0]
    yield (
        "rate correction",
        RateCorrected(
            time=now, job=known[1].id, site=mode.site, gpus=mode.gpus, rate=0.8 * mode.rate,
            scale_others=True,
        ),
    )  # fmt: skip


def decided(snapshot: Any, now: float, limit_s: float) -> dict[str, float]:
    """Return value, bound and CPU seconds of a decision of the session in `snapshot`."""
    from edgeflow_opt.service import EpochSession

    session = EpochSession.from_snapshot(snapshot, isolated=False)
    begin = time.process_time()
    decision = session.decide(now, limit_s)
    seconds = time.process_time() - begin
    assert decision.bound is not None
    return {"value": decision.value, "bound": decision.bound, "cpu_s": seconds}


def rows(num_jobs: int, num_slots: int, limit_s: float, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the row of each event on an instance of a size."""
    from edgeflow_opt.service import EpochSession, SessionOptions
    from edgeflow_opt.workloads import generate_problem

    problem = generate_problem(num_jobs + 1, num_slots, seed, load=1.6)
    boundaries = problem.grid.boundaries
    options = SessionOptions(
        rungs=("price",), slot_s=boundaries[1] - boundaries[0], max_slots=num_slots
    )
    first = EpochSession(
        problem.sites, now=problem.now, jobs=problem.jobs[:-1], options=options, isolated=False
    )
    first.decide(problem.now, 2.0 * limit_s)
    before, now = first.snapshot(), boundaries[1]
    for name, event in events_on(problem, now):
        session = EpochSession.from_snapshot(before, isolated=False)
        begin = time.process_time()
        session.update([event])
        update_s = time.process_time() - begin
        known = session.snapshot()
        blank = {**known, "plan": None, "prices": None, "bound": None, "settled": False}
        scratch = decided(blank, now, limit_s)
        warm = {share: decided(known, now, share * limit_s) for share in SHARES}
        gap = scratch["bound"] - scratch["value"]
        slack = _SLACK * max(1.0, scratch["bound"])
        as_good = [
            found["cpu_s"]
            for found in warm.values()
            if found["value"] >= scratch["value"] - slack
            and found["bound"] - found["value"] <= gap + slack
        ]
        yield {
            "size": f"{num_jobs}x{num_slots}",
            "event": name,
            "update_ms": 1e3 * update_s,
            "scratch": scratch,
            "incremental": {str(share): found for share, found in warm.items()},
            "ratio": as_good[0] / scratch["cpu_s"] if as_good else None,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=["100x48", "300x96", "1000x96"])
    parser.add_argument("--limit", type=float, default=2.0, help="wall seconds from scratch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file for the rows")
    options = parser.parse_args(arguments)
    titles = "  ".join(f"{f'{share:g} of it':>18}" for share in SHARES)
    print(f"{'size':<8} {'event':<15} {'update ms':>9}  {'from scratch':>18}  {titles}  ratio")
    found = []
    for size in options.sizes:
        num_jobs, num_slots = map(int, size.split("x"))
        for row in rows(num_jobs, num_slots, options.limit, options.seed):
            found.append(row)
            told = (
                "{value:g}/{bound:g} {cpu_s:.2f} s".format(**decision)
                for decision in (row["scratch"], *row["incremental"].values())
            )
            cells = "  ".join(f"{text:>18}" for text in told)
            ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
            print(
                f"{row['size']:<8} {row['event']:<15} {row['update_ms']:>9.2f}  {cells}  {ratio:>5}",
                flush=True,
            )
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
