"""How far online policies are from what is possible at all: bound and schedule of a whole trace."""

from __future__ import annotations

from edgeflow_opt.clairvoyant.bound import ClairvoyantBound as ClairvoyantBound
from edgeflow_opt.clairvoyant.bound import clairvoyant_bound as clairvoyant_bound
from edgeflow_opt.clairvoyant.document import BOUND_FORMAT as BOUND_FORMAT
from edgeflow_opt.clairvoyant.document import bound_document as bound_document
from edgeflow_opt.clairvoyant.document import bound_schema as bound_schema


def warm_up() -> None:
    """Compile (or load from the cache on disk) the kernels of the relaxation on a tiny trace."""
    import numpy as np

    from edgeflow_opt.clairvoyant.intervals import interval_data
    from edgeflow_opt.clairvoyant.relaxation import IntervalDual
    from edgeflow_opt.problem import Job, Mode, Site

    job = Job(
        id="j", arrival=0.0, deadline=2.0, work=1.0, modes=(Mode(site="cloud", gpus=1, rate=1.0),)
    )
    site = Site(name="cloud", kind="cloud", capacity=((0.0, 1),))
    dual = IntervalDual(interval_data([job], [site], [0.0, 1.0, 2.0]))
    dual.minimise(np.zeros(1, dtype=np.int64), None, 1)
