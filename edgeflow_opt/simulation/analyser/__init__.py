"""The job analyser: rates that are measured, fitted and corrected instead of known."""

from edgeflow_opt.simulation.analyser.estimates import EstimationMetrics as EstimationMetrics
from edgeflow_opt.simulation.analyser.estimates import RateEstimates as RateEstimates
from edgeflow_opt.simulation.analyser.options import Analyser as Analyser
from edgeflow_opt.simulation.analyser.rate_model import RateModel as RateModel
from edgeflow_opt.simulation.analyser.rate_model import fit_rates as fit_rates
from edgeflow_opt.simulation.analyser.rate_model import left_out_errors as left_out_errors
