"""What the kernels of the polish read, and where they work."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays

#: Most jobs that are planned anew together.
MOST_TOGETHER = 5


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
