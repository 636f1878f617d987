"""Experiments at scale: suites of cells, run by processes or on a cluster, resumed after a kill."""

from edgeflow_opt.analysis.bench.cells import Cell as Cell
from edgeflow_opt.analysis.bench.records import Record as Record
from edgeflow_opt.analysis.bench.records import read_records as read_records
from edgeflow_opt.analysis.bench.run import Outcome as Outcome
from edgeflow_opt.analysis.bench.run import run_suite as run_suite
from edgeflow_opt.analysis.bench.suite import Suite as Suite
from edgeflow_opt.analysis.bench.suite import read_suite as read_suite
