"""Slurm: held jobs that describe themselves are placed, resized and moved as a session decides."""

from edgeflow_opt.adapters.slurm.cluster import SlurmCluster as SlurmCluster
from edgeflow_opt.adapters.slurm.description import describe_comment as describe_comment
from edgeflow_opt.adapters.slurm.programs import SlurmPrograms as SlurmPrograms
from edgeflow_opt.adapters.slurm.queue import SlurmJob as SlurmJob
