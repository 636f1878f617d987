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
        """Start jobs that wait, the largest first; return those that do not run."""
        self._let_settle(starts)
        # What has ended or begun by now is none of them any more, as the next look tells.
        jobs = read_queue(self._programs, self._kinds)
        starts = {n: mode for n, mode in starts.items() if n in jobs and jobs[n].pending}
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
                        self.lift_limit(job)
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
            limit_s = 60.0 * (job.time_limit_min or 0.0)
            if time.time() + limit_s > job.deadline:
                # It deletes those that cannot use up their limit as well.
                settings.append("TimeLimit=UNLIMITED")
        what, number = "started", str(job.id)
        return self._told(job.id, what, "update", f"JobId={number}", *settings) and self._told(
            job.id, what, "release", number
        )

    def lift_limit(self, job: SlurmJob) -> None:
        """Give a job all the time to its deadline where Slurm, not its owner, limits it.

        At the start of a job without a limit Slurm makes one of the whole minutes to its deadline,
        which kills it up to one minute early, and which stays when it is stopped.
        """
        deadline, start, limit_min = job.deadline, job.start, job.time_limit_min
        if deadline is None or start is None or limit_min is None or not job.running:
            return
        if -2.0 < deadline - start - 60.0 * limit_min < 62.0:
            self._told(job.id, "given its time", "update", f"JobId={job.id}", "TimeLimit=UNLIMITED")

    def _looks(self, needed: bool) -> Iterator[dict[int, SlurmJob]]:
        """Yield the queue again and again until the patience is at its end."""
        end = time.monotonic() + self._patience_s
        while needed:
            yield read_queue(self._programs, self._kinds)
            if time.monotonic() >= end:
                return
            time.sleep(self._poll_s)
