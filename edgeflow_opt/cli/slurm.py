"""``edgeflow slurm``: jobs of Slurm placed, resized and moved as an epoch session decides."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeflow_opt.cli.options import names_of, positive, whole
from edgeflow_opt.errors import EventError, UsageError

if TYPE_CHECKING:
    from edgeflow_opt.adapters.slurm import SlurmCluster
    from edgeflow_opt.service import EpochSession, SessionDecision, SessionOptions


def slurm(
    partitions: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Partitions, with commas: NAME=cloud counts GPUs, NAME=edge counts nodes, each for "
            "one job at a time; a plain NAME is of the kind edge where it begins with that word.",
        ),
    ],
    time_limit: Annotated[float, positive("--time-limit", "Seconds a decision.")] = 1.0,
    interval: Annotated[float, positive("--interval", "Seconds between looks at Slurm.")] = 10.0,
    slot: Annotated[float, positive("--slot", "Length of the first slots of a plan.")] = 60.0,
    max_slots: Annotated[int, whole("--max-slots", "Most slots of a plan.", 1, 10_000)] = 96,
    solvers: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Solvers above edgeflow-select, the quickest first; 'none' = none.",
        ),
    ] = None,
    follow_: Annotated[
        str,
        typer.Option(
            "--follow",
            metavar="plan|select",
            help="plan: the best plan of a solver, however late it begins; select: solvers choose "
            "the jobs to be met, and the heuristic begins them early.",
        ),
    ] = "select",
    patience: Annotated[
        float, positive("--patience", "Longest wait for jobs to stop, and for jobs to start.")
    ] = 60.0,
    margin: Annotated[
        float,
        typer.Option(
            metavar="S",
            min=0.0,
            help="Aim so many seconds before each deadline, for what Slurm takes to start jobs.",
        ),
    ] = 0.0,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep there what is known, and go on from it after a restart."
        ),
    ] = None,
    programs: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where squeue and scontrol are; default: PATH."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Take one turn, and end.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and leave Slurm alone.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One line of JSON for each turn.")
    ] = False,
) -> None:
    """Place, resize and move held jobs of Slurm, so that they meet their deadlines.

    Takes the jobs whose comment describes them (work, and a rate for each partition and number of
    GPUs), submitted with sbatch --hold; others are never touched. Needs the rights of an operator.

    Ctrl-C or SIGTERM ends it after the turn under way; jobs go on as they are, and what waits stays
    held.
    """
    from edgeflow_opt.adapters import advance, follow
    from edgeflow_opt.adapters.slurm import SlurmCluster, SlurmPrograms
    from edgeflow_opt.service import SessionOptions

    rungs = SessionOptions().rungs if solvers is None else _rungs(solvers)
    options = SessionOptions(rungs=rungs, slot_s=slot, max_slots=max_slots, follow=follow_)
    kinds = _kinds(partitions)
    say = _Speaker(as_json)
    cluster = SlurmCluster(
        kinds,
        programs=SlurmPrograms(programs),
        patience_s=patience,
        margin_s=margin,
        dry_run=dry_run,
        on_trouble=say.trouble,
    )
    with _session(cluster, options, state) as session:
        # Where the solvers are not loaded yet the first decision would do without them.
        session.wait_ready()

        def decided(decision: SessionDecision) -> None:
            if state is not None:
                _write(state, session)
            say.decision(decision)

        if once:
            decided(advance(cluster, session, time_limit_s=time_limit))
            return
        stop = threading.Event()

        def turn() -> None:
            follow(
                cluster,
                session,
                time_limit_s=time_limit,
                interval_s=interval,
                stop=stop,
                on_decision=decided,
                on_error=lambda error: say.trouble(str(error)),
            )

        _until_interrupted(turn, stop)


def _until_interrupted(work: Callable[[], None], stop: threading.Event) -> None:
    """Run `work` in a thread, which Ctrl-C does not break off but asks to end."""
    with ThreadPoolExecutor(1, "edgeflow-slurm") as pool:
        future = pool.submit(work)
        try:
            future.result()
        except KeyboardInterrupt:
            stop.set()
            future.result()
            raise


def _kinds(text: str) -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    for part in names_of(text, "--partitions"):
        name, equals, kind = part.partition("=")
        kind = kind if equals else "edge" if name.startswith("edge") else "cloud"
        if not name or kind not in ("cloud", "edge"):
            rule = "must be NAME, NAME=cloud or NAME=edge, with commas between them"
            raise UsageError(f"option --partitions: {rule}, got {part!r}")
        if name in kinds:
            raise UsageError(f"option --partitions: '{name}' is named twice; name it once")
        kinds[name] = kind
    return kinds


def _rungs(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(names_of(text, "--solvers"))


def _session(cluster: SlurmCluster, options: SessionOptions, state: Path | None) -> EpochSession:
    """Return a session that begins anew, or where the one of the file ended."""
    from edgeflow_opt.cli.options import check_output
    from edgeflow_opt.problem.files import read_bytes
    from edgeflow_opt.problem.parsing import parse_json
    from edgeflow_opt.service import EpochSession

    check_output(state)
    sites = cluster.sites()
    if state is None or not state.exists():
        return EpochSession(sites, now=cluster.now(), options=options)
    document = parse_json(read_bytes(state, EventError), str(state), EventError)
    if isinstance(document, dict):
        document["options"] = {
            "rungs": list(options.rungs),
            "slot_s": options.slot_s,
            "max_slots": options.max_slots,
            "follow": options.follow,
        }
    session = EpochSession.from_snapshot(document, source=str(state))
    found = [(site.name, site.kind) for site in session.view.sites.values()]
    if found != [(site.name, site.kind) for site in sites]:
        session.close()
        shown = ",".join(f"{name}={kind}" for name, kind in found)
        raise UsageError(
            f"state '{state}': is of the partitions {shown}; name those, or another file"
        )
    return session


def _write(state: Path, session: EpochSession) -> None:
    from edgeflow_opt.cli.console import json_text
    from edgeflow_opt.problem.files import write_text

    write_text(state, json_text(session.snapshot()))


class _Speaker:
    """Says on stdout what happens, line by line."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def trouble(self, message: str) -> None:
        self._say({"event": "trouble", "time": time.time(), "message": message}, message)

    def decision(self, decision: SessionDecision) -> None:
        document = decision.document()
        # The look-ahead plan would make a line of each slot.
        del document["schedule"], document["format"]
        changes = [
            f"{change.kind} {change.job}"
            + ("" if change.after is None else f" on {change.after.gpus} of {change.after.site}")
            for change in decision.changes
        ]
        jobs = len(decision.problem.jobs)
        text = (
            f"{jobs} job{'s' * (jobs != 1)}, {len(decision.allocation)} run; value "
            f"{decision.value:g} of {'?' if decision.bound is None else f'{decision.bound:g}'} "
            f"({decision.rung}, {decision.seconds:.2f} s)"
        )
        self._say(
            {"event": "decision", "time": time.time(), **document}, "; ".join([text, *changes])
        )

    def _say(self, document: dict[str, Any], text: str) -> None:
        import msgspec

        from edgeflow_opt.cli.console import printable

        if self._as_json:
            sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
        else:
            sys.stdout.write(f"{time.strftime('%H:%M:%S')} {printable(text)}\n")
        sys.stdout.flush()
