"""How Slurm is told to stop, shrink and start jobs, and waited for."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping

from edgeflow_opt.adapters.base import AdapterError
from edgeflow_opt.adapters.slurm.description import may_shrink
from edgeflow_opt.adapters.slurm.nodes import Place, place, read_nodes
from edgeflow_opt.adapters.slurm.programs import SlurmPrograms
from edgeflow_opt.adapters.slurm.queue import SlurmJob, read_queue
from edgeflow_opt.problem import Mode
from edgeflow_opt.problem.data import SiteKind

#: Slurm gives a job without a limit one of a year when it starts, minutes.
_NO_LIMIT_MIN = 365 * 24 * 60

#: The daemon of a node refuses a job that comes back within the second in which it was taken away,
#: and Slurm then ends the job as failed.
_SETTLING_S = 2.0


class Orders:
    """Orders for single jobs; what fails is told, and is no exception.

    Parameters
    ----------
    programs
        How Slurm is called.
    kinds
        Kind of the site for each partition.
    patience_s, poll_s
        Longest wait for jobs to stop or to start, and between two looks meanwhile, wall seconds.
    trouble
        Called with a message where a job does not do what it was told.
    """

    def __init__(
        self,
        programs: SlurmPrograms,
        kinds: Mapping[str, SiteKind],
        patience_s: float,
        poll_s: float,
        trouble: Callable[[str], None],
    ) -> None:
        self._programs = programs
        self._kinds = kinds
        self._patience_s = patience_s
        self._poll_s = poll_s
        self._trouble = trouble
        #: When jobs were last seen to be off their nodes, monotonic seconds.
        self._stopped: dict[int, float] = {}

    def shrink(self, job: SlurmJob, mode: Mode, target: Mode | None) -> bool:
        """Take nodes from a running job where it survives that and fewer of them make its new mode."""
        if target is None or target.site != mode.site or not may_shrink(job):
            return False
        each, rest = divmod(job.gpus, job.node_count)
        if rest or target.gpus >= mode.gpus or target.gpus % each:
            return False
        # Slurm leaves scripts for the shell of the job's owner in the current folder.
        with tempfile.TemporaryDirectory() as folder:
            try:
                self._programs.run(
                    "scontrol", "update", f"JobId={job.id}", f"NumNodes={target.gpus // each}",
                    folder=folder,
                )  # fmt: skip
            except AdapterError as problem:
                self._trouble(f"job {job.id} could not be shrunk: {problem}")
                return False
        return True

    def stop(self, number: int) -> bool:
        """Have a running job stopped and held; return whether Slurm does so."""
        return self._told(number, "stopped", "requeuehold", str(number))

    def hold(self, number: int) -> bool:
        """Keep Slurm from starting a waiting job by itself; return whether it does so."""
        return self._told(number, "held", "hold", str(number))

    def _told(self, number: int, what: str, *order: str) -> bool:
        """Give an order for one job; return whether Slurm took it."""
        try:
            self._programs.run("scontrol", *order)
        except AdapterError as problem:
            self._trouble(f"job {number} could not be {what}: {problem}")
            return False
        return True

    def wait_for_stops(self, stopping: set[int]) -> set[int]:
        """Wait until jobs are off their nodes; return those that are not."""
        waiting = set(stopping)
        for number in stopping:
            self._stopped.pop(number, None)
        for jobs in self._looks(bool(waiting)):
            waiting = {n for n in waiting if n in jobs and not (jobs[n].pending or jobs[n].ended)}
            self._stopped |= dict.fromkeys(
                stopping - waiting - set(self._stopped), time.monotonic()
            )
            if not waiting:
                break
        for number in waiting:
            self._trouble(f"job {number} did not stop within {self._patience_s:g} s")
        return waiting

    def start(self, starts: Mapping[int, Mode], submitted: Mapping[int, SlurmJob]) -> set[int]:
        """Start jobs, the largest first; return those that do not run."""
        self._let_settle(starts)
        nodes = {node.name: node for node in read_nodes(self._programs)}
        failed: set[int] = set()
        waiting: set[int] = set()
        for number, mode in sorted(starts.items(), key=lambda item: -item[1].gpus):
            own = [node for node in nodes.values() if mode.site in node.partitions]
            where = place(self._kinds[mode.site], mode.gpus, own)
            if where is None:
                self._trouble(
                    f"job {number} could not be started: no nodes of '{mode.site}' have {mode.gpus} "
                    "free GPUs, as many on each"
                )
                failed.add(number)
                continue
            if not self._released(submitted[number], mode, where):
                failed.add(number)
                continue
            waiting.add(number)
            for name in where.nodes:
                used = nodes[name].used + where.gpus_per_node
                nodes[name] = dataclasses.replace(nodes[name], used=used)
        for jobs in self._looks(bool(waiting)):
            for number in tuple(waiting):
                job = jobs.get(number)
                if job is None or not job.pending:
                    waiting.discard(number)
                    if job is not None:
                        self._lift_limit(submitted[number], job)
                elif job.held:
                    # Slurm holds anew what it finds that it can never start.
                    waiting.discard(number)
                    failed.add(number)
                    self._trouble(f"job {number} could not be started: {job.reason}")
            if not waiting:
                break
        failed |= waiting
        for number in waiting:
            self._trouble(f"job {number} did not start within {self._patience_s:g} s")
            with contextlib.suppress(AdapterError):
                # It fails where the job has just started after all; the next look tells.
                self._programs.run("scontrol", "hold", str(number))
        return failed

    def _let_settle(self, starts: Mapping[int, Mode]) -> None:
        """Wait until those of the jobs that were stopped have been off their nodes long enough."""
        now = time.monotonic()
        seen = [self._stopped.pop(number, now - _SETTLING_S) for number in starts]
        time.sleep(max(0.0, max(seen) + _SETTLING_S - now))
        # Of others it is known by now that they were stopped long ago.
        self._stopped = {n: at for n, at in self._stopped.items() if now < at + _SETTLING_S}

    def _released(self, job: SlurmJob, mode: Mode, where: Place) -> bool:
        """Tell Slurm to start a held job on nodes; return whether it took that."""
        count = len(where.nodes)
        tasks = count * job.tasks_per_node
        settings = [
            f"Partition={mode.site}",
            f"NumNodes={count}-{count}",
            f"NumTasks={tasks}",
            f"NumCPUs={tasks * job.cpus_per_task}",
            # Slurm turns it into the words of its version: gres:gpu:2, gres/gpu:2.
            f"Gres=gpu:{where.gpus_per_node}",
            f"ReqNodeList={','.join(where.nodes)}",
            "StartTime=now",
        ]
        if job.deadline is not None:
            # Without a limit Slurm takes a minute for the least time of a job, and deletes jobs that
            # would begin in the last minute before their deadlines.
            settings.append("TimeMin=0")
            limit_min = job.time_limit_min
            if limit_min is not None and limit_min >= _NO_LIMIT_MIN:
                settings.append("TimeLimit=UNLIMITED")
            elif limit_min is not None:
                # It deletes those that cannot use up their limit as well.
                left_min = int((job.deadline - time.time()) / 60.0)
                if left_min < 1:
                    self._trouble(
                        f"job {job.id} could not be started: Slurm would delete it, since it has a "
                        "--time and less than a minute to its --deadline"
                    )
                    return False
                settings.append(f"TimeLimit={min(left_min, int(limit_min))}")
        what, number = "started", str(job.id)
        return self._told(job.id, what, "update", f"JobId={number}", *settings) and self._told(
            job.id, what, "release", number
        )

    def _lift_limit(self, submitted: SlurmJob, started: SlurmJob) -> None:
        """Give a job without a time limit all of its time again.

        Slurm's backfill gives it one at its start: whole minutes, so up to one less than there is to
        its deadline.
        """
        limit_min = submitted.time_limit_min
        limited = limit_min is not None and limit_min < _NO_LIMIT_MIN
        if submitted.deadline is None or limited or not started.running:
            return
        if started.time_limit_min is not None:
            self._told(
                started.id, "given its time", "update", f"JobId={started.id}", "TimeLimit=UNLIMITED"
            )

    def _looks(self, needed: bool) -> Iterator[dict[int, SlurmJob]]:
        """Yield the queue again and again until the patience is at its end."""
        end = time.monotonic() + self._patience_s
        while needed:
            yield read_queue(self._programs, self._kinds)
            if time.monotonic() >= end:
                return
            time.sleep(self._poll_s)
