"""Readers of public traces, rate tables, generators, edge tides.

What a scheduler is fed with: rates of models (:mod:`.rates`), traces (:mod:`.trace`,
:mod:`.readers`), generated traces and instances (:mod:`.generate`, :mod:`.demo`), the capacity
of edge sites over time (:mod:`.tides`), and random outages (:mod:`.outages`).
"""

from edgeflow_opt.workloads.demo import demo_problem as demo_problem
from edgeflow_opt.workloads.demo import demo_trace as demo_trace
from edgeflow_opt.workloads.generate import generate_problem as generate_problem
from edgeflow_opt.workloads.generate import generate_trace as generate_trace
from edgeflow_opt.workloads.outages import Outage as Outage
from edgeflow_opt.workloads.outages import draw_outages as draw_outages
from edgeflow_opt.workloads.outages import with_outages as with_outages
from edgeflow_opt.workloads.rates import DEFAULT_CATALOG as DEFAULT_CATALOG
from edgeflow_opt.workloads.rates import RateCatalog as RateCatalog
from edgeflow_opt.workloads.rates import RateProfile as RateProfile
from edgeflow_opt.workloads.rates import read_rates as read_rates
from edgeflow_opt.workloads.readers import TRACE_FORMATS as TRACE_FORMATS
from edgeflow_opt.workloads.readers import read_trace as read_trace
from edgeflow_opt.workloads.readers import trace_from_bytes as trace_from_bytes
from edgeflow_opt.workloads.readers import write_trace as write_trace
from edgeflow_opt.workloads.tides import cluster as cluster
from edgeflow_opt.workloads.tides import constant_tide as constant_tide
from edgeflow_opt.workloads.tides import daily_tide as daily_tide
from edgeflow_opt.workloads.tides import read_tide as read_tide
from edgeflow_opt.workloads.tides import repeat_tide as repeat_tide
from edgeflow_opt.workloads.tides import shift_tide as shift_tide
from edgeflow_opt.workloads.trace import Trace as Trace
from edgeflow_opt.workloads.trace import TraceJob as TraceJob
