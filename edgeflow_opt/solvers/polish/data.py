"""What the kernels that plan jobs anew read, where they work, and in which order they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgeflow_opt.formulations.plans import usage, walk

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays

#: Most jobs that are planned anew together.
MOST_TOGETHER = 5

#: Bins of work by which the labels of a state are kept apart.
_BINS = 64


class PolishData(NamedTuple):
    """The instance as the kernels read it: fields as in ProblemArrays, and those named here.

    Parameters
    ----------
    tie
        Cost of a reconfiguration; where cost comes before it, so small that it only decides between
        plans of equal cost.
    """

    boundaries: FloatArray
    weight: FloatArray
    work: FloatArray
    required: FloatArray
    deadline: FloatArray
    first_slot: IntArray
    end_slot: IntArray
    restart_s: FloatArray
    migration_s: FloatArray
    must_meet: BoolArray
    malleable: BoolArray
    running_mode: IntArray
    loss_left_s: FloatArray
    last_site: IntArray
    mode_start: IntArray
    mode_site: IntArray
    mode_units: IntArray
    mode_rate: FloatArray
    mode_cost: FloatArray
    mode_kept: BoolArray
    tie: float


def polish_data(arrays: ProblemArrays, mode_cost: FloatArray, tie: float) -> PolishData:
    """Return the kernels' view of `arrays`, with (M,) costs of a second and that of a change."""
    fields = {name: getattr(arrays, name) for name in PolishData._fields if name != "tie"}
    return PolishData(**fields | {"mode_cost": mode_cost}, tie=float(tie))


class Space(NamedTuple):
    """Work arrays of the kernels, for S states of a job and B bins.

    Parameters
    ----------
    work, value, progress
        (T+1, S, B) of the labels: credit so far (by the deadline where it is to be met, else by the
        horizon), cost with ties (+inf = no label), credit by the deadline.
    came
        (T+1, S, B) the label it came from, packed; -1 = none.
    ahead
        (3, T+1) from each boundary on: most work, least cost per work, most progress.
    extra
        (K, T) what a unit costs per second beside its price.
    free
        (K, T) units that nobody holds.
    rows
        (MOST_TOGETHER, T) plans put aside.
    random
        (1,) state of the random numbers.
    tolerance
        (5,) least gain that counts, by level.
    """

    work: FloatArray
    value: FloatArray
    progress: FloatArray
    came: IntArray
    ahead: FloatArray
    extra: FloatArray
    free: IntArray
    rows: IntArray
    random: IntArray
    tolerance: FloatArray


def work_arrays(
    arrays: ProblemArrays, plan: IntArray, seed: int, *, num_ahead: int
) -> dict[str, Any]:
    """Return the work arrays that every search has, by their names in :class:`Space`.

    Parameters
    ----------
    plan
        (n, T) the plan to begin from.
    seed
        Of the random numbers.
    num_ahead
        Rows of `ahead`.
    """
    num_slots, num_sites = arrays.num_slots, arrays.num_sites
    states = int(np.diff(arrays.mode_start).max(initial=0)) + num_sites + 1
    shape = (num_slots + 1, states, _BINS)
    return {
        "work": np.zeros(shape),
        "value": np.full(shape, np.inf),
        "came": np.zeros(shape, dtype=np.int64),
        "ahead": np.zeros((num_ahead, num_slots + 1)),
        "extra": np.zeros((num_sites, num_slots)),
        "free": arrays.capacity - usage(arrays, plan),
        "rows": np.zeros((MOST_TOGETHER, num_slots), dtype=np.int64),
        "random": np.array([seed * 2654435761 + 12345], dtype=np.int64),
    }


def costly_first(arrays: ProblemArrays, plan: IntArray) -> IntArray:
    """Return the jobs in the order of a sweep: the costly met ones first, whose units others may use."""
    cost = np.where(plan >= 0, arrays.mode_cost[plan] * arrays.lengths, 0.0)
    order: IntArray = np.lexsort((-cost.sum(axis=1), ~walk(arrays, plan).met))
    return order
