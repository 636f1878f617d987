"""What is decided: problem and schedule, their rules, their checker and their file formats.

Pure data; this room knows no solver.
"""

from edgeflow_opt.problem.check import check as check
from edgeflow_opt.problem.check import check_history as check_history
from edgeflow_opt.problem.constraints import CONSTRAINTS as CONSTRAINTS
from edgeflow_opt.problem.constraints import Constraint as Constraint
from edgeflow_opt.problem.data import WORK_TOLERANCE as WORK_TOLERANCE
from edgeflow_opt.problem.data import Grid as Grid
from edgeflow_opt.problem.data import Job as Job
from edgeflow_opt.problem.data import Mode as Mode
from edgeflow_opt.problem.data import Running as Running
from edgeflow_opt.problem.data import Site as Site
from edgeflow_opt.problem.epoch import EpochProblem as EpochProblem
from edgeflow_opt.problem.evaluate import evaluate as evaluate
from edgeflow_opt.problem.formats import json_schema as json_schema
from edgeflow_opt.problem.formats import problem_from_dict as problem_from_dict
from edgeflow_opt.problem.formats import problem_to_dict as problem_to_dict
from edgeflow_opt.problem.formats import read_problem as read_problem
from edgeflow_opt.problem.formats import read_schedule as read_schedule
from edgeflow_opt.problem.formats import schedule_from_dict as schedule_from_dict
from edgeflow_opt.problem.formats import schedule_to_dict as schedule_to_dict
from edgeflow_opt.problem.formats import write_problem as write_problem
from edgeflow_opt.problem.formats import write_schedule as write_schedule
from edgeflow_opt.problem.objective import Objective as Objective
from edgeflow_opt.problem.objective import ObjectiveValue as ObjectiveValue
from edgeflow_opt.problem.objective import Weights as Weights
from edgeflow_opt.problem.objective import relative_gap as relative_gap
from edgeflow_opt.problem.schedule import Allocation as Allocation
from edgeflow_opt.problem.schedule import LevelReport as LevelReport
from edgeflow_opt.problem.schedule import Limit as Limit
from edgeflow_opt.problem.schedule import Outcome as Outcome
from edgeflow_opt.problem.schedule import Schedule as Schedule
from edgeflow_opt.problem.schedule import SolveStatus as SolveStatus
from edgeflow_opt.problem.values import MAX_MAGNITUDE as MAX_MAGNITUDE
from edgeflow_opt.problem.violation import CheckReport as CheckReport
from edgeflow_opt.problem.violation import Violation as Violation
