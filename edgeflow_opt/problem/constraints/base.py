r"""What a constraint is: its parameters, its linear rows, and its part of the checker.

A constraint says something about a whole schedule that the rules of the format do not: a quota, a
budget, jobs that must be kept apart. Let :math:`x_{jsm} \in \{0, 1\}` tell that job j holds mode m
in slot s, and :math:`z_j` that it is met (0 for best effort). A constraint gives rows

.. math::

    \sum_{j,s,m} a_{r,jsm} \, x_{jsm} + \sum_j b_{r,j} \, z_j \le c_r, \qquad a \ge 0 .

What is held may only be limited (a >= 0), since every engine relies on it that units may be given
back: the work of a job that misses its deadline is left out of the first level, and nothing is held
after completion. The b are free: *at least three of these jobs are met* is a row with a = 0, b = -1
and c = -3.

Rows speak to the exact engines. The checker uses :meth:`Constraint.violations` instead, plain Python
on the allocations in continuous time, so that a mistake in one of the two shows.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from edgeflow_opt.errors import Fault
    from edgeflow_opt.problem.arrays import ProblemArrays
    from edgeflow_opt.problem.constraints.rows import LinearRows
    from edgeflow_opt.problem.data import Grid, Job, Site
    from edgeflow_opt.problem.epoch import EpochProblem
    from edgeflow_opt.problem.schedule import Allocation, Outcome
    from edgeflow_opt.problem.violation import Violation


class Constraint(ABC):
    """Base of constraints: a frozen dataclass, whose fields are its keys in an instance document.

    Annotations of the fields have to be those of JSON values: numbers, texts, tuples, None.

    Attributes
    ----------
    type
        Name in the document and, for a plug-in, of the entry point in the group
        ``edgeflow_opt.constraints``; letters, digits and underscores.
    """

    __slots__ = ()

    type: ClassVar[str]

    @abstractmethod
    def rows(self, problem: EpochProblem, arrays: ProblemArrays) -> LinearRows:
        """Return the constraint as linear rows.

        Parameters
        ----------
        problem
            The instance.
        arrays
            Its flat view, by which jobs, modes and slots are numbered.
        """

    @abstractmethod
    def violations(
        self,
        problem: EpochProblem,
        allocations: Sequence[Allocation],
        outcomes: Sequence[Outcome],
    ) -> Iterable[Violation]:
        """Return every breach of the constraint by a schedule, found without :meth:`rows`.

        Parameters
        ----------
        problem
            The instance.
        allocations
            Of its jobs, in their modes; of any order.
        outcomes
            What becomes of the jobs, in the order of the instance, recomputed from these.
        """

    def faults(self, grid: Grid, sites: Sequence[Site], jobs: Sequence[Job]) -> Iterable[Fault]:
        """Return every rule that the parameters break; none by default.

        Their types have been looked at where they come from a document only.
        """
        return ()

    def violation(
        self,
        message: str,
        *,
        job: str | None = None,
        site: str | None = None,
        time: float | None = None,
        amount: float | None = None,
    ) -> Violation:
        """Return a breach of this constraint; see :class:`~edgeflow_opt.problem.Violation`."""
        from edgeflow_opt.problem.violation import Violation

        return Violation(
            kind=self.type, message=message, job=job, site=site, time=time, amount=amount
        )


def is_constraint(value: object) -> bool:
    """Whether `value` is a constraint as the package can use it."""
    return (
        isinstance(value, Constraint)
        and dataclasses.is_dataclass(value)
        and isinstance(getattr(value, "type", None), str)
        and value.type.isidentifier()
        and value.type.isascii()
    )
