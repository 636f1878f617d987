"""Branch and price: which jobs are met is decided by branching, how by the plans.

A node is bounded by column generation, from the prices of its parent, and empty once the Lagrangian
bound is below the next attainable value; with the job costs behind that bound, further jobs are
fixed. Otherwise the job that the relaxation meets nearest to one half is branched on. Where whole
jobs are met by shares of plans, an integer program over the plans known so far looks for a schedule
of these jobs; if there is none among them, a job that holds a mode in a slot by a share does so in
one child and not in the other, which the pricing by labels can tell (moldable jobs, priced by run,
cannot: such a node stays open, and its bound with it).

The node with the highest bound comes first, rounded down to what can be reached; of equals the
deepest.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.plan.branch import Branch
from edgeflow_opt.solvers.price.fixing import fixings

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem.arrays import BoolArray, ProblemArrays
    from edgeflow_opt.solvers.plan.generation import Generation, NodeAnswer
    from edgeflow_opt.solvers.plan.relaxation import Relaxed
    from edgeflow_opt.solvers.price.dual import DualResult

#: Shares nearer to a whole number than this are whole.
_WHOLE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """A part of the schedules, and the best dual known of it."""

    branch: Branch
    dual: DualResult
    depth: int


class PlanTree:
    """The search tree of one instance.

    Parameters
    ----------
    arrays
        The instance.
    generation
        Its plans and their pricing.
    root
        A dual of the whole instance.
    value, aim
        Return the value of the incumbent, and the least value that is better.
    rounded
        Returns a bound rounded down to what can be reached.
    take
        Offers a solution of the relaxation in whole jobs; it looks for a schedule of the jobs of
        the node among the plans known.
    """

    def __init__(
        self,
        arrays: ProblemArrays,
        generation: Generation,
        root: DualResult,
        *,
        value: Callable[[], float],
        aim: Callable[[], float],
        rounded: Callable[[float], float],
        take: Callable[[Relaxed, BoolArray], bool],
    ) -> None:
        self._arrays, self._generation = arrays, generation
        self._value, self._aim, self._rounded, self._take = value, aim, rounded, take
        self._order = itertools.count()
        self._queue: list[tuple[tuple[float, int, int], _Node]] = []
        self._left_open = -np.inf
        self.nodes = 0
        """Nodes bounded so far."""
        self.open_nodes = 0
        """Nodes left open for want of a way to branch."""
        self._push(_Node(Branch.root(generation.data), root, 0))

    @property
    def bound(self) -> float:
        """Proven bound on what is not in the incumbent: that of the nodes left, -inf = none left."""
        waiting = max((node.dual.bound for _, node in self._queue), default=-np.inf)
        return max(self._left_open, waiting)

    @property
    def done(self) -> bool:
        """Whether no node waits."""
        return not self._queue

    def step(self) -> None:
        """Bound the next node and branch on it; a node that was stopped goes back."""
        _, node = heapq.heappop(self._queue)
        aim = self._aim()
        if node.dual.bound < aim:
            return
        try:
            answer = self._generation.node(node.dual, node.branch, aim)
        except BaseException:
            # Ctrl-C: the node is still open.
            self._push(node)
            raise
        self.nodes += 1
        relaxed = answer.relaxed
        if answer.dual.bound < aim:
            return
        if relaxed is None or not (answer.converged or relaxed.value >= aim - 1e-6):
            # Time is up.
            self._push(_Node(node.branch, answer.dual, node.depth))
            return
        self._branch(node, answer, relaxed)

    def _branch(self, node: _Node, answer: NodeAnswer, relaxed: Relaxed) -> None:
        branch = self._fixed(node.branch, answer.dual)
        given = branch.met | branch.unmet
        distance = np.where(given, 0.5, np.abs(relaxed.met - 0.5))
        job = int(np.argmin(distance))
        if distance[job] < 0.5 - _WHOLE:
            chosen = np.arange(len(given)) == job
            nobody = np.zeros_like(chosen)
            children = (branch.fixing(nobody, chosen), branch.fixing(chosen, nobody))
        else:
            wanted = (relaxed.met > 0.5) & ~branch.unmet
            if self._take(relaxed, wanted) and answer.dual.bound < self._aim():
                return
            split = self._most_divided(relaxed)
            if split is None:
                self.open_nodes += 1
                self._left_open = max(self._left_open, answer.dual.bound)
                return
            job, slot, mode = split
            children = (
                branch.without(slot, mode),
                branch.holding(self._generation.data, job, slot, mode),
            )
        for child in children:
            self._push(_Node(child, answer.dual, node.depth + 1))

    def _most_divided(self, relaxed: Relaxed) -> tuple[int, int, int] | None:
        """Return job, slot and mode whose share is nearest to one half; None where all are whole."""
        data, plans = self._generation.data, self._generation.plans()
        used = np.flatnonzero((relaxed.share > _WHOLE) & (relaxed.share < 1.0 - _WHOLE))
        used = used[data.malleable[plans.job[used]]]
        plan, slot = np.nonzero(plans.rows[used] >= 0)
        held = np.zeros((len(data.site), data.capacity.shape[1]))
        np.add.at(held, (plans.rows[used[plan], slot], slot), relaxed.share[used[plan]])
        distance = np.abs(held - 0.5)
        mode, at = np.unravel_index(int(np.argmin(distance)), held.shape) if held.size else (0, 0)
        if not held.size or distance[mode, at] >= 0.5 - _WHOLE:
            return None
        job = int(np.searchsorted(data.mode_start, mode, side="right")) - 1
        return job, int(at), int(mode)

    def _fixed(self, branch: Branch, dual: DualResult) -> Branch:
        """Return `branch` with what the job costs fix besides."""
        found = fixings(self._arrays, dual, self._value())
        free = self._generation.data.priced & ~branch.met & ~branch.unmet
        return branch.fixing(found.met & free, found.unmet & free)

    def _push(self, node: _Node) -> None:
        key = (-self._rounded(node.dual.bound), -node.depth, -next(self._order))
        heapq.heappush(self._queue, (key, node))
