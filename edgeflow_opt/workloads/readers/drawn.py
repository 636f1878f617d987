"""What traces without model or rates leave open, drawn for each job from its own name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from edgeflow_opt.workloads.rates import DEFAULT_CATALOG

#: Range of the deadline factor where a trace has no deadlines: ElasticFlow's rule.
FACTORS = (0.5, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What was drawn for a job.

    Parameters
    ----------
    model, batch
        From the rate catalogue.
    gpus
        The largest count of its rate table that is not above the requested one.
    rate
        Iterations per second on these GPUs.
    factor
        Deadline factor, uniform in :data:`FACTORS`.
    """

    model: str
    batch: int
    gpus: int
    rate: float
    factor: float


def draw(job: str, requested: int, seed: int, model: str | None = None) -> Drawn:
    """Return the draws for a job: the same for the same id and seed, whatever the other rows are.

    Model and batch are uniform over the profiles of the default catalogue that reach the requested
    count, or over those of the most GPUs where none does; `model` keeps to one model.

    Parameters
    ----------
    job
        Its id.
    requested
        GPUs that it asked for, at least 1.
    seed
        Of all draws.
    model
        Only this model of the catalogue; None = any.
    """
    digest = hashlib.blake2b(f"{seed}/{job}".encode(), digest_size=16).digest()
    first, second = (int.from_bytes(digest[at : at + 8]) / 2**64 for at in (0, 8))
    profiles = [p for p in DEFAULT_CATALOG.profiles if model is None or p.model == model]
    most = max(profile.rates[-1][0] for profile in profiles)
    fitting = [p for p in profiles if p.rates[-1][0] >= min(requested, most)]
    profile = fitting[int(first * len(fitting))]
    gpus, rate = max(entry for entry in profile.rates if entry[0] <= requested)
    low, high = FACTORS
    return Drawn(
        model=profile.model,
        batch=profile.batch,
        gpus=gpus,
        rate=rate,
        factor=low + (high - low) * second,
    )
