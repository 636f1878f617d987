"""The solver `plan`: column generation, the restricted master as integer program, branch and price.

1. The price engine gives a plan and prices to begin with.
2. A short subgradient descent collects start columns; relaxation and exact pricing in turn then end
   at the bound of the linear relaxation over whole plans, losses included, without bins of work.
3. Dives fix plans of the relaxation a few at a time (:mod:`edgeflow_opt.solvers.plan.dive`): they
   find the last job within the bound, for which ruin and recreate takes ten times as long.
4. The restricted master is solved in integers by CP-SAT or HiGHS, over the plans that a better
   schedule may contain by their reduced costs; then branch and price on the jobs met, then on modes
   held. Dives, and ruin and recreate at the prices of the master, have a part of the time.
5. The levels below are polished, and given to CP-SAT, as by other solvers.

Where it pays: small and middle sizes up to some 100 jobs on 24 slots, with losses above all, where
the exact pricing takes a last fraction of a job off the bound that bins leave on it. Measured side
by side on a busy machine (two cores shared by a load of ten), limit 10 s, level 1, load 1.6, two
seeds of each of 30, 60 and 100 jobs on 24 slots; value/bound, * = proven:

=============================  ================  ================
restart 30 s, migration 180 s  plan              auto
=============================  ================  ================
30 jobs                        22/22*, 16/16*    22/23, 16/16*
60 jobs                        46/46*, 41/41*    46/46*, 41/42
100 jobs                       75/76, 66/67      75/77, 66/68
weights 1..5, 30 jobs          79/79*, 49/49*    78/80, 49/50
weights 1..5, 60 jobs          153/154, 114/115  153/155, 115/116
weights 1..5, 100 jobs         246/248, 206/207  246/249, 205/208
no losses, 30 jobs             23/23*, 17/17*    23/23*, 17/17*
no losses, 60 jobs             47/47*, 42/42*    47/47*, 42/43
no losses, 100 jobs            77/78, 69/69*     77/78, 69/70
=============================  ================  ================

That was before dives. With them `auto`, which closes by this solver, proves 23 of 24 instances of 100
jobs and 24 slots without losses (loads 0.8, 1.6 and 2.5), each in at most 6.4 CPU seconds and most in
less than two.

With losses HiGHS on the compact model proved none of these even on a quieter machine, and `price`
proved those that `auto` did and once one that this solver did not (154 at weights 1..5, 60 jobs): it
had found the plan, which was what the time of this solver was short of. Where it does not pay:
moldable jobs, whose runs are enumerated elsewhere; and from some 300 jobs on 96 slots, where one
exact pricing of all jobs takes a good part of a second, and a dive 400 of them: there most of the
time is left to the price engine. The restricted master alone (price and branch) rarely has the plans
that a better schedule needs: the proofs come from the bound, the dives and the tree, which takes a few
nodes where the bound is within one step of the value, and hundreds where single slots must be decided.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from edgeflow_opt.errors import UsageError
from edgeflow_opt.formulations.objectives import LEVELS
from edgeflow_opt.formulations.plan_columns import JobPlans, build_master, plans_of
from edgeflow_opt.formulations.plans import walk
from edgeflow_opt.solvers.base import Capabilities, take_flag
from edgeflow_opt.solvers.bounds import attainable_step, rounded_down
from edgeflow_opt.solvers.kernels import BY_LEVELS, PLAN, PRICE
from edgeflow_opt.solvers.lexicographic.level_solve import SMALL_COLUMNS, LevelSolve
from edgeflow_opt.solvers.mip.cpsat import CpSatEngine
from edgeflow_opt.solvers.mip.highs import HighsEngine
from edgeflow_opt.solvers.plan.branch import Branch
from edgeflow_opt.solvers.plan.dive import dive
from edgeflow_opt.solvers.plan.generation import Generation
from edgeflow_opt.solvers.plan.tree import PlanTree
from edgeflow_opt.solvers.polish import polish
from edgeflow_opt.solvers.price.dual import HullDual, minimise
from edgeflow_opt.solvers.price.pricing_data import pricing_data
from edgeflow_opt.solvers.price.search import PriceSearch

if TYPE_CHECKING:
    from edgeflow_opt.problem import EpochProblem
    from edgeflow_opt.problem.arrays import BoolArray, FloatArray, IntArray, ProblemArrays
    from edgeflow_opt.solvers.base import Draft, SolveOptions
    from edgeflow_opt.solvers.control import SolveControl
    from edgeflow_opt.solvers.mip.engine import Engine
    from edgeflow_opt.solvers.plan.relaxation import Relaxed
    from edgeflow_opt.solvers.price.dual import DualResult

#: Share of the time limit for the price engine, whose plan and bound this solver begins with, where
#: column generation can be expected to close the gap, and where it cannot.
_PRICE_SHARE, _PRICE_SHARE_LARGE = 0.25, 0.85

#: Share of the time left for level 1, where levels below are wanted too.
_FIRST_LEVEL_SHARE = 0.8

#: Share of the time left for the polish before CP-SAT is asked about the levels below.
_POLISH_SHARE = 0.6

#: Share of the time left in which CP-SAT must be expected to take in the model of the levels below.
_BELOW_SHARE = 0.3

#: Subgradient steps whose plans are the start columns.
_DESCENT_STEPS = 20

#: Most plans of a restricted master that is solved as an integer program.
_MOST_PLANS = 2000

#: Share of the time left of level 1 for one integer program over all jobs, and for one over the
#: jobs of a node.
_MASTER_SHARE, _NODE_SHARE = 0.2, 0.05

#: Wall seconds kept back for checking the plan, per job.
_RESERVE_PER_JOB_S = 2e-4

#: Seconds for the price engine without a time limit, and for an integer program at most: without
#: them they would never end. In deterministic solves an integer program gets all of it, so that its
#: end does not depend on the clock.
_PRICE_S, _MASTER_S = 5.0, 10.0

#: An integer program over the same jobs is worth another look with so many times the plans.
_MORE_PLANS = 1.15

#: Share of the time left for dives at the root, and time for dives beside the tree, as a share of
#: that of the tree.
_FIRST_DIVES_SHARE, _DIVE_SHARE = 0.2, 1.0

#: Dives at the root at most.
_FIRST_DIVES = 40

#: Time for ruin and recreate beside the tree, as a share of that of the tree, and moves at a time.
_SEARCH_SHARE, _MOVES = 0.4, 50

#: Where no step of the weights is known: what counts as better, as in ``optimal``.
_LEAST_GAIN = 5e-7

MASTERS = ("cpsat", "highs")


class PlanSolver:
    """Column generation over whole plans, losses priced exactly; branch and price for the proof."""

    name = "plan"
    capabilities = Capabilities(
        summary="column generation over whole plans, then branch and price; strong with losses",
        exact=True,
        features=frozenset({"losses", "must_meet", "moldable", "best_effort"}),
        requires=("highspy", "ortools", "numba"),
        kernels=(*BY_LEVELS, PRICE, PLAN),
        params={
            "master": "'cpsat' (default) or 'highs': who solves the restricted master in integers",
            "prices": "false: without plan and bound of the price engine (default true)",
            "nodes": "nodes of the tree at most (default: until the limit; 0 = price and branch)",
        },
    )

    def solve(
        self,
        problem: EpochProblem,
        arrays: ProblemArrays,
        options: SolveOptions,
        control: SolveControl,
    ) -> Draft:
        """See :meth:`edgeflow_opt.solvers.base.Solver.solve`."""
        master = options.params.get("master", MASTERS[0])
        if master not in MASTERS:
            raise UsageError(
                f"parameter 'master' of solver 'plan': must be 'cpsat' or 'highs', got {master!r}"
            )
        nodes = options.params.get("nodes")
        whole = isinstance(nodes, int) and not isinstance(nodes, bool)
        if nodes is not None and (not whole or nodes < 0):
            raise UsageError(
                f"parameter 'nodes' of solver 'plan': must be a whole number >= 0, got {nodes!r}"
            )
        prices = take_flag(options, "prices", default=True, solver=self.name)
        engine: Engine = CpSatEngine() if master == "cpsat" else HighsEngine()
        plain = dataclasses.replace(options, params={})
        work = LevelSolve(problem, arrays, plain, control, CpSatEngine())
        with control.interruptible():
            work.offer_starts()
            if prices:
                small = work.columns() <= SMALL_COLUMNS
                share = _PRICE_SHARE if small else _PRICE_SHARE_LARGE
                seconds = share * control.left_s if control.left_s < np.inf else _PRICE_S
                work.use_prices(seconds, fixing=False)
            if not work.closed and not control.stopped:
                share = _FIRST_LEVEL_SHARE if options.levels > 1 else 1.0
                # Turning the plan into a checked schedule takes time in plain Python.
                reserve_s = min(0.2 * control.left_s, 0.05 + _RESERVE_PER_JOB_S * arrays.num_jobs)
                part = control.part(share * control.left_s - reserve_s)
                with part.interruptible():
                    close_first_level(work, part, engine, nodes)
                if work.statistics.get("open_nodes") and not work.closed and not part.stopped:
                    # Moldable jobs in shares of runs, which cannot be branched on here.
                    work.engine = HighsEngine()
                    work.first_level(share=share)
                    work.engine = CpSatEngine()
            polish(work, _POLISH_SHARE * control.left_s)
            # Building that model is not interrupted: it must be small for the time left.
            if work.fits(_BELOW_SHARE * control.left_s, LEVELS):
                work.levels_below()
        return work.draft()


def close_first_level(
    work: LevelSolve,
    control: SolveControl,
    master: Engine | None = None,
    most_nodes: int | None = None,
    workers: int | None = None,
) -> None:
    """Bound level 1 of `work` by column generation, and close what is open by branch and price.

    For any solver that works level by level: what is found goes to the incumbent and the bound of
    `work`, nothing else is changed.

    Parameters
    ----------
    control
        The part of the clock that this may take.
    master
        Solves the restricted master in integers; None = CP-SAT.
    most_nodes
        Nodes of the tree at most; None = until `control` says stop.
    workers
        Threads of it; None = those of the options.
    """
    if workers is not None:
        options = dataclasses.replace(work.options, workers=workers)
    else:
        options = work.options
    _FirstLevel(work, control, options, master or CpSatEngine(), most_nodes).run()


class _FirstLevel:
    """The way of this solver through level 1."""

    def __init__(
        self,
        work: LevelSolve,
        control: SolveControl,
        options: SolveOptions,
        engine: Engine,
        most_nodes: int | None,
    ) -> None:
        self._options = options
        self._work, self._control, self._engine = work, control, engine
        self._most_nodes = most_nodes
        self._arrays = arrays = work.arrays
        self._data = pricing_data(arrays)
        workers = 1 if options.deterministic else options.workers
        self._workers = workers
        self._generation = Generation(self._data, workers, control)
        self._weights = arrays.weight[arrays.has_deadline]
        self._step = attainable_step(self._weights)
        self._improver: PriceSearch | None = None
        self._random = np.random.default_rng(options.seed)
        self._dive_s = 0.0
        self._tried: dict[bytes, int] = {}
        """Plans of the last integer program over each set of jobs."""

    def run(self) -> None:
        """Bound level 1 by column generation, then close what is open."""
        work, control, generation = self._work, self._control, self._generation
        dual = minimise(HullDual(self._data, self._workers), None, 80, lambda: control.stopped)
        if dual.bound < 0.0:
            work.note_infeasible()
            return
        if work.incumbent.plan is not None:
            self._add_plan(work.incumbent.plan)
        dual = generation.descend(dual, _DESCENT_STEPS, lambda: control.stopped)
        self._tell(dual.bound)
        answer = generation.node(dual, Branch.root(self._data), self._aim(), to_the_end=True)
        self._note(answer.dual)
        if answer.dual.bound < 0.0:
            work.note_infeasible()
            return
        self._tell(answer.dual.bound)
        if work.closed or control.stopped:
            return
        self._improver = PriceSearch(self._data, answer.dual, work.options.seed + 2)
        self._dive(answer.dual, _FIRST_DIVES_SHARE * control.left_s, _FIRST_DIVES)
        if not work.closed:
            self._solve_master(answer.dual)
        if not work.closed and self._most_nodes != 0:
            self._search(answer.dual)
        self._note(answer.dual)

    def _search(self, root: DualResult) -> None:
        """Branch until the tree is done, or time or nodes are up."""
        work = self._work
        tree = PlanTree(
            self._arrays, self._generation, root, value=self._value, aim=self._aim,
            rounded=self._rounded, take=self._take,
        )  # fmt: skip
        masters = 2 * self._generation.num_plans
        while not tree.done and not self._control.stopped:
            if self._most_nodes is not None and tree.nodes >= self._most_nodes:
                break
            begin = self._control.elapsed_s
            tree.step()
            self._tell(tree.bound)
            taken = self._control.elapsed_s - begin
            self._dive(root, _DIVE_SHARE * taken, 1)
            self._improve(_SEARCH_SHARE * taken)
            if self._generation.num_plans > masters:
                masters *= 2
                self._solve_master(root)
        work.statistics["nodes"] = tree.nodes
        work.statistics["open_nodes"] = tree.open_nodes
        if tree.done and work.incumbent.plan is None and tree.bound == -np.inf:
            work.note_infeasible()

    def _dive(self, root: DualResult, seconds: float, times: int) -> None:
        """Dive for better schedules: at most `seconds`, which deterministic solves do not heed.

        And at most so many `times`. Seconds that a dive takes more are taken off the next ones.
        """
        work, steady = self._work, self._options.deterministic
        self._dive_s = min(self._dive_s, 0.0) + seconds
        while times > 0 and not self._control.stopped and not work.closed:
            if self._dive_s <= 0.0 and not steady:
                return
            begin = self._control.elapsed_s
            chosen = dive(self._generation, root, self._aim(), self._random)
            work.statistics["dives"] = work.statistics.get("dives", 0) + 1
            if chosen is not None:
                plans = self._generation.plans()
                self._offer(JobPlans(plans.job[chosen], plans.rows[chosen]), np.ones(len(chosen)))
                self._tell(root.bound)
            self._dive_s -= self._control.elapsed_s - begin
            times -= 1

    def _improve(self, seconds: float) -> None:
        """Look for a better schedule by ruin and recreate at the prices of the master."""
        improver, incumbent = self._improver, self._work.incumbent
        if improver is None:
            return
        if incumbent.plan is not None and self._value() > self._data.weight[improver.met].sum():
            met = walk(self._arrays, incumbent.plan).met & self._data.priced
            rows, whole = self._data.in_kept_modes(incumbent.plan)
            improver.adopt(rows, met & whole)
        steady, until = self._work.options.deterministic, self._control.elapsed_s + seconds
        while not self._control.stopped and not self._work.closed:
            if improver.improve(_MOVES) > 0.0:
                plan = improver.filled_plan(self._arrays, left_over=False)
                if incumbent.offer(plan, "plan"):
                    self._add_plan(plan)
            if steady or self._control.elapsed_s >= until:
                return

    def _value(self) -> float:
        """Return the value of the incumbent; less than nothing where there is none."""
        value = self._work.incumbent.level_1
        return -1.0 if value is None else value

    def _aim(self) -> float:
        """Return the least value that is better than the incumbent's."""
        value = self._work.incumbent.level_1
        if value is None:
            return 0.0
        if self._step is None:
            return value + _LEAST_GAIN * max(1.0, abs(value))
        return (round(value / self._step) + 1) * self._step

    def _rounded(self, bound: float) -> float:
        return rounded_down(bound, self._weights)

    def _tell(self, bound: float) -> None:
        """Take note of a bound on all that is not in the incumbent."""
        if self._work.incumbent.plan is None:
            known = bound
        else:
            # What lies below the next value that can be reached is no better than the incumbent.
            below = self._value() if self._step is not None else self._aim()
            known = max(below, bound) if bound >= self._aim() else below
        known = self._rounded(max(0.0, known))
        self._control.report("plan", bound=known)
        self._work.tighten(known)

    def _note(self, dual: DualResult) -> None:
        statistics, generation = self._work.statistics, self._generation
        statistics["master_bound"] = dual.bound
        statistics["plans"] = generation.num_plans
        statistics["rounds"] = generation.rounds

    def _add_plan(self, plan: IntArray) -> None:
        """Make the plans of the jobs that `plan` meets known."""
        met = walk(self._arrays, plan).met & self._data.priced
        plans = plans_of([np.where(met[:, None], plan, -1)])
        rows, whole = self._data.in_kept_modes(plans.rows)
        self._generation.add(plans.job[whole], rows[whole])

    def _offer(self, plans: JobPlans, x: FloatArray) -> bool:
        """Offer a solution of the master; tell whether it is better."""
        matrix = plans.chosen(self._arrays, x)
        plan = np.where(matrix >= 0, self._data.mode_id[matrix], -1)
        return self._work.incumbent.offer(plan, "plan")

    def _solve_master(self, dual: DualResult) -> None:
        """Solve the restricted master in integers, without plans that no better schedule has.

        At prices with bound L, a schedule with a plan of priced cost c of job j is worth at most
        L - (c - c_j) - max(0, c_j - w_j), and so is no better where that is below the aim.
        """
        plans, data = self._generation.plans(), self._data
        columns = self._columns(plans)
        least = np.where(np.isfinite(dual.job_costs), dual.job_costs, 0.0)[plans.job]
        weight = data.weight[plans.job]
        loss = columns.priced(dual.prices.ravel()) - np.minimum(least, weight)
        spare = dual.bound - self._aim() + 1e-6 * max(1.0, abs(dual.bound))
        kept = np.flatnonzero(loss <= spare)
        if len(kept) > _MOST_PLANS:
            kept = np.sort(kept[np.argsort(loss[kept], kind="stable")[:_MOST_PLANS]])
        must = data.must_meet & data.priced
        self._solve_integers(plans, kept, must, _MASTER_SHARE, at_least=True)

    def _take(self, relaxed: Relaxed, wanted: BoolArray) -> bool:
        """Look among the known plans for a schedule that meets the jobs `wanted`."""
        plans = self._generation.plans()
        whole = np.abs(relaxed.share - np.rint(relaxed.share)) < 1e-6
        if whole.all():
            return self._offer(plans, relaxed.share)
        kept = np.flatnonzero(wanted[plans.job])
        key = wanted.tobytes()
        if len(kept) < _MORE_PLANS * self._tried.get(key, 0):
            return False
        self._tried[key] = len(kept)
        return self._solve_integers(plans, kept, wanted, _NODE_SHARE, at_least=False)

    def _columns(self, plans: JobPlans) -> Any:
        """Return plans in modes of the pricing data as columns of the master."""
        rows = np.where(plans.rows >= 0, self._data.mode_id[plans.rows], -1)
        return JobPlans(plans.job, rows).columns(self._arrays)

    def _solve_integers(
        self, plans: JobPlans, kept: IntArray, obliged: BoolArray, share: float, *, at_least: bool
    ) -> bool:
        """Solve the master of some plans; tell whether there is a better schedule in it."""
        some = JobPlans(plans.job[kept], plans.rows[kept])
        if not len(kept):
            return False
        model = build_master(self._columns(some), self._arrays.capacity.ravel(), obliged)
        value, aim = self._value(), self._aim()
        floor = value + 0.5 * (aim - value) if at_least else None
        model = model.with_objective(self._data.weight[some.job], at_least=floor)
        better, steady = False, self._work.options.deterministic

        def take(x: FloatArray) -> None:
            nonlocal better
            better = self._offer(some, x) or better

        answer = self._engine.maximise(
            model,
            rounding="pessimistic",
            hint=None,
            seconds=min(_MASTER_S, (1.0 if steady else share) * self._control.left_s),
            options=self._options,
            control=self._control,
            on_incumbent=take,
        )
        if answer.x is not None:
            take(answer.x)
        self._work.statistics["masters"] = self._work.statistics.get("masters", 0) + 1
        return better


SOLVER = PlanSolver()


def warm_up() -> None:
    """Compile the kernels, or load them from the cache."""
    from edgeflow_opt.formulations.plans import warm_up_arrays
    from edgeflow_opt.solvers.plan.pricing import PlanPricing

    data = pricing_data(warm_up_arrays())
    pricing = PlanPricing(data, 1, lambda: False)
    pricing.price(np.zeros(data.capacity.shape), Branch.root(data))
