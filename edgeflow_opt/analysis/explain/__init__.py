"""Why jobs miss their deadlines, what would save them, and what capacity is worth."""

from edgeflow_opt.analysis.explain.data import Alone as Alone
from edgeflow_opt.analysis.explain.data import Conflict as Conflict
from edgeflow_opt.analysis.explain.data import Contention as Contention
from edgeflow_opt.analysis.explain.data import Explanation as Explanation
from edgeflow_opt.analysis.explain.data import Hold as Hold
from edgeflow_opt.analysis.explain.data import JobExplanation as JobExplanation
from edgeflow_opt.analysis.explain.data import Marginal as Marginal
from edgeflow_opt.analysis.explain.data import Remedy as Remedy
from edgeflow_opt.analysis.explain.front import KERNELS as KERNELS
from edgeflow_opt.analysis.explain.front import explain as explain
