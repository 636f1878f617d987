"""Which GPUs a job holds: the GPU tree, buddy best fit, repacking, and what fragmentation costs.

Pure functions on plain data, usable by any scheduler: :func:`place` takes a cluster, the GPUs that
running jobs hold and the counts wanted, and says who gets which GPUs and who has to move.
"""

from edgeflow_opt.simulation.placement.check import PlacedRun as PlacedRun
from edgeflow_opt.simulation.placement.check import placement_violations as placement_violations
from edgeflow_opt.simulation.placement.place import Placement as Placement
from edgeflow_opt.simulation.placement.place import place as place
from edgeflow_opt.simulation.placement.placer import PLACEMENT_MODES as PLACEMENT_MODES
from edgeflow_opt.simulation.placement.placer import PlacementMetrics as PlacementMetrics
from edgeflow_opt.simulation.placement.topology import Level as Level
from edgeflow_opt.simulation.placement.topology import Topology as Topology
from edgeflow_opt.simulation.placement.tree import GpuTree as GpuTree
