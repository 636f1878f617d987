"""Compiled kernels on plan matrices (see :mod:`edgeflow_opt.formulations.plan_kernels`)."""

from edgeflow_opt.formulations.plan_kernels import walk_plans as walk_plans
