"""The online model: events, the clock, the overhead of reconfiguration, and metrics."""

from edgeflow_opt.simulation.analyser import Analyser as Analyser
from edgeflow_opt.simulation.metrics import DecisionTimes as DecisionTimes
from edgeflow_opt.simulation.metrics import Metrics as Metrics
from edgeflow_opt.simulation.metrics import metrics_of as metrics_of
from edgeflow_opt.simulation.overhead import NO_OVERHEAD as NO_OVERHEAD
from edgeflow_opt.simulation.overhead import ElasticFlowLosses as ElasticFlowLosses
from edgeflow_opt.simulation.overhead import FixedLosses as FixedLosses
from edgeflow_opt.simulation.overhead import JobLosses as JobLosses
from edgeflow_opt.simulation.overhead import Overhead as Overhead
from edgeflow_opt.simulation.overhead import parse_overhead as parse_overhead
from edgeflow_opt.simulation.placement import PLACEMENT_MODES as PLACEMENT_MODES
from edgeflow_opt.simulation.placement import Topology as Topology
from edgeflow_opt.simulation.placement import place as place
from edgeflow_opt.simulation.result import EventRecord as EventRecord
from edgeflow_opt.simulation.result import SimulationResult as SimulationResult
from edgeflow_opt.simulation.result import simulation_document as simulation_document
from edgeflow_opt.simulation.simulator import simulate as simulate
