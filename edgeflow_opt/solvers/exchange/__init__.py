"""Models out to other tools, and their solutions back in."""

from edgeflow_opt.solvers.exchange.export import FORMATS as FORMATS
from edgeflow_opt.solvers.exchange.export import export as export
from edgeflow_opt.solvers.exchange.import_solution import Imported as Imported
from edgeflow_opt.solvers.exchange.import_solution import import_solution as import_solution
from edgeflow_opt.solvers.exchange.solution_files import SolutionFile as SolutionFile
from edgeflow_opt.solvers.exchange.solution_files import read_solution as read_solution
