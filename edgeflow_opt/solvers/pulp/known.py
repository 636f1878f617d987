"""The solvers that PuLP knows: which are available here, and which one a name means."""

from __future__ import annotations

import difflib
import inspect
import warnings
from typing import Any

from edgeflow_opt.errors import SolverUnavailableError, UsageError
from edgeflow_opt.solvers.pulp.model import require_pulp

#: Names that PuLP does not have, in the spelling of users.
_OTHER_NAMES = {"CBC": ("PULP_CBC_CMD", "COIN_CMD"), "SCIP": ("SCIP_PY", "SCIP_CMD")}

#: Arguments of a solver of PuLP that are set here, or mean nothing here.
_TAKEN = frozenset(
    {"self", "mip", "msg", "timeLimit", "warmStart", "keepFiles", "callbackTuple",
     "callbacksToActivate", "_skip_v4_deprecation", "env", "envOptions", "manageEnv"}
)  # fmt: skip


def known_solvers() -> list[str]:
    """Return the names of all solvers that PuLP knows."""
    pulp = require_pulp("solver 'pulp'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(dict.fromkeys(pulp.listSolvers()))


def available_solvers() -> list[str]:
    """Return the names of those that can run here."""
    pulp = require_pulp("solver 'pulp'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(dict.fromkeys(pulp.listSolvers(onlyAvailable=True)))


def resolved(name: str) -> str:
    """Return the name by which PuLP knows a solver that is available.

    ``CBC``, ``SCIP``, ``highs`` and the like mean the first available one of their kind.

    Raises
    ------
    UsageError
        If PuLP knows none of that name.
    SolverUnavailableError
        If PuLP or the solver is not installed; those that are available are named.
    """
    known, available = known_solvers(), available_solvers()
    here = f"available here: {', '.join(available) or 'none'}"
    wanted = name.upper()
    forms = (*_OTHER_NAMES.get(wanted, ()), wanted, f"{wanted}_PY", f"{wanted}_CMD")
    if name in known:
        forms = (name,)
    spelled = [entry for form in forms for entry in known if entry.upper() == form.upper()]
    meant = list(dict.fromkeys(spelled))
    if not meant:
        close = difflib.get_close_matches(wanted, [entry.upper() for entry in known], n=1)
        hint = next((f"did you mean 'pulp:{e}'? " for e in known if [e.upper()] == close), "")
        raise UsageError(f"solver 'pulp:{name}' is not one that PuLP knows; {hint}{here}")
    usable = [entry for entry in meant if entry in available]
    if not usable:
        raise SolverUnavailableError(
            f"solver 'pulp:{name}' is not installed where PuLP finds it ({', '.join(meant)}); "
            f"install it, or choose another one; {here}"
        )
    return usable[0]


def default_solver() -> str:
    """Return the first available solver of those that are best on this kind of model.

    Raises
    ------
    SolverUnavailableError
        If there is none.
    """
    available = available_solvers()
    for name in ("GUROBI", "HiGHS", "SCIP_PY", "PULP_CBC_CMD", "COIN_CMD"):
        if name in available:
            return name
    if not available:
        raise SolverUnavailableError(
            "solver 'pulp': PuLP finds no solver here; install one, such as highspy"
        )
    return available[0]


def parameters_of(name: str) -> frozenset[str]:
    """Return the named arguments that PuLP's solver `name` takes."""
    pulp = require_pulp("solver 'pulp'")
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    signature = inspect.signature(type(_made(pulp, name)).__init__)
    return frozenset(p.name for p in signature.parameters.values() if p.kind not in kinds)


def free_parameters(name: str) -> list[str]:
    """Return those of the arguments that users may set."""
    return sorted(parameters_of(name) - _TAKEN)


def _made(pulp: Any, name: str, **settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "HiGHS":
            from edgeflow_opt.solvers.pulp.quiet import quiet_solver

            return quiet_solver(pulp, settings)
        return pulp.getSolver(name, **settings)


def make_solver(name: str, settings: dict[str, Any]) -> Any:
    """Return PuLP's solver `name` with `settings`.

    Raises
    ------
    UsageError
        If it refuses a setting.
    """
    pulp = require_pulp("solver 'pulp'")
    try:
        return _made(pulp, name, **settings)
    except (TypeError, ValueError, pulp.PulpError) as problem:
        raise UsageError(f"solver 'pulp:{name}' refuses its parameters: {problem}") from None
