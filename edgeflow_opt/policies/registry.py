"""The policies by name. Adding one is one module and one line here."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import Policy
from edgeflow_opt.problem.values import shown
from edgeflow_opt.registry import Registry
from edgeflow_opt.solvers.kernels import PLANS

#: Every entry is a class whose constructor takes the options of the policy by keyword.
POLICIES = Registry(
    "policy",
    "edgeflow_opt.policies",
    {
        "edgeflow": "edgeflow_opt.policies.edgeflow:EdgeFlowPolicy",
        "edgeflow-select": "edgeflow_opt.policies.edgeflow_select:EdgeFlowSelectPolicy",
        "exact": "edgeflow_opt.policies.exact:ExactPolicy",
        "elasticflow": "edgeflow_opt.policies.elasticflow:ElasticFlowPolicy",
        "elasticflow-edge": "edgeflow_opt.policies.elasticflow_edge:ElasticFlowEdgePolicy",
        "afs": "edgeflow_opt.policies.afs:AfsPolicy",
        "tiresias": "edgeflow_opt.policies.tiresias:TiresiasPolicy",
        "tiresias-gittins": "edgeflow_opt.policies.tiresias:TiresiasGittinsPolicy",
        "gandiva": "edgeflow_opt.policies.gandiva:GandivaPolicy",
        "themis": "edgeflow_opt.policies.themis:ThemisPolicy",
        "chronus": "edgeflow_opt.policies.chronus:ChronusPolicy",
        "edf": "edgeflow_opt.policies.edf:EdfPolicy",
        "edf-knee": "edgeflow_opt.policies.edf:EdfKneePolicy",
        "least-laxity": "edgeflow_opt.policies.least_laxity:LeastLaxityPolicy",
        "fifo": "edgeflow_opt.policies.fifo:FifoPolicy",
        "srpt": "edgeflow_opt.policies.srpt:SrptPolicy",
        "hungarian": "edgeflow_opt.policies.hungarian:HungarianPolicy",
    },
)


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not _is_truth(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not _is_truth(value)


def _is_truth(value: Any) -> bool:
    # That of numpy is not one of Python, and numpy is not loaded for it.
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")


#: What an option may be, by how its parameter is annotated; any other annotation says nothing.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "bool": (_is_truth, "true or false"),
    "int": (_is_whole, "a whole number"),
    "float": (_is_number, "a number"),
    "str": (lambda value: isinstance(value, str), "a word"),
    "Mapping[str, Any]": (
        lambda value: isinstance(value, Mapping),
        "an object of names and values",
    ),
}


def wants_all_counts(name: str) -> bool:
    """Return whether policy `name` is meant for jobs that keep their modes beyond the knee.

    Such a policy has the attribute ``beyond_knee = True`` and is to be given
    ``trace.jobs(beyond_knee=True)``.

    Raises
    ------
    UsageError
        If the policy is not known.
    """
    return bool(getattr(POLICIES.get(name), "beyond_knee", False))


def kernels_of_policies(names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules whose kernels policies call, as their attributes ``kernels`` tell.

    Raises
    ------
    UsageError
        If a policy is not known.
    """
    needed = (module for name in names for module in getattr(POLICIES.get(name), "kernels", ()))
    return tuple(dict.fromkeys((PLANS, *needed)))


def make_policy(name: str, **options: Any) -> Policy:
    """Return a new policy.

    Parameters
    ----------
    name
        Name in the registry.
    **options
        Options of the policy; unknown ones are refused.

    Raises
    ------
    UsageError
        If the policy or an option of it is not known, or a value is not of the kind that the
        option takes.
    """
    policy_class = POLICIES.get(name)
    known = inspect.signature(policy_class).parameters
    for option, value in options.items():
        if option not in known:
            raise UsageError(
                f"option {option!r} is not one of policy '{name}'; known are: "
                f"{', '.join(known) or 'none'}"
            )
        kind, bar, _ = str(known[option].annotation).partition(" | None")
        if kind in _KINDS and not (bar and value is None):
            fits, what = _KINDS[kind]
            if not fits(value):
                raise UsageError(
                    f"option {option}: must be {what}{' or null' if bar else ''}, got {shown(value)}"
                )
    policy: Policy = policy_class(**options)
    return policy
