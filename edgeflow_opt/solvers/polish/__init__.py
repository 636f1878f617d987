"""The levels below the first: a few jobs at a time are planned anew for the better."""

from edgeflow_opt.solvers.polish.polisher import Polisher as Polisher
from edgeflow_opt.solvers.polish.polisher import polish as polish
from edgeflow_opt.solvers.polish.polisher import warm_up as warm_up
