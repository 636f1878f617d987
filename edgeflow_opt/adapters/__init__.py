"""Adapters: clusters of other systems that follow the decisions of an epoch session.

One module per system; each imports the libraries or calls the programs of its system only when used.
"""

from edgeflow_opt.adapters.base import AdapterError as AdapterError
from edgeflow_opt.adapters.base import Cluster as Cluster
from edgeflow_opt.adapters.base import advance as advance
from edgeflow_opt.adapters.base import follow as follow
