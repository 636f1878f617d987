"""Whom an outage hits: the running jobs that hold the units that go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeflow_opt.workloads.outages import range_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edgeflow_opt.problem import Site
    from edgeflow_opt.simulation.ledger import JobLedger
    from edgeflow_opt.simulation.placement.placer import Placer
    from edgeflow_opt.workloads.outages import Outage


class Interruptions:
    """The outages of a simulation, in their order.

    Which unit a job holds is known where a placer follows it. Elsewhere it is no part of the model
    (repacking is free): jobs are taken to be packed onto the units that are up, the largest first, equal ones by arrival. With counts that are powers of
    two and whole nodes no job then spans more nodes than it must.

    Parameters
    ----------
    sites
        The sites by their own capacity, before outages.
    outages
        All outages.
    placer
        Knows who holds which GPU; None = nobody does.
    """

    def __init__(
        self, sites: Sequence[Site], outages: Iterable[Outage], placer: Placer | None = None
    ) -> None:
        self._placer = placer
        self._sites = {site.name: site for site in sites}
        self._coming = sorted(outages, reverse=True)
        self._away: list[Outage] = []

    def strikes(self, after: float) -> set[tuple[float, str]]:
        """Return when outages begin that take usable units, as (seconds, site), later than `after`.

        Where other units come back at that moment the capacity may stay or even rise; jobs are hit
        all the same.
        """
        return {
            (outage.start, outage.site)
            for outage in self._coming
            if outage.start > after
            and outage.first_unit < self._sites[outage.site].capacity_at(outage.start)
        }

    def due(self, now: float) -> bool:
        """Whether an outage begins by `now` that has not begun yet."""
        return bool(self._coming) and self._coming[-1].start <= now

    def begin(self, now: float, running: Iterable[JobLedger]) -> list[JobLedger]:
        """Let all outages begin that do by `now`, and return the jobs that they hit.

        Parameters
        ----------
        now
            Seconds; must not decrease from call to call.
        running
            The jobs that run, in order of arrival.
        """
        # Nobody has been moved since the last call: units that came back meanwhile are still empty.
        away = self._away
        if away:
            self._away = [outage for outage in away if outage.end > now]
        if not self.due(now):
            return []
        begun = []
        while self.due(now):
            outage = self._coming.pop()
            # One of units that were not usable anyway may be over before anything happens.
            if outage.end > now:
                begun.append(outage)
        jobs = list(running)
        hit: list[JobLedger] = []
        for name in dict.fromkeys(outage.site for outage in begun):
            holders = [job for job in jobs if job.mode is not None and job.mode.site == name]
            gone = [range_of(o) for o in begun if o.site == name]
            if self._placer is not None and self._placer.places(name):
                on_them = self._placer.holders_of(name, gone)
                hit += [job for job in holders if job.job.id in on_them]
                continue
            before = [range_of(o) for o in away if o.site == name]
            hit += self._holders_of(self._sites[name], holders, before, gone)
        self._away += begun
        return hit

    def _holders_of(
        self,
        site: Site,
        holders: list[JobLedger],
        before: list[tuple[int, int]],
        gone: list[tuple[int, int]],
    ) -> list[JobLedger]:
        """Return the `holders` of units in `gone`, packed onto the units not in `before`."""

        def units_of(job: JobLedger) -> int:
            assert job.mode is not None
            return site.units(job.mode)

        holders.sort(key=lambda job: -units_of(job))
        hit = []
        unit = 0
        for job in holders:
            units, is_hit = units_of(job), False
            while units > 0:
                away_until = max((end for first, end in before if first <= unit < end), default=0)
                if away_until > unit:
                    unit = away_until
                    continue
                # On to the next edge of any range: all units up to there share their fate.
                edges = [e for r in (*before, *gone) for e in r if e > unit]
                step = min([units, *(edge - unit for edge in edges)])
                is_hit |= any(first <= unit < end for first, end in gone)
                unit += step
                units -= step
            if is_hit:
                hit.append(job)
        return hit
