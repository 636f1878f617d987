"""The options that make a simulation less ideal: GPUs have places, and rates are estimated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgeflow_opt.cli.options import one_of, range_of
from edgeflow_opt.errors import UsageError

if TYPE_CHECKING:
    from edgeflow_opt.simulation.analyser import Analyser

Placement = Annotated[
    str | None,
    typer.Option(
        "--placement",
        metavar="MODE",
        help="Place jobs on GPUs: free (moving a job to make room costs nothing), repack (a moved "
        "job pays its restart), or nobody moves and what fits nowhere shrinks or waits (fixed), "
        "waits (wait), or lies on more nodes (spread). Default: GPUs are only counted.",
    ),
]
RateError = Annotated[
    float,
    typer.Option(
        "--rate-error",
        metavar="CV",
        help="Policies see rates with errors of this coefficient of variation (0.2 = 20 %).",
    ),
]
MeasuredGpus = Annotated[
    str | None,
    typer.Option(
        "--measured-gpus",
        metavar="N,...",
        help="Jobs are measured on these counts only; other rates are fitted, for example 1,8,32.",
    ),
]
LearnAfter = Annotated[
    str,
    typer.Option(
        "--learn-after",
        metavar="S|never",
        help="Seconds with credit after which the true rate of a running job is known.",
    ),
]
ProfilingTime = Annotated[
    str | None,
    typer.Option(
        "--profiling-time",
        metavar="LO,HI",
        help="A new type of job is shown after U[LO, HI] s of measurement (paper: 305,550).",
    ),
]


def placement_of(mode: str | None) -> str | None:
    """Return the mode of placement, None where GPUs are only counted.

    Raises
    ------
    UsageError
        If there is no such mode.
    """
    from edgeflow_opt.simulation.placement import PLACEMENT_MODES

    return None if mode is None else one_of("option --placement: mode", mode, PLACEMENT_MODES)


def analyser_of(
    rate_error: float,
    measured_gpus: str | None,
    learn_after: str,
    profiling_time: str | None,
    seed: int,
) -> tuple[Analyser | None, dict[str, Any]]:
    """Return what the options say of rates, and their values for the settings of a document.

    Returns
    -------
    analyser
        None where policies see the true rates at once.
    settings
        ``rate_error``, ``measured_gpus`` (null = all), ``learn_after_s`` (null = never) and
        ``profiling_s``.

    Raises
    ------
    UsageError
        If an option makes no sense.
    """
    from edgeflow_opt.simulation.analyser import Analyser

    if not 0.0 <= rate_error <= 10.0:
        raise UsageError(f"option --rate-error: must be a number from 0 to 10, got {rate_error:g}")
    counts = None
    if measured_gpus is not None:
        try:
            counts = tuple(int(part) for part in measured_gpus.split(","))
        except ValueError:
            counts = ()
        if not counts or min(counts) < 1:
            raise UsageError(
                f"option --measured-gpus: must be whole numbers of at least 1, got "
                f"{measured_gpus!r}; for example 1,8,32"
            )
    try:
        after = math.inf if learn_after == "never" else float(learn_after)
    except ValueError:
        after = math.nan
    if not after > 0.0:
        raise UsageError(
            f"option --learn-after: must be seconds above 0 or never, got {learn_after!r}"
        )
    profiling = (
        (0.0, 0.0) if profiling_time is None else range_of(profiling_time, "--profiling-time")
    )
    analyser = Analyser(
        rate_error=rate_error,
        measured_gpus=counts,
        learn_after_s=after,
        profiling_s=profiling,
        seed=seed,
    )
    return None if analyser.trivial else analyser, {
        "rate_error": rate_error,
        "measured_gpus": None if counts is None else list(counts),
        "learn_after_s": None if after == math.inf else after,
        "profiling_s": list(profiling),
    }
