"""Run the targets of the package, its solvers and its peers side by side on the same instances.

    python -m benchmarks.targets                        # all, 3 seeds: about an hour and a half
    python -m benchmarks.targets --only 300x96 --only 1000x96 --seeds 1 --json runs.jsonl
    python -m benchmarks.targets --only 1000x96 --loads 1.6 --solvers auto price highs
    python -m benchmarks.targets --sizes 500x48 --losses --seeds 5 --solvers price dual
    python -m benchmarks.targets --quick                # a look in seconds

Every run has a process of its own. The exit code is 1 where a bound is below a value that any
solver found on the same instance, or where a run failed; Ctrl-C prints what there is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.contenders import CONTENDERS, SIDE_BY_SIDE
from benchmarks.criteria import Judgement, gap_at_most
from benchmarks.instances import Instance
from benchmarks.records import Record, false_bounds
from benchmarks.registry import QUICK, TARGETS, Target
from benchmarks.report import runs_table, targets_table
from benchmarks.tasks import AFTER_ARRIVAL, run_task
from benchmarks.worker import run_apart


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the options ask for and print it; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        for target in TARGETS.values():
            print(f"{target.name:<17} {target.criterion.what}, {', '.join(target.contenders)}")
        return 0
    records: list[Record] = []
    judged: list[tuple[Target, Judgement, str]] = []
    interrupted = False
    with ExitStack() as stack:
        file = None
        if options.json is not None:
            file = stack.enter_context(options.json.open("a", encoding="utf-8"))
        for target in _chosen(options):
            mine: list[Record] = []
            try:
                for record in _runs(target, options):
                    mine.append(record)
                    if file is not None:
                        print(record.line(), file=file, flush=True)
                    print(_in_words(record), file=sys.stderr, flush=True)
            except KeyboardInterrupt:
                interrupted = True
            if mine:
                print(runs_table(target, mine), end="\n\n", flush=True)
                records += mine
            subject = [record for record in mine if record.solver == target.subject]
            if subject:
                averages = [record.load_average for record in subject]
                busy = f"{min(averages):.1f} to {max(averages):.1f}"
                judged.append((target, target.criterion.judge(subject), busy))
            if interrupted:
                break
    if judged:
        print(targets_table(judged))
    for record in records:
        if record.late:
            print(f"LATE by {record.overshoot_s:.2f} s: {_in_words(record)}")
    faults = list(_faults(records))
    for fault in faults:
        print(fault)
    if interrupted:
        return 130
    return 1 if faults else 0


def _runs(target: Target, options: argparse.Namespace) -> Iterator[Record]:
    """Run a target: each instance with all contenders in turn, so that they see the same machine."""
    run = run_task if options.quick else run_apart
    limit_s = target.limit_s * options.limit_scale
    for instance in target.instances(options.seeds, options.loads):
        for solver in target.contenders:
            if not options.solvers or solver in options.solvers:
                yield run(target.task, target.name, instance, solver, limit_s, cold=options.cold)


def _faults(records: Sequence[Record]) -> Iterator[str]:
    yield from false_bounds(records)
    for record in records:
        if record.status == "failed":
            yield f"FAILED: {record.solver} ON {dict(record.instance)}: {record.note}"


def _in_words(record: Record) -> str:
    value = "-" if record.value is None else f"{record.value:g}"
    bound = "-" if record.bound is None else f"{record.bound:g}"
    instance = Instance(**record.instance)
    return (
        f"{record.target}  {instance.name}  {record.solver}: {record.status}, {value} of {bound} "
        f"in {record.seconds:.2f} s"
    )


def _chosen(options: argparse.Namespace) -> list[Target]:
    """Return the targets that the options name, or those that they describe."""
    if options.sizes:
        return [
            Target(
                name=f"{num_jobs}x{num_slots}",
                size=Instance(
                    num_jobs=num_jobs,
                    num_slots=num_slots,
                    most_weight=5 if options.weighted else 1,
                    moldable_share=options.moldable,
                    restart_s=30.0 if options.losses else 0.0,
                    migration_s=180.0 if options.losses else 0.0,
                ),
                limit_s=options.limit,
                criterion=gap_at_most(0.3, grain=1.0),
                beside=tuple(CONTENDERS) if options.solvers else SIDE_BY_SIDE,
            )
            for num_jobs, num_slots in options.sizes
        ]
    registry = QUICK if options.quick else TARGETS
    return [target for name, target in registry.items() if not options.only or name in options.only]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.targets",
        description="Run the targets, own solvers and peers side by side.",
    )
    parser.add_argument("--list", action="store_true", help="the names of the targets")
    parser.add_argument(
        "--only",
        action="append",
        choices=tuple(TARGETS),
        metavar="NAME",
        help="a target; repeatable",
    )
    parser.add_argument("--seeds", type=_at_least_one, default=3, help="instances of each load")
    parser.add_argument("--loads", type=float, nargs="+", help="of those of the target")
    parser.add_argument(
        "--solvers", nargs="+", choices=(*CONTENDERS, *AFTER_ARRIVAL, "greedy", "edgeflow-select"),
        metavar="NAME", help="of those of the target",
    )  # fmt: skip
    parser.add_argument("--limit-scale", type=_positive, default=1.0, help="times the limits")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append a line for every run")
    parser.add_argument("--quick", action="store_true", help="tiny instances, in one process")
    parser.add_argument("--cold", action="store_true", help="load kernels on the clock of the run")
    other = parser.add_argument_group("other instances than those of the targets")
    other.add_argument("--sizes", type=_size, nargs="+", metavar="JOBSxSLOTS")
    other.add_argument("--limit", type=_positive, default=5.0, help="seconds")
    other.add_argument("--losses", action="store_true", help="restart 30 s, migration 180 s")
    other.add_argument("--weighted", action="store_true", help="weights 1 to 5 instead of 1")
    other.add_argument("--moldable", type=float, default=0.0, help="share of moldable jobs")
    return parser


def _size(text: str) -> tuple[int, int]:
    num_jobs, _, num_slots = text.partition("x")
    return _at_least_one(num_jobs), _at_least_one(num_slots)


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be above 0, got {text}")
    return number


if __name__ == "__main__":
    sys.exit(main())
