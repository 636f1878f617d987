"""Branching on who is met: the linear bound, brought down to a whole number of jobs and below.

A target is refuted when no choice of met jobs lets the interval relaxation reach it. The search is
depth first; at every node reduced costs fix the jobs whose fate is certain in a schedule that
reaches the target (:mod:`~edgeflow_opt.solvers.price.fixing` has the argument), the jobs nearest to
one half are probed both ways, and the one whose worse branch gives most is branched on. Every bound
that cuts a branch off is a certified one, so that a refutation is a proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.clairvoyant.relaxation import MET, OPEN, OUT

if TYPE_CHECKING:
    from edgeflow_opt.clairvoyant.relaxation import IntervalDual, Relaxed
    from edgeflow_opt.problem.arrays import FloatArray, IntArray

#: Evaluations at a node, and for a probe.
_NODE_ITERATIONS = 40
_PROBE_ITERATIONS = 15
#: Evaluations at a leaf, where every fate is assumed, in rising attempts; and a scale of prices.
_LEAF_ITERATIONS = (60, 300, 1500)
_LEAF_SCALE = 1e5
#: Jobs probed at a node.
_PROBES = 8
#: Rounding of bound and target that a fixing must overcome.
_SLACK = 1e-6


@dataclass(slots=True)
class Refuter:
    """A search for reasons why a target cannot be reached.

    Parameters
    ----------
    dual
        The relaxation.
    stopped
        Ends the search once true; the target is then not refuted.
    nodes
        Nodes looked at so far.
    """

    dual: IntervalDual
    stopped: Callable[[], bool]
    nodes: int = 0
    reached: IntArray | None = None
    """Fates of the jobs at a leaf that was not refuted: such jobs may be met together."""

    def refuted(self, target: float, root: Relaxed) -> bool:
        """Whether it is proven that no schedule reaches a met weight of `target`.

        Parameters
        ----------
        target
            An attainable value, at most that of the bound of `root`.
        root
            The relaxation without any assumption.

        Returns
        -------
        bool
            False where time was up, or the relaxation does reach the target with whole jobs: then
            no branching can refute it.
        """
        fate = np.where(np.isfinite(root.cost), OPEN, OUT).astype(np.int64)
        return self._node(target, fate, root.prices, 0)

    def _node(self, target: float, fate: IntArray, prices: FloatArray, depth: int) -> bool:
        self.nodes += 1
        fate = fate.copy()
        first = True
        while True:
            if self.stopped():
                return False
            if not (fate == OPEN).any():
                return self._leaf(target, fate, prices)
            found = self.dual.minimise(
                fate, prices, _NODE_ITERATIONS, below=target - _SLACK, stopped=self.stopped
            )
            if found.bound < target - _SLACK:
                return True
            prices = found.prices
            changed = self._fix(target, fate, found)
            if changed and (first or not (fate == OPEN).any()):
                first = False
                continue
            branch = self._probe(target, fate, found)
            if branch is None:
                return True
            job, again = branch
            if again:
                continue
            break
        # The side that the prices speak against goes first: it is refuted sooner.
        worth = self.dual.data.weight[job] - found.cost[job]
        for side in (OUT, MET) if worth > 0 else (MET, OUT):
            child = fate.copy()
            child[job] = side
            if not self._node(target, child, prices, depth + 1):
                return False
        return True

    def _leaf(self, target: float, fate: IntArray, prices: FloatArray) -> bool:
        """Whether it is proven that the jobs assumed to be met cannot be met together."""
        weight = self.dual.data.weight[fate == MET]
        if math.fsum(weight) < target - _SLACK:
            return True
        for iterations in _LEAF_ITERATIONS:
            found = self.dual.minimise(
                fate, prices, iterations, below=target - 100.0 * _SLACK, stopped=self.stopped
            )
            if found.bound < target - _SLACK:
                return True
            # With all fates assumed, what prices add to the met weight grows with their scale.
            if self.dual.scaled_bound(found, fate, _LEAF_SCALE) < target - _SLACK:
                return True
            if self.stopped():
                break
            prices = found.prices
        self.reached = fate
        return False

    def _fix(self, target: float, fate: IntArray, found: Relaxed) -> bool:
        """Fix the jobs whose fate reduced costs decide; return whether there were any."""
        spare = found.bound - target + _SLACK
        gain = self.dual.data.weight - found.cost
        is_open = fate == OPEN
        met = is_open & (gain > max(0.0, spare))
        out = is_open & (-gain > max(0.0, spare))
        fate[met], fate[out] = MET, OUT
        return bool(met.any() or out.any())

    def _probe(self, target: float, fate: IntArray, found: Relaxed) -> tuple[int, bool] | None:
        """Probe the most fractional jobs both ways.

        Returns
        -------
        job, again
            The job to branch on; whether fates were fixed meanwhile, so that the node should be
            looked at again first. None = both ways of a job are refuted, and so is the node.
        """
        is_open = np.flatnonzero(fate == OPEN)
        if not len(is_open):
            return -1, True
        gain = np.abs(self.dual.data.weight[is_open] - found.cost[is_open])
        undecided = np.abs(found.share[is_open] - 0.5)
        chosen = is_open[np.lexsort((gain, undecided.round(2)))[:_PROBES]]
        best, best_score = int(chosen[0]), (np.inf, np.inf)
        fixed = False
        for job in chosen.tolist():
            values = []
            for side in (MET, OUT):
                fate[job] = side
                probe = self.dual.minimise(
                    fate, found.prices, _PROBE_ITERATIONS, below=target - _SLACK,
                    stopped=self.stopped,
                )  # fmt: skip
                values.append(probe.bound)
            fate[job] = OPEN
            refuted = [value < target - _SLACK for value in values]
            if all(refuted):
                return None
            if any(refuted):
                fate[job] = OUT if refuted[0] else MET
                fixed = True
                continue
            score = (max(values), min(values))
            if score < best_score:
                best, best_score = job, score
            if self.stopped():
                break
        return best, fixed
