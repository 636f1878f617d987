"""The front door of the solvers: one way in for every solver, one checked result out."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib
import importlib.util
import logging
import sys
import threading
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from edgeflow_opt._version import __version__
from edgeflow_opt.errors import (
    CallbackError,
    EdgeflowError,
    InvalidScheduleError,
    SolverFaultError,
    SolverUnavailableError,
    UnsupportedError,
    UsageError,
    how_to_install,
    is_ctrl_c,
)
from edgeflow_opt.problem import (
    EpochProblem,
    Limit,
    Schedule,
    SolveStatus,
    check,
    evaluate,
)
from edgeflow_opt.problem.arrays import arrays_of
from edgeflow_opt.problem.claims import REPORT_TOLERANCE, claim_tolerance
from edgeflow_opt.problem.types import expect
from edgeflow_opt.problem.values import is_finite, is_whole, shown
from edgeflow_opt.registry import Registry
from edgeflow_opt.solvers.base import Draft, SolveOptions, SolveResult, features_of
from edgeflow_opt.solvers.capacity_prices import CapacityPrices
from edgeflow_opt.solvers.control import SolveControl
from edgeflow_opt.solvers.kernels import PLANS
from edgeflow_opt.solvers.units import Unit, in_unit_of_solvers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgeflow_opt.solvers.base import Solver

logger = logging.getLogger(__name__)

#: Levels of the lexicographic objective: met, progress, leftover, cost, reconfigurations.
_NUM_LEVELS = 5

#: Most threads that can be asked for.
_MOST_WORKERS = 1024

#: The solvers by name. Adding one is one module and one line here.
SOLVERS = Registry(
    "solver",
    "edgeflow_opt.solvers",
    {
        "auto": "edgeflow_opt.solvers.auto:SOLVER",
        "greedy": "edgeflow_opt.solvers.greedy:SOLVER",
        "edgeflow-select": "edgeflow_opt.solvers.greedy:SELECT_SOLVER",
        "cpsat": "edgeflow_opt.solvers.cpsat:SOLVER",
        "highs": "edgeflow_opt.solvers.highs:SOLVER",
        "price": "edgeflow_opt.solvers.price:SOLVER",
        "plan": "edgeflow_opt.solvers.plan:SOLVER",
        # A family: its members are pulp:CBC, pulp:HiGHS and so on.
        "pulp": "edgeflow_opt.solvers.pulp:FAMILY",
    },
)


def kernels_of(*names: str) -> tuple[str, ...]:
    """Return the modules whose kernels the solvers `names` call on most instances.

    Raises
    ------
    UsageError
        If a solver is not known.
    """
    needed = (module for name in names for module in SOLVERS.get(name).capabilities.kernels)
    return tuple(dict.fromkeys((PLANS, *needed)))


def solve(
    problem: EpochProblem,
    solver: str = "auto",
    options: SolveOptions | None = None,
    **changes: Any,
) -> SolveResult:
    """Solve an epoch problem and return a schedule that the independent checker has passed.

    Parameters
    ----------
    problem
        The instance.
    solver
        Name of a solver; ``edgeflow solvers`` lists them.
    options
        What to ask of it; None = the defaults.
    **changes
        Changes to single options, e.g. ``time_limit_s=5``.

    Returns
    -------
    result
        Status, limit, schedule, bound, statistics and trace. On Ctrl-C the incumbent, with limit
        ``interrupted``, unless it comes before the solver has begun; where memory is at an end the
        incumbent too, with limit ``memory``.

    Raises
    ------
    UsageError
        If the solver or an option is not known or makes no sense.
    UnsupportedError
        If the solver does not support a feature of the instance; both are named.
    SolverUnavailableError
        If a library that the solver needs is not installed.
    SolverFaultError
        If the solver failed, or contradicts the checker; its best checked schedule comes along.
    CallbackError
        If ``on_progress`` raised; what was found until then comes along.
    """
    expect("argument problem", problem, EpochProblem, "read_problem(path) reads one from a file")
    options = checked_options(SolveOptions() if options is None else options, changes)
    chosen: Solver = SOLVERS.get(solver)
    _refuse_what_is_not_supported(chosen, problem, options)
    seen, unit = in_unit_of_solvers(problem)
    control = SolveControl(
        options.time_limit_s,
        options.on_progress,
        unit.level_1,
        options.cancelled,
        steady=options.deterministic,
    )
    if options.warm_start is not None:
        options = dataclasses.replace(options, warm_start=_start_of(problem, options.warm_start))
    asked = options
    if options.prices is not None and unit.level_1 != 1.0:
        asked = dataclasses.replace(options, prices=options.prices.scaled(1.0 / unit.level_1))
    control.load_kernels(PLANS, *chosen.capabilities.kernels)
    arrays = arrays_of(seen)
    fault: SolverFaultError | None = None
    try:
        draft = chosen.solve(seen, arrays, asked, control)
    except KeyboardInterrupt:
        # It came while the solver was at work in Python, which it could not survive.
        control.cancel()
        draft = _draft_kept(control, Limit.INTERRUPTED, control.bound)
    except MemoryError:
        draft = _draft_kept(control, Limit.MEMORY, control.bound)
    except SolverFaultError as found:
        fault, draft = found, _draft_kept(control)
    except EdgeflowError:
        raise
    except Exception as found:
        if is_ctrl_c(found):
            control.cancel()
            draft = _draft_kept(control, Limit.INTERRUPTED, control.bound)
        else:
            fault = SolverFaultError(
                f"solver '{solver}' failed with {type(found).__name__}: {found}"
            )
            fault.__cause__, draft = found, _draft_kept(control)

    def result() -> SolveResult:
        schedule = _schedule_of(problem, arrays, draft, unit, solver, control)
        if control.interrupted:
            # It may have come after the solver was done: the caller has to know of it all the same.
            schedule = dataclasses.replace(schedule, limit=Limit.INTERRUPTED)
        statistics = {
            "num_jobs": arrays.num_jobs,
            "num_slots": arrays.num_slots,
            "num_modes": arrays.num_modes,
            **draft.statistics,
        }
        return SolveResult(
            schedule=schedule,
            statistics=statistics,
            trace=control.trace,
            prices=None
            if draft.dual is None
            else CapacityPrices.of_slots(problem, draft.dual.prices * unit.level_1),
            options=dataclasses.replace(options, on_progress=None, cancelled=None),
            versions=versions(chosen.capabilities.requires),
        )

    if fault is not None:
        with contextlib.suppress(Exception):
            fault.result = result() if draft.plan is not None else None
        raise fault
    try:
        found_result = result()
    except (KeyboardInterrupt, SystemError) as found:
        if not is_ctrl_c(found):
            raise
        # The first one ends the search; what was found is still told.
        control.cancel()
        found_result = result()
    if control.callback_fault is not None:
        cause = control.callback_fault
        callback_error = CallbackError(
            f"on_progress raised {type(cause).__name__}: {cause}; what was found until then is the "
            "attribute 'result' of this exception"
        )
        callback_error.result = found_result
        raise callback_error from cause
    return found_result


def _start_of(problem: EpochProblem, schedule: Schedule) -> Schedule | None:
    """Return `schedule`, or what can be carried over of it to `problem`; None where that is nothing.

    Raises
    ------
    UsageError
        If it is a schedule of other jobs altogether.
    """
    if check(problem, schedule).valid:
        return schedule
    from edgeflow_opt.formulations.carry_over import carried_over
    from edgeflow_opt.formulations.plans import allocations_of

    jobs = {allocation.job for allocation in schedule.allocations}
    if jobs and jobs.isdisjoint(problem.job_index):
        raise UsageError(
            "option warm_start: has no job of this instance; give a schedule of it, or of an earlier "
            "epoch"
        )
    arrays = arrays_of(problem)
    plan = carried_over(problem, arrays, schedule.allocations)
    allocations = allocations_of(problem, arrays, plan)
    value, outcomes = evaluate(problem, allocations)
    start = Schedule(
        solver=schedule.solver,
        status=SolveStatus.FEASIBLE,
        objective=value,
        allocations=allocations,
        outcomes=outcomes,
    )
    # A deadline that must be met may be missed by it now.
    return start if check(problem, start).valid else None


def _draft_kept(
    control: SolveControl, limit: Limit | None = None, bound: float | None = None
) -> Draft:
    """Return the best plan that a solver has left behind, with what is known about it."""
    plan = control.kept_plan
    return Draft(
        status=SolveStatus.NO_SOLUTION if plan is None else SolveStatus.FEASIBLE,
        limit=limit,
        plan=plan,
        bound=bound,
    )


def checked_options(options: SolveOptions, changes: dict[str, Any]) -> SolveOptions:
    """Return `options` with `changes`, or say which option makes no sense.

    Raises
    ------
    UsageError
        With the name of the option, the rule, the value and the way out.
    """
    expect(
        "argument options",
        options,
        SolveOptions,
        "make one by SolveOptions(…), or name the options",
    )
    names = [field.name for field in dataclasses.fields(SolveOptions)]
    unknown = [name for name in changes if name not in names]
    if unknown:
        raise UsageError(
            f"option {unknown[0]!r} is not known; {_suggestion(unknown[0], names)}"
            f"known are {', '.join(names)}"
        )
    options = dataclasses.replace(options, **changes)
    for name, kind, remedy in (
        ("cancelled", threading.Event, "give None where nobody will set one"),
        ("warm_start", Schedule, "of a result give result.schedule"),
        ("prices", CapacityPrices, "of a result give result.prices"),
        ("params", Mapping, "give a dict of the solver's own parameters"),
    ):
        value = getattr(options, name)
        if value is not None or name == "params":
            expect(f"option {name}", value, kind, remedy)
    if options.on_progress is not None and not callable(options.on_progress):
        raise UsageError(
            f"option on_progress: must be a function of one argument, got {shown(options.on_progress)}"
        )
    limit = options.time_limit_s
    if limit is not None and not (is_finite(limit) and limit > 0):
        raise UsageError(
            f"option time_limit_s: must be a number of seconds above 0 or None, got {shown(limit)}"
        )
    if not isinstance(options.deterministic, bool):
        raise UsageError(
            f"option deterministic: must be true or false, got {shown(options.deterministic)}"
        )
    for name, least in (("seed", 0), ("workers", 1), ("levels", 1)):
        value = getattr(options, name)
        if not is_whole(value) or value < least:
            raise UsageError(
                f"option {name}: must be a whole number >= {least}, got {shown(value)}"
            )
    if options.levels > _NUM_LEVELS:
        raise UsageError(
            f"option levels: must be at most {_NUM_LEVELS}, got {shown(options.levels)}"
        )
    if options.workers > _MOST_WORKERS:
        raise UsageError(
            f"option workers: must be at most {_MOST_WORKERS}, got {shown(options.workers)}"
        )
    if options.seed >= 2**31:
        raise UsageError(f"option seed: must be below 2^31, got {shown(options.seed)}")
    return options


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{close[0]}'? " if close else ""


def _refuse_what_is_not_supported(
    solver: Solver, problem: EpochProblem, options: SolveOptions
) -> None:
    capabilities = solver.capabilities
    for module in capabilities.requires:
        if module not in sys.modules and importlib.util.find_spec(module) is None:
            raise SolverUnavailableError(
                f"solver '{solver.name}' needs the module '{module}', which is not installed; "
                f"{_way_to(module)}, or choose another solver"
            )
    for feature, owner in features_of(problem).items():
        if feature not in capabilities.features:
            from edgeflow_opt.solvers.base import FEATURES

            raise UnsupportedError(
                solver.name, f"{FEATURES[feature]} (needed by {owner})", "choose another solver"
            )
    for name in options.params:
        if name not in capabilities.params:
            known = ", ".join(capabilities.params) or "none"
            raise UsageError(
                f"parameter {name!r} is not one of solver '{solver.name}'; "
                f"{_suggestion(name, capabilities.params)}known are: {known}"
            )


def _way_to(module: str) -> str:
    """Return how to get a module: the extra that brings it, where there is one."""
    return how_to_install("pulp") if module == "pulp" else "install it"


def _schedule_of(
    problem: EpochProblem,
    arrays: Any,
    draft: Draft,
    unit: Unit,
    solver: str,
    control: SolveControl,
) -> Schedule:
    """Turn a draft into a schedule, in the caller's unit of weights, and check it."""
    bound = None if draft.bound is None else draft.bound * unit.level_1
    if draft.plan is None:
        return Schedule(
            solver=solver,
            status=draft.status,
            limit=draft.limit,
            bound=bound,
            seconds=max(0.0, control.elapsed_s),
        )
    from edgeflow_opt.formulations.plans import allocations_of

    allocations = allocations_of(problem, arrays, draft.plan)
    value, outcomes = evaluate(problem, allocations)
    status = draft.status
    if status is SolveStatus.OPTIMAL and bound is not None:
        # What is closed in the unit of solvers need not be so in the caller's.
        open_by = bound - value.level_1
        if claim_tolerance(problem, value.level_1) < open_by <= REPORT_TOLERANCE * unit.level_1:
            status = SolveStatus.FEASIBLE
    schedule = Schedule(
        solver=solver,
        status=status,
        limit=draft.limit,
        objective=value,
        bound=bound,
        allocations=allocations,
        outcomes=outcomes,
        levels=tuple(unit.restored(report) for report in draft.levels),
        seconds=max(0.0, control.elapsed_s),
    )
    report = check(problem, schedule)
    if not report.valid:
        first = report.violations[0]
        raise InvalidScheduleError(
            f"solver '{solver}' produced a schedule that fails the checker "
            f"({len(report.violations)} violations): {first.message}; it is not returned"
        )
    control.report(solver, value.level_1 / unit.level_1, draft.bound)
    return dataclasses.replace(schedule, seconds=max(0.0, control.elapsed_s))


@cache
def versions(modules: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the versions of the package, of Python, numpy, and of `modules`."""
    found = {"edgeflow-opt": __version__, "python": sys.version.split()[0]}
    for module in ("numpy", *modules):
        try:
            found[module] = version(module)
        except PackageNotFoundError:
            continue
    return found
