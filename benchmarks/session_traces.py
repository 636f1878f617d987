"""Whole traces driven through an epoch session, beside the online policies of the simulator.

    python -m benchmarks.session_traces --seeds 4 --loads 1.5 2 3 --json rows.json

The simulator tells the session what happens, event by event, and carries out what it decides; so
what is compared is the decisions alone. The session has as long for a decision as the policy
``exact``. All solve in this process, by the solver ``price``.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgeflow_opt.policies.base import ClusterState, Decision
    from edgeflow_opt.problem import Site
    from edgeflow_opt.service import EpochSession, Event, SessionOptions


class SessionPolicy:
    """An online policy that asks a session.

    Parameters
    ----------
    options
        Of the session.
    time_limit_s
        Wall seconds for a decision.
    """

    def __init__(self, options: SessionOptions, time_limit_s: float) -> None:
        self._options = options
        self._time_limit_s = time_limit_s
        self._session: EpochSession | None = None
        self._sites: dict[str, Site] = {}

    def decide(self, state: ClusterState) -> Decision:
        """Tell the session what has happened, and return what it decides."""
        from edgeflow_opt.policies.base import Decision
        from edgeflow_opt.service import EpochSession

        if self._session is None:
            self._session = EpochSession(
                state.sites, now=state.now, options=self._options, isolated=False
            )
            self._sites = {site.name: site for site in state.sites}
        session = self._session
        session.update(self._events(state, session))
        decision = session.decide(state.now, self._time_limit_s)
        later = decision.until if decision.until < decision.problem.grid.end else None
        return Decision(allocation=decision.allocation, wake_up=later)

    def _events(self, state: ClusterState, session: EpochSession) -> list[Event]:
        """Return what the session does not know yet."""
        from edgeflow_opt.service import CapacityChanged, JobArrived, JobCompleted, JobProgressed

        now, known = state.now, session.view.jobs
        seen = {job_state.job.id: job_state for job_state in state.jobs}
        events: list[Event] = [
            JobCompleted(time=now, job=name) for name in known if name not in seen
        ]
        for site in state.sites:
            if site.capacity != self._sites[site.name].capacity:
                events.append(CapacityChanged(time=now, site=site.name, capacity=site.capacity))
                self._sites[site.name] = site
        for name, job_state in seen.items():
            if name not in known:
                events.append(JobArrived(time=now, job=job_state.job))
                continue
            # Where it is late by the reckoning of the session, which leaves it a little.
            reckoned = known[name].left_at(now)
            if abs(reckoned - job_state.required_left) > 1e-6 * job_state.job.work:
                left = job_state.required_left / (1.0 - 1e-6)
                events.append(JobProgressed(time=now, job=name, work_left=left))
        return events


def rows(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the jobs met by every contender on every trace."""
    from edgeflow_opt.policies import make_policy
    from edgeflow_opt.service import SessionOptions
    from edgeflow_opt.simulation import simulate
    from edgeflow_opt.workloads import cluster, generate_trace

    limit_s = options.time_limit
    shared = {"slot_s": 60.0, "max_slots": options.max_slots}
    floor = SessionOptions(rungs=(), **shared)
    plan = SessionOptions(rungs=("price",), follow="plan", **shared)
    chosen = SessionOptions(rungs=("price",), follow="select", **shared)
    exact = {"time_limit_s": limit_s, "max_slots": options.max_slots}
    contenders: dict[str, Any] = {
        "edgeflow-select": lambda: make_policy("edgeflow-select"),
        "exact": lambda: make_policy("exact", **exact),
        "session, floor": lambda: SessionPolicy(floor, limit_s),
        "session, plan": lambda: SessionPolicy(plan, limit_s),
        "session, select": lambda: SessionPolicy(chosen, limit_s),
    }
    found = []
    for load in options.loads:
        for seed in range(options.seeds):
            trace = generate_trace(options.jobs, seed)
            trace = trace.scale_arrivals(trace.arrival_load(options.cloud_gpus) / load)
            sites = cluster(
                options.cloud_gpus, options.edge_servers, start_s=trace.start, end_s=trace.end
            )
            row: dict[str, Any] = {"load": load, "seed": seed, "jobs": options.jobs, "met": {}}
            for name, make in contenders.items():
                result = simulate(trace.jobs(), sites, make(), name=name, overhead=options.overhead)
                row["met"][name] = result.metrics.met
            found.append(row)
            print(json.dumps(row), file=sys.stderr, flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--loads", type=float, nargs="+", default=[1.5, 2.0, 3.0])
    parser.add_argument("--cloud-gpus", type=int, default=16)
    parser.add_argument("--edge-servers", type=int, default=4)
    parser.add_argument("--max-slots", type=int, default=48)
    parser.add_argument("--overhead", default="none", help="as for edgeflow simulate")
    parser.add_argument("--time-limit", type=float, default=0.2, help="of a decision, wall seconds")
    parser.add_argument("--json", help="file for the rows")
    options = parser.parse_args(arguments)
    found = rows(options)
    names = list(found[0]["met"])
    print(f"{'load':>6}  " + "  ".join(f"{name:>16}" for name in names))
    for load in (*options.loads, None):
        mine = [row for row in found if load in (None, row["load"])]
        sums = [sum(row["met"][name] for row in mine) for name in names]
        label = "all" if load is None else f"{load:g}"
        print(f"{label:>6}  " + "  ".join(f"{met:>16}" for met in sums))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
