"""Constraints beyond those that every instance has: what they are, and those that come along."""

from edgeflow_opt.problem.constraints.base import Constraint as Constraint
from edgeflow_opt.problem.constraints.registry import CONSTRAINTS as CONSTRAINTS
