"""Instances and schedules from files, or from stdin where the file is ``-``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edgeflow_opt.errors import Fault, InputError, InstanceError, ScheduleError, UsageError

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem, Schedule

#: The name that stands for stdin.
STDIN = "-"


def only_one_stdin(paths: Sequence[str | None]) -> None:
    """Refuse to read stdin twice.

    Raises
    ------
    UsageError
        If more than one of `paths` is ``-``.
    """
    if list(paths).count(STDIN) > 1:
        raise UsageError("'-' (stdin) can be read once only; give the others as files")


def read_instance(path: str) -> EpochProblem:
    """Read an instance.

    Raises
    ------
    InstanceError
        With every fault.
    """
    from edgeflow_opt.problem import problem_from_dict, read_problem

    if path != STDIN:
        return read_problem(path)
    return problem_from_dict(_document_on_stdin(InstanceError), "stdin")


def read_instances(paths: Sequence[str]) -> list[EpochProblem]:
    """Read all instances, or report the faults of all of them together.

    Raises
    ------
    InstanceError
        With every fault of every file.
    """
    problems: list[EpochProblem] = []
    faults: list[Fault] = []
    failed: list[InstanceError] = []
    for path in paths:
        try:
            problems.append(read_instance(path))
        except InstanceError as error:
            failed.append(error)
            faults += [
                Fault(f"{error.source}: {f.object}", f.field, f.rule, f.value, f.remedy)
                for f in error.faults
            ]
    if len(failed) == 1:
        raise failed[0]
    if failed:
        raise InstanceError(tuple(faults))
    return problems


def read_plan(path: str) -> Schedule:
    """Read a schedule.

    Raises
    ------
    ScheduleError
        With every fault.
    """
    from edgeflow_opt.problem import read_schedule, schedule_from_dict

    if path != STDIN:
        return read_schedule(path)
    return schedule_from_dict(_document_on_stdin(ScheduleError), "stdin")


def _document_on_stdin(error: type[InputError]) -> Any:
    from edgeflow_opt.problem.parsing import parse_json

    return parse_json(bytes_on_stdin(error), "stdin", error)


def bytes_on_stdin(error: type[InputError]) -> bytes:
    """Return all of stdin.

    Raises
    ------
    InputError
        Of the given class, if it is closed or larger than 1 GiB.
    """
    from edgeflow_opt.problem.files import MAX_BYTES

    if sys.stdin is None:
        raise error((Fault("file", "", "is closed", remedy="name a file"),), "stdin")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise error((Fault("file", "", f"is larger than {MAX_BYTES} bytes"),), "stdin")
    return data
