"""Simulations under several policies, and their results for people."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeflow_opt.cli import failures
from edgeflow_opt.errors import EdgeflowError

if TYPE_CHECKING:
    from types import FrameType

    from rich.table import Table

    from edgeflow_opt.problem import Job, Site
    from edgeflow_opt.simulation import EventRecord, Overhead, SimulationResult
    from edgeflow_opt.workloads import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFailure:
    """A policy that did not come to the end of the trace.

    Parameters
    ----------
    policy
        Its name.
    message
        Why.
    exit_code
        Exit code that it stands for.
    """

    policy: str
    message: str
    exit_code: int

    def document(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {"policy": self.policy, "message": self.message}


def run_policies(
    jobs: Sequence[Job],
    sites: Sequence[Site],
    policies: Mapping[str, Mapping[str, Any]],
    *,
    overhead: Overhead,
    merge_s: float = 0.0,
    quiet: bool = False,
) -> tuple[list[SimulationResult], list[PolicyFailure]]:
    """Simulate under each policy in turn; one that fails does not keep the others from running.

    Parameters
    ----------
    jobs, sites, overhead, merge_s
        As in :func:`edgeflow_opt.simulation.simulate`.
    policies
        Options by name of policy.
    quiet
        No progress on stderr.

    Returns
    -------
    results
        Of the policies that came to the end.
    faults
        Of the others. Ctrl-C ends the policy that runs and leaves out those after it.
    """
    from edgeflow_opt.cli.console import stdout_kept_pure
    from edgeflow_opt.cli.progress import events_of
    from edgeflow_opt.policies import make_policy
    from edgeflow_opt.simulation import simulate

    results: list[SimulationResult] = []
    faults: list[PolicyFailure] = []
    for name, options in policies.items():
        try:
            with (
                stdout_kept_pure(),
                events_of(name, len(jobs), quiet) as on_event,
                interrupts_kept() as interrupted,
            ):
                results.append(
                    simulate(
                        jobs,
                        sites,
                        make_policy(name, **options),
                        overhead=overhead,
                        merge_s=merge_s,
                        name=name,
                        on_event=_stopping(on_event, interrupted),
                    )
                )
        except EdgeflowError as error:
            faults.append(PolicyFailure(policy=name, message=str(error), exit_code=error.exit_code))
        except KeyboardInterrupt:
            faults.append(
                PolicyFailure(
                    policy=name, message="interrupted", exit_code=failures.EXIT_INTERRUPTED
                )
            )
            break
    return results, faults


@contextlib.contextmanager
def interrupts_kept() -> Iterator[threading.Event]:
    """Remember Ctrl-C: a solve within a decision would take it for its own and go on.

    Yields
    ------
    interrupted
        Set by Ctrl-C, which also raises KeyboardInterrupt as always.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def remember(number: int, frame: FrameType | None) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _stopping(
    on_event: Callable[[EventRecord], None] | None, interrupted: threading.Event
) -> Callable[[EventRecord], None]:
    """Return `on_event`, ending the simulation if there was a Ctrl-C since."""

    def take(record: EventRecord) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        if on_event is not None:
            on_event(record)

    return take


def load_line(trace: Trace, settings: Mapping[str, Any]) -> str:
    """Return what was simulated, with its load, in one line: differences need overload."""
    from edgeflow_opt.cli.console import number, printable

    skipped = f", {trace.skipped} bad rows skipped" if trace.skipped else ""
    return printable(
        f"{trace.name}: {len(trace)} jobs{skipped} on {settings['cloud_gpus']} cloud GPUs and "
        f"{settings['edge_servers']} edge servers (tide {settings['tide']}), offered load "
        f"{number(settings['offered_load'], 2)}, overhead {settings['overhead']}"
    )


def results_table(results: Sequence[SimulationResult], title: str | None = None) -> Table:
    """Return the results for people."""
    from edgeflow_opt.cli.console import number, percent, printable, table

    made = table(
        "policy", "met", "DSR", "late", "refused", "unfin.", "cloud", "edge", "reconf.",
        "migr.", "events", "ms",
        title=title, left=("policy",),
    )  # fmt: skip
    for result in results:
        m = result.metrics
        made.add_row(
            printable(result.policy),
            f"{m.met} / {m.jobs}",
            "-" if m.dsr is None else f"{m.dsr:.3f}",
            number(m.late),
            number(m.refused),
            number(m.unfinished),
            percent(m.cloud_utilisation),
            percent(m.edge_utilisation),
            "-" if m.reconfigurations_per_job is None else f"{m.reconfigurations_per_job:.1f}",
            "-" if m.migrations_per_job is None else f"{m.migrations_per_job:.1f}",
            number(m.events),
            number(1000 * m.decision_s.mean, 3),
        )
    made.caption = (
        "cloud, edge: utilisation; reconf., migr.: per job; ms: mean wall time of a decision"
    )
    made.caption_justify = "left"
    return made
