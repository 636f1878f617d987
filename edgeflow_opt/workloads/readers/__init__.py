"""Readers of public traces. A format more is one module here and one line in the registry."""

from edgeflow_opt.workloads.readers.elasticflow import write_trace as write_trace
from edgeflow_opt.workloads.readers.read import TRACE_FORMATS as TRACE_FORMATS
from edgeflow_opt.workloads.readers.read import read_trace as read_trace
from edgeflow_opt.workloads.readers.read import trace_from_bytes as trace_from_bytes
