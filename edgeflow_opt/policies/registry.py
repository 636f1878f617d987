"""The policies by name. Adding one is one module and one line here."""

from __future__ import annotations

import inspect
from typing import Any

from edgeflow_opt.errors import UsageError
from edgeflow_opt.policies.base import Policy
from edgeflow_opt.registry import Registry

#: Every entry is a class whose constructor takes the options of the policy by keyword.
POLICIES = Registry(
    "policy",
    "edgeflow_opt.policies",
    {
        "edgeflow": "edgeflow_opt.policies.edgeflow:EdgeFlowPolicy",
        "edgeflow-select": "edgeflow_opt.policies.edgeflow_select:EdgeFlowSelectPolicy",
        "exact": "edgeflow_opt.policies.exact:ExactPolicy",
    },
)


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
        If the policy or an option of it is not known.
    """
    policy_class = POLICIES.get(name)
    known = list(inspect.signature(policy_class).parameters)
    for option in options:
        if option not in known:
            raise UsageError(
                f"option {option!r} is not one of policy '{name}'; known are: "
                f"{', '.join(known) or 'none'}"
            )
    policy: Policy = policy_class(**options)
    return policy
