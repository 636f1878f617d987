"""Pictures by matplotlib (extra ``plot``): every function takes ``ax=`` and returns the axes.

Colours are told apart by all kinds of colour vision, and are never the only difference.
"""

from edgeflow_opt.analysis.plots.curves import plot_gap as plot_gap
from edgeflow_opt.analysis.plots.curves import plot_profile as plot_profile
from edgeflow_opt.analysis.plots.gantt import plot_gantt as plot_gantt
from edgeflow_opt.analysis.plots.policies import plot_policies as plot_policies
from edgeflow_opt.analysis.plots.policies import plot_sweep as plot_sweep
from edgeflow_opt.analysis.plots.style import save as save
from edgeflow_opt.analysis.plots.usage import plot_usage as plot_usage
from edgeflow_opt.analysis.plots.usage import usage_figure as usage_figure
