"""For people who compare: tables, statistics, pictures, reports, experiments at scale.

Light to import: data frames, statistics, pictures and templates are loaded when they are used, and
belong to extras of the package.
"""

from edgeflow_opt.analysis.comparison import Comparison as Comparison
from edgeflow_opt.analysis.comparison import compare as compare
from edgeflow_opt.analysis.rows import Row as Row
