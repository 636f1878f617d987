"""Kubernetes: pods are let onto nodes, and workloads of Kueue admitted, as a session decides."""

from edgeflow_opt.adapters.kubernetes.extender import PodGate as PodGate
from edgeflow_opt.adapters.kubernetes.extender import make_extender as make_extender
from edgeflow_opt.adapters.kubernetes.kueue import KueueCluster as KueueCluster
from edgeflow_opt.adapters.kubernetes.pods import JOB_LABEL as JOB_LABEL
from edgeflow_opt.adapters.kubernetes.pods import SITE_LABEL as SITE_LABEL
