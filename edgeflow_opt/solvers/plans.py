"""Plan matrices (see :mod:`edgeflow_opt.formulations.plans`)."""

from edgeflow_opt.formulations.plans import PlanWalk as PlanWalk
from edgeflow_opt.formulations.plans import allocations_of as allocations_of
from edgeflow_opt.formulations.plans import empty_plan as empty_plan
from edgeflow_opt.formulations.plans import plan_of as plan_of
from edgeflow_opt.formulations.plans import trim as trim
from edgeflow_opt.formulations.plans import usage as usage
from edgeflow_opt.formulations.plans import walk as walk
