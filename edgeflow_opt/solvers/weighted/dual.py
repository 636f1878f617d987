"""The Lagrangian dual of the weighted sum: one price per unit of each site and slot.

With the terms of :class:`~edgeflow_opt.problem.Weights`, any prices p >= 0 prove

    value <= L(p) = sum_{k,s} capacity_ks p_ks + sum_j max(met_j(p), unmet_j(p), 0),

where a slot in mode m costs ``price_sm = p_ks units_m + cost length_s cost_m`` and, with the
function F of :mod:`~edgeflow_opt.solvers.weighted.dual_kernels`,

    met_j   = met w_j - max_{q >= 0} F(q; need = work_j (1 - 1e-6), late = inf) - r_j
    unmet_j = (a_j + b_j) work_j - max_{0 <= q <= a_j + b_j} F(q; need = work_j, late = a_j) - r_j

with a_j = progress w_j / work_j (0 for best effort), b_j = leftover w_j / work_j, and r_j the weight
of one reconfiguration where the first run is one for certain, else 0. A job that must be met earns
met_j, best effort is never met.

Why: a plan that meets the deadline does `need` by then, and q need - sum_s max(...) is at most what it
costs, for any q >= 0. One that does not earns a min(W, early) + b min(W, early + after), and
min(W, x) <= (1 - y) W + y x for any share y in [0, 1]; q is the worth of an iteration that these shares
leave, taken from the leftover first. Losses are left out, which only adds credit, and so is that
an unmet job does less than `need`; other reconfigurations cost nothing less than 0.

Floating point: as in :mod:`edgeflow_opt.solvers.price.dual`. The bound is recomputed from prices and
two multipliers per job, and the slack of all its sums is added.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgeflow_opt.solvers.bounds import FLOAT_SLACK
from edgeflow_opt.solvers.price.dual import DualResult, HullDual, job_blocks, run_blocks
from edgeflow_opt.solvers.price.fixing import Fixings
from edgeflow_opt.solvers.weighted.dual_kernels import certified_gains, weigh_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgeflow_opt.problem.arrays import BoolArray, FloatArray
    from edgeflow_opt.solvers.price.pricing_data import PricingData
    from edgeflow_opt.solvers.weighted.worths import Worths

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gains:
    """What jobs earn at most at certain prices, proven up to rounding.

    Parameters
    ----------
    met, unmet
        (n,) if they are met (-inf where they cannot be), and if not (-inf where they must be).
    magnitude
        (n,) sums of the absolute values behind both.
    """

    met: FloatArray
    unmet: FloatArray
    magnitude: FloatArray


class WeightedDual:
    """The dual function, evaluated by threads: a :class:`~edgeflow_opt.solvers.price.dual.DualFunction`.

    Parameters
    ----------
    data, worths
        The instance and the sum (:func:`~edgeflow_opt.solvers.weighted.worths.weighted_data`).
    workers
        Threads, at least 1; results do not depend on it.
    """

    def __init__(self, data: PricingData, worths: Worths, workers: int = 1) -> None:
        self.data, self.worths, self.workers = data, worths, workers
        self.blocks = job_blocks(data)
        self.multiplier = np.zeros((len(data.weight), 2))
        self._row = 0.0
        self._least_money = _least_money(data, worths)

    def with_toll(self, toll: float, most: float) -> WeightedDual:
        """Return the dual with the row that at most the weight `most` is met, at price `toll`."""
        jobs = self.worths.jobs.copy()
        jobs["met"] -= toll * jobs["weight"]
        unmet = (jobs["progress"] + jobs["leftover"]) * jobs["work"]
        # The scale of prices, and of steps.
        data = self.data._replace(weight=np.maximum(jobs["met"], unmet))
        other = WeightedDual(data, self.worths._replace(jobs=jobs), self.workers)
        other.multiplier[:] = self.multiplier
        other._row = self._row + toll * most
        return other

    @property
    def largest_worth(self) -> float:
        """The most that meeting a job of weight 1 is worth; 0 where there is none."""
        return self._largest(self.worths.jobs["met"])

    @property
    def largest_toll(self) -> float:
        """The same less what the job is worth if its work is done without meeting the deadline."""
        jobs = self.worths.jobs
        return self._largest(jobs["met"] - (jobs["progress"] + jobs["leftover"]) * jobs["work"])

    def _largest(self, worth: FloatArray) -> float:
        weight = self.worths.jobs["weight"]
        heavy = weight > 0.0
        return float((worth[heavy] / weight[heavy]).max(initial=0.0))

    def met_weight(self, found: DualResult) -> float:
        """Return the weight of the jobs that are met in the plans behind `found`."""
        unmet = self.gains(found.prices, found.multipliers).unmet
        met = self.worths.jobs["met"] - found.job_costs > unmet
        return float(self.worths.jobs["weight"][met].sum())

    def evaluate(self, prices: FloatArray) -> tuple[float, FloatArray]:
        """Return L(`prices`) in plain floating point, and capacity less usage, a subgradient."""
        usage = np.zeros((len(self.blocks), *prices.shape))
        gain = np.zeros(len(self.blocks))

        def work(number: int, begin: int, stop: int) -> None:
            gain[number] = weigh_jobs(
                self.data.tables, self.worths, prices, begin, stop, self.multiplier, usage[number]
            )

        run_blocks(self.blocks, work, self.workers)
        value = float((self.data.capacity * prices).sum() + gain.sum()) + self._row
        return value, self.data.capacity - usage.sum(axis=0)

    def gains(self, prices: FloatArray, multiplier: FloatArray) -> Gains:
        """Return what jobs earn at most at `prices`, recomputed from (n, 2) multipliers."""
        n = len(self.data.weight)
        met, unmet, magnitude = np.full(n, -np.inf), np.zeros(n), np.zeros(n)

        def work(_: int, begin: int, stop: int) -> None:
            certified_gains(
                self.data.tables, self.worths, prices, begin, stop, multiplier,
                met, unmet, magnitude,
            )  # fmt: skip

        run_blocks(self.blocks, work, self.workers)
        return Gains(met=met, unmet=unmet, magnitude=magnitude)

    def certify(self, prices: FloatArray, multiplier: FloatArray) -> tuple[float, FloatArray]:
        """Return the proven bound at `prices`, and what meeting each deadline costs at least.

        The bound is -inf where a job that must be met cannot be.
        """
        found = self.gains(prices, multiplier)
        return self._bound(prices, found), self._costs(found)

    def evaluate_exactly(
        self, prices: FloatArray, bins: int, stopped: Callable[[], bool]
    ) -> tuple[DualResult, FloatArray | None]:
        """Return the bound with exact plans of met jobs, and the subgradient (None if stopped early).

        What a job earns unmet, by the hull, is certain; so the rest is a dual of level 1 in which a
        job weighs what it earns more when it is met.
        """
        data = self.data
        self.evaluate(prices)
        gains = self.gains(prices, self.multiplier)
        worth = self.worths.jobs["met"] - self.worths.jobs["change"]
        possible = gains.met > -np.inf
        unmet = np.maximum(0.0, gains.unmet)
        weight = np.where(possible, worth - unmet, 0.0)
        part = HullDual(
            data.with_weights(weight, possible & ((gains.met > unmet) | data.must_meet)),
            self.workers,
        )
        with_money = prices + self._least_money
        cost, magnitude, usage, whole = part.exact_costs(with_money, bins, stopped)
        met = np.where(part.data.priced, np.minimum(gains.met, worth - cost), gains.met)
        gains = Gains(met=met, unmet=gains.unmet, magnitude=gains.magnitude + magnitude)
        found = DualResult(
            prices=prices,
            bound=self._bound(prices, gains),
            job_costs=self._costs(gains),
            multipliers=self.multiplier.copy(),
            evaluations=1,
        )
        if not whole:
            return found, None
        return found, data.capacity - usage - self._usage_unmet(prices, met < unmet)

    def alone(self) -> FloatArray:
        """Return (n,) what jobs earn at most if they are met and capacity is free; -inf = they cannot be.

        Neither exact nor a bound where a job is not worth its cost.
        """
        nothing = np.zeros(self.data.capacity.shape)
        multiplier = np.zeros_like(self.multiplier)
        usage = np.zeros_like(nothing)
        weigh_jobs(self.data.tables, self.worths, nothing, 0, len(multiplier), multiplier, usage)
        return self.gains(nothing, multiplier).met

    def with_money(self, found: DualResult) -> DualResult:
        """Return `found` with prices that hold the cost of a unit too, as level 1 has it."""
        return dataclasses.replace(found, prices=found.prices + self._least_money)

    def fixings(self, dual: DualResult, incumbent: float) -> Fixings:
        """Return the jobs whose fate is the same in all schedules worth more than `incumbent`.

        A job that earns less by the other fate lowers the bound by that much. If it then falls
        short of `incumbent`, the fate is decided.
        """
        unmet = self.gains(dual.prices, dual.multipliers).unmet
        met = self.worths.jobs["met"] - dual.job_costs
        spare = dual.bound - incumbent + FLOAT_SLACK * max(1.0, abs(dual.bound), abs(incumbent))
        # The fate of a job that earns nothing by it decides nothing, and is not priced.
        counts = self.worths.jobs["met"] > 0.0
        return Fixings(
            met=counts & (met - unmet > max(0.0, spare)),
            unmet=counts & (unmet - met > max(0.0, spare)),
        )

    def _costs(self, gains: Gains) -> FloatArray:
        """Return (n,) what the jobs of `gains` cost at least if they are met; +inf = they cannot be."""
        cost: FloatArray = self.worths.jobs["met"] - gains.met
        return cost

    def _bound(self, prices: FloatArray, gains: Gains) -> float:
        """Return the sum of supply and `gains`, with the slack of all rounding on the safe side."""
        best = np.maximum(gains.met, gains.unmet)
        if np.isneginf(best).any():
            return -math.inf
        supply = (self.data.capacity * prices).ravel()
        total = math.fsum(supply) + math.fsum(best) + self._row
        # A term is a product of at most three numbers; a job adds at most six terms per slot.
        operations = 6.0 * (len(self.data.boundaries) + 16)
        added = self._row + math.fsum(supply) + math.fsum(gains.magnitude) + math.fsum(np.abs(best))
        return total + operations * _EPS * added

    def _usage_unmet(self, prices: FloatArray, which: BoolArray) -> FloatArray:
        """Return (K, T) what the jobs `which` (n,) use while they are not met."""
        nobody = np.zeros(len(which), dtype=np.bool_)
        tables = self.data.with_fates(nobody, self.data.priced & which).tables
        jobs = self.worths.jobs.copy()
        jobs["met"] = 0.0
        usage = np.zeros(prices.shape)
        weigh_jobs(
            tables, self.worths._replace(jobs=jobs), prices, 0, len(which),
            self.multiplier.copy(), usage,
        )  # fmt: skip
        return usage


def _least_money(data: PricingData, worths: Worths) -> FloatArray:
    """Return (K, T) what a unit of each site costs at least in a slot, beside its price.

    On a cloud site all units cost the same; a server costs more, the more of its GPUs are used.
    """
    least = np.full(len(data.capacity), np.inf)
    used = np.repeat(data.priced, np.diff(data.mode_start))
    np.minimum.at(least, data.site[used], (worths.mode_cost / data.units)[used])
    least[np.isinf(least)] = 0.0
    money: FloatArray = least[:, None] * np.diff(data.boundaries)[None, :]
    return money
