"""Readable names for the rows and columns of a model, and what a column's name says.

A name is what it stands for and where: ``x(j1,cloud,2,0)`` is 1 where job ``j1`` runs on 2 GPUs of
site ``cloud`` in slot 0. Jobs and sites go by their labels
(:class:`~edgeflow_opt.formulations.labels.Labels`), slots by their number from 0:

=================================== =======================================================
``z(job)``                          the job is met
``x(job,site,gpus,slot)``           it runs so in the slot (state ``run``)
``start(job,site,gpus,slot,from)``  it begins a run; `from`: ``new`` (it never ran), ``on`` (the
                                    run goes on from `now`), or ``after.SITE``, where it last ran
``warm(job,site,gpus,slot,a,from)`` it is in a run begun in slot `a` that is still in its loss
``idle(job,slot,from)``             it is idle, having never run or last run on a site
``progress(job)``                   share of its work that an unmet job does by its deadline
``leftover(job)``                   the same by the horizon
``y(job,site,gpus,slot)``           moldable: its one run begins in the slot
``plan(job,i2.0x3.1)``              plan master: it follows the plan that is idle (``i``) for 2
                                    slots, holds mode 0 of the job for 3, mode 1 for one, and is
                                    idle then
=================================== =======================================================

Rows are named likewise: ``work(job)``, ``link(job,slot)``, ``capacity(site,slot)``,
``keep(level)``, and so on. A block of rows or columns that has no such names is numbered:
``block(0)``, ``block(1)``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeflow_opt.formulations.labels import Labels
from edgeflow_opt.formulations.malleable import MalleableModel
from edgeflow_opt.formulations.moldable import MoldableModel
from edgeflow_opt.formulations.plan_master import PlanMaster
from edgeflow_opt.formulations.states import NEVER_RAN, NO_START, continued

if TYPE_CHECKING:
    from edgeflow_opt.formulations.objectives import Level
    from edgeflow_opt.formulations.sparse import SparseModel
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import ProblemArrays

_FORM = re.compile(r"([a-z_]+)\(([^()]*)\)")

#: A stretch of a plan: idle slots, or slots in a mode.
_STRETCH = re.compile(r"i(?P<idle>\d{0,6})|(?P<mode>\d{1,6})(?:x(?P<times>\d{1,6}))?")

#: Kinds of columns that say which mode a job holds: number of the fields that follow the mode.
_HOLDING = {"x": 1, "start": 2, "warm": 3, "y": 1}

#: Kinds of columns that follow from the others.
_DERIVED = frozenset({"z", "idle", "progress", "leftover"})


@dataclass(frozen=True, slots=True)
class ColumnMeaning:
    """What the name of a column says.

    Parameters
    ----------
    kind
        The word before the bracket.
    job
        Index of the job; -1 = the column belongs to none.
    mode
        Index of the mode that is held; -1 = none.
    slot
        Slot of that; of ``y`` the first one. -1 = none.
    plan
        The modes of a whole plan, slot by slot, -1 = idle; empty = none.
    """

    kind: str
    job: int = -1
    mode: int = -1
    slot: int = -1
    plan: tuple[int, ...] = ()


class Names:
    """Gives and reads the names of the columns and rows of models of one instance.

    Parameters
    ----------
    problem, arrays
        The instance and its flat view.
    """

    def __init__(self, problem: EpochProblem, arrays: ProblemArrays) -> None:
        self._arrays = arrays
        self._jobs = Labels(job.id for job in problem.jobs)
        self._sites = Labels(site.name for site in problem.sites)
        self._mode_of = {
            (int(arrays.mode_job[m]), int(arrays.mode_site[m]), int(arrays.mode_gpus[m])): m
            for m in range(arrays.num_modes)
        }

    def columns(self, model: MalleableModel | MoldableModel | PlanMaster) -> list[str]:
        """Return the name of every column of `model`."""
        named = _numbered(model.model, "columns")
        if isinstance(model, MoldableModel):
            pairs = zip(model.options.mode.tolist(), model.options.start.tolist(), strict=True)
            return [f"y({self._mode(mode)},{slot})" for mode, slot in pairs]
        if isinstance(model, PlanMaster):
            plans = zip(model.job.tolist(), model.plans.tolist(), strict=True)
            return [f"plan({self._jobs.labels[job]},{self._plan(job, row)})" for job, row in plans]
        for kind, columns in (("z", model.z), *model.shares.items()):
            for job, column in enumerate(columns.tolist()):
                if column >= 0:
                    named[column] = f"{kind}({self._jobs.labels[job]})"
        states = model.running
        for column, mode, slot, start, origin, begins in zip(
            states.column.tolist(), states.mode.tolist(), states.slot.tolist(),
            states.start.tolist(), states.origin.tolist(), states.is_begin.tolist(), strict=True,
        ):  # fmt: skip
            where = f"{self._mode(mode)},{slot}"
            if start == NO_START:
                named[column] = f"x({where})"
            elif begins:
                named[column] = f"start({where},{self._origin(origin)})"
            else:
                named[column] = f"warm({where},{start},{self._origin(origin)})"
        idle = model.idle
        if idle is not None:
            for column, job, slot, site in zip(
                idle.column.tolist(), idle.job.tolist(), idle.slot.tolist(), idle.site.tolist(),
                strict=True,
            ):  # fmt: skip
                named[column] = f"idle({self._jobs.labels[job]},{slot},{self._origin(site)})"
        return named

    def rows(
        self,
        model: MalleableModel | MoldableModel | PlanMaster,
        sparse: SparseModel,
        columns: Sequence[str],
        kept: Sequence[Level] = (),
    ) -> list[str]:
        """Return the name of every row of `sparse`, the rows of `model` and rows ``keep``.

        Parameters
        ----------
        columns
            The names of its columns.
        kept
            The levels that the rows ``keep`` keep, in their order.
        """
        named = _numbered(sparse, "rows")
        num_slots = self._arrays.num_slots
        for block in sparse.row_blocks:
            span = range(block.start, block.stop)
            if block.name == "capacity" and len(span) == self._arrays.num_sites * num_slots:
                for offset, row in enumerate(span):
                    site, slot = divmod(offset, num_slots)
                    named[row] = f"capacity({self._sites.labels[site]},{slot})"
            elif block.name == "keep":
                for row, level in zip(span, kept, strict=True):
                    named[row] = f"keep({level})"
            elif block.name in ("one_run", "one_plan") and len(span) == self._arrays.num_jobs:
                for offset, row in enumerate(span):
                    named[row] = f"{block.name}({self._jobs.labels[offset]})"
            elif isinstance(model, MalleableModel):
                for row in span:
                    arguments = _owner(block.name, sparse, columns, row)
                    if arguments is not None:
                        named[row] = f"{block.name}({arguments})"
        return named

    def read(self, name: str) -> ColumnMeaning | None:
        """Return what the name of a column says; None where it is not one of this instance."""
        form = _FORM.fullmatch(name)
        if form is None:
            return None
        kind, fields = form[1], form[2].split(",")
        if kind == "void":
            return ColumnMeaning(kind)
        job = self._jobs.number(fields[0])
        if job is None:
            return None
        if kind in _DERIVED:
            return ColumnMeaning(kind, job)
        if kind == "plan":
            plan = self._modes_of_plan(job, fields[1]) if len(fields) == 2 else None
            return None if plan is None else ColumnMeaning(kind, job, plan=plan)
        if kind not in _HOLDING or len(fields) != 3 + _HOLDING[kind]:
            return None
        site = self._sites.number(fields[1])
        if site is None or not (fields[2].isdecimal() and fields[3].isdecimal()):
            return None
        mode = self._mode_of.get((job, site, int(fields[2])), -1)
        slot = int(fields[3])
        if mode < 0 or slot >= self._arrays.num_slots:
            return None
        return ColumnMeaning(kind, job, mode, slot)

    def _mode(self, mode: int) -> str:
        arrays = self._arrays
        job, site = int(arrays.mode_job[mode]), int(arrays.mode_site[mode])
        return f"{self._jobs.labels[job]},{self._sites.labels[site]},{int(arrays.mode_gpus[mode])}"

    def _plan(self, job: int, row: Sequence[int]) -> str:
        first = int(self._arrays.mode_start[job])
        groups = [(mode, len(list(same))) for mode, same in itertools.groupby(row)]
        if groups and groups[-1][0] < 0:
            groups.pop()
        words = []
        for mode, count in groups:
            word = f"{mode - first}" if mode >= 0 else "i"
            times = f"{count}" if mode < 0 else f"x{count}"
            words.append(word + (times if count > 1 else ""))
        return ".".join(words)

    def _modes_of_plan(self, job: int, text: str) -> tuple[int, ...] | None:
        arrays = self._arrays
        first, stop = int(arrays.mode_start[job]), int(arrays.mode_start[job + 1])
        row: list[int] = []
        for word in text.split("."):
            form = _STRETCH.fullmatch(word)
            if form is None:
                return None
            mode = -1 if form["mode"] is None else first + int(form["mode"])
            count = int(form["times"] or form["idle"] or 1)
            if mode >= stop or len(row) + count > arrays.num_slots:
                return None
            row += [mode] * count
        return (*row, *[-1] * (arrays.num_slots - len(row)))

    def _origin(self, origin: int) -> str:
        if origin == NEVER_RAN:
            return "new"
        if origin == continued(self._arrays):
            return "on"
        return f"after.{self._sites.labels[origin]}"


def _numbered(model: SparseModel, what: str) -> list[str]:
    """Return ``block(0)``, ``block(1)`` and so on for every row or column."""
    blocks = model.col_blocks if what == "columns" else model.row_blocks
    taken: dict[str, int] = {}
    names = [""] * (model.num_columns if what == "columns" else model.num_rows)
    for block in blocks:
        first = taken.get(block.name, 0)
        for offset, index in enumerate(range(block.start, block.stop)):
            names[index] = f"{block.name}({first + offset})"
        taken[block.name] = first + block.stop - block.start
    return names


#: Blocks of rows that belong to one column each: prefix of its name, and whether of several such
#: columns the one of the last slot is meant.
_OWNERS = {
    "work": "z(", "balance": "idle(", "go_on": "x(", "stay_warm": "warm(",
    "no_abutting": "start(", "progress_work": "progress(", "leftover_work": "leftover(",
    "progress_unmet": "progress(", "leftover_unmet": "leftover(",
}  # fmt: skip


def _owner(block: str, model: SparseModel, columns: Sequence[str], row: int) -> str | None:
    """Return the arguments of the column to which `row` belongs; None where it belongs to none."""
    span = slice(int(model.starts[row]), int(model.starts[row + 1]))
    indices, values = model.indices[span], model.values[span]
    if block == "link":
        held = [columns[i] for i in indices if columns[i].startswith("x(")]
        if not held:
            return None
        job, _, _, slot = _FORM.fullmatch(held[0])[2].split(",")  # type: ignore[index]
        return f"{job},{slot}"
    prefix = _OWNERS.get(block)
    if prefix is None:
        return None
    if block != "work" and not block.endswith("_work"):
        indices = indices[values > 0]
    found = [columns[i] for i in indices if columns[i].startswith(prefix)]
    if block == "no_abutting":
        # Of a run that may be begun anew and those that it would follow, the former is the latest.
        found.sort(key=lambda name: int(name.split(",")[3]))
    return found[-1][len(prefix) : -1] if found else None


def holds_anything(meaning: ColumnMeaning) -> bool:
    """Whether a column says, by itself, what a job holds."""
    return meaning.kind in _HOLDING or meaning.kind == "plan"
