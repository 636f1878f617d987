"""The exceptions of the package: one root, one class per exit code of the command line.

Every message names the object, the field, the rule, the value and the way out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def is_ctrl_c(problem: BaseException | None) -> bool:
    """Whether an exception is Ctrl-C, as it is or in disguise.

    One that strikes a compiled kernel arrives as a SystemError; one that strikes what the kernel
    calls back into Python, as a SystemError behind another.
    """
    while isinstance(problem, SystemError):
        problem = problem.__cause__ or problem.__context__
    return isinstance(problem, KeyboardInterrupt)


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra of the package, from an index or from a checkout."""
    return f"pip install 'edgeflow-opt[{extra}]', or in a checkout pip install '.[{extra}]'"


class EdgeflowError(Exception):
    """Root of every exception that the package raises on purpose.

    Attributes
    ----------
    exit_code
        Exit code of the command line for this kind of failure.
    """

    exit_code = 1


class UsageError(EdgeflowError, ValueError):
    """An option, a name or a combination of them makes no sense (exit code 2)."""

    exit_code = 2


class UnsupportedError(UsageError):
    """A solver was given a problem with a feature that it does not support (exit code 2).

    Parameters
    ----------
    solver
        Name of the solver that refuses.
    feature
        The feature of the instance that it cannot honour.
    remedy
        What to do instead.
    """

    def __init__(self, solver: str, feature: str, remedy: str = "") -> None:
        self.solver = solver
        self.feature = feature
        super().__init__(f"solver '{solver}' does not support {feature}{remedy and '; ' + remedy}")


class SolverUnavailableError(UsageError, ImportError):
    """A solver's library is not installed (exit code 2); the message names the way to get it."""


class SolverFaultError(EdgeflowError):
    """A solver crashed, or contradicted itself or the checker (exit code 1).

    Attributes
    ----------
    result
        The best schedule before the fault as a :class:`~edgeflow_opt.solvers.SolveResult`, which has
        passed the checker, without a bound, since nothing else that the solver said is believed;
        None where there is none.
    """

    #: Any, since errors know of no solver.
    result: Any = None


class CallbackError(EdgeflowError):
    """A callback of the caller raised; its exception is the cause (exit code 1).

    Attributes
    ----------
    result
        What the solve had found until then, as a :class:`~edgeflow_opt.solvers.SolveResult`.
    """

    #: Any, since errors know of no solver.
    result: Any = None


class PolicyError(EdgeflowError):
    """An online policy broke a rule of the cluster, or crashed (exit code 1)."""


class InvalidScheduleError(EdgeflowError):
    """A schedule failed the independent checker and was therefore not returned (exit code 1)."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with an input.

    Parameters
    ----------
    object
        The object at fault, in words of the format: ``"job 'j1'"``, ``"row 17"``.
    field
        The field at fault; empty where the object as a whole is meant.
    rule
        The rule that it breaks.
    value
        The value found, as text; empty where there is none.
    remedy
        The way out; empty where the rule already says it.
    """

    object: str
    field: str
    rule: str
    value: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        where = f"{self.object}, {self.field}" if self.field else self.object
        text = f"{where}: {self.rule}"
        if self.value:
            text += f", got {self.value}"
        if self.remedy:
            text += f"; {self.remedy}"
        return text


#: Faults shown in full in the message of an :class:`InputError`; the rest are counted.
SHOWN_FAULTS = 20


class InputError(EdgeflowError, ValueError):
    """An instance, schedule or trace is unreadable or breaks its format (exit code 5).

    Parameters
    ----------
    faults
        Everything that is wrong, in the order in which it was found; never empty.
    source
        File or other origin of the input; empty for objects built in Python.
    """

    exit_code = 5

    def __init__(self, faults: tuple[Fault, ...], source: str = "") -> None:
        self.faults = faults
        self.source = source
        super().__init__(faults, source)

    def __str__(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        if len(self.faults) == 1:
            return prefix + str(self.faults[0])
        lines = [f"{prefix}{len(self.faults)} faults"]
        lines += [f"  - {fault}" for fault in self.faults[:SHOWN_FAULTS]]
        if len(self.faults) > SHOWN_FAULTS:
            lines.append(f"  - and {len(self.faults) - SHOWN_FAULTS} more")
        return "\n".join(lines)


class InstanceError(InputError):
    """An instance (``edgeflow-epoch/1``) breaks its format or its rules."""


class ScheduleError(InputError):
    """A schedule document (``edgeflow-schedule/1``) breaks its format."""


class SolutionError(InputError):
    """A solution file of another solver breaks its format, or names what an instance has not."""


class EventError(InputError):
    """Events (``edgeflow-events/1``) or a session (``edgeflow-session/1``) break their rules."""


class TraceError(InputError):
    """A trace, a rate table or a tide file breaks its format or its rules."""
