"""For people who compare: tables, statistics, pictures, reports, experiments at scale.

Light to import: data frames, statistics, pictures and templates are loaded when they are used, and
belong to extras of the package.
"""

from edgeflow_opt.analysis.comparison import Comparison as Comparison
from edgeflow_opt.analysis.comparison import compare as compare
from edgeflow_opt.analysis.history import History as History
from edgeflow_opt.analysis.policy_comparison import PolicyComparison as PolicyComparison
from edgeflow_opt.analysis.policy_comparison import compare_policies as compare_policies
from edgeflow_opt.analysis.policy_rows import PolicyRow as PolicyRow
from edgeflow_opt.analysis.rows import Row as Row
