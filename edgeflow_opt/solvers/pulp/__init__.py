"""Every solver that PuLP knows, and any formulation as a model of PuLP."""

from edgeflow_opt.solvers.pulp.model import to_pulp as to_pulp
from edgeflow_opt.solvers.pulp.solver import FAMILY as FAMILY
