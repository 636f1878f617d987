"""Reports: one self-contained HTML file of a comparison of solvers or policies."""

from edgeflow_opt.analysis.report.pages import comparison_page as comparison_page
from edgeflow_opt.analysis.report.pages import policies_page as policies_page
from edgeflow_opt.analysis.report.pages import write_report as write_report
