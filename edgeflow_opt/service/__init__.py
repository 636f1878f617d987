"""The solver as a backend of other schedulers: sessions, and a service over HTTP."""

from edgeflow_opt.service.decision import Change as Change
from edgeflow_opt.service.decision import JobReason as JobReason
from edgeflow_opt.service.decision import ReasonCode as ReasonCode
from edgeflow_opt.service.decision import SessionDecision as SessionDecision
from edgeflow_opt.service.events import CapacityChanged as CapacityChanged
from edgeflow_opt.service.events import Event as Event
from edgeflow_opt.service.events import EventBatch as EventBatch
from edgeflow_opt.service.events import JobArrived as JobArrived
from edgeflow_opt.service.events import JobCancelled as JobCancelled
from edgeflow_opt.service.events import JobCompleted as JobCompleted
from edgeflow_opt.service.events import JobPlaced as JobPlaced
from edgeflow_opt.service.events import JobProgressed as JobProgressed
from edgeflow_opt.service.events import JobRevised as JobRevised
from edgeflow_opt.service.events import RateCorrected as RateCorrected
from edgeflow_opt.service.events import events_from_dict as events_from_dict
from edgeflow_opt.service.events import events_to_dict as events_to_dict
from edgeflow_opt.service.options import SessionOptions as SessionOptions
from edgeflow_opt.service.pool import SolverPool as SolverPool
from edgeflow_opt.service.session import EpochSession as EpochSession
