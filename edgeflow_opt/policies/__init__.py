"""Online rules: the state of the cluster as a policy sees it, and state -> allocation."""

from edgeflow_opt.policies.base import ClusterState as ClusterState
from edgeflow_opt.policies.base import Decision as Decision
from edgeflow_opt.policies.base import JobState as JobState
from edgeflow_opt.policies.base import Policy as Policy
from edgeflow_opt.policies.registry import POLICIES as POLICIES
from edgeflow_opt.policies.registry import kernels_of_policies as kernels_of_policies
from edgeflow_opt.policies.registry import make_policy as make_policy
from edgeflow_opt.policies.registry import wants_all_counts as wants_all_counts
