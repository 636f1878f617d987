"""The constraints by name, and the way between them and their documents."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

import msgspec

from edgeflow_opt.errors import Fault, UsageError
from edgeflow_opt.problem.constraints.base import Constraint, is_constraint
from edgeflow_opt.problem.parsing import value_faults, whole_numbers
from edgeflow_opt.problem.values import plain, shown
from edgeflow_opt.registry import Registry

#: The classes of constraints by type. Adding one is one module and one line here.
CONSTRAINTS = Registry(
    "constraint",
    "edgeflow_opt.constraints",
    {
        "group_quota": "edgeflow_opt.problem.constraints.group_quota:GroupQuota",
        "anti_affinity": "edgeflow_opt.problem.constraints.anti_affinity:AntiAffinity",
        "gpu_budget": "edgeflow_opt.problem.constraints.gpu_budget:GpuBudget",
        "least_met": "edgeflow_opt.problem.constraints.least_met:LeastMet",
    },
)


def constraint_from_dict(document: Any, index: int) -> Constraint | tuple[Fault, ...]:
    """Return the constraint that a parsed JSON object describes, or every fault of it.

    Parameters
    ----------
    document
        With the key ``type``, and the parameters of that type.
    index
        Its place in the instance, from 0.
    """
    owner = f"constraints[{index}]"
    if not isinstance(document, dict):
        return (Fault(owner, "", "must be a JSON object", shown(document)),)
    name = document.get("type")
    if not isinstance(name, str):
        rule = "must be a text" if "type" in document else "is missing"
        return (Fault(owner, "type", rule, shown(name), f"known are {_known()}"),)
    if name not in CONSTRAINTS.names():
        rule = "must be a constraint of the package or of an installed plug-in"
        way = f"install the package that brings it; known are {_known()}"
        return (Fault(owner, "type", rule, shown(name), way),)
    try:
        kind = _class_of(name)
    except UsageError as broken:
        return (Fault(owner, "type", str(broken)),)
    owner = f"{owner} ({name})"
    given = {key: value for key, value in document.items() if key != "type"}
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    kinds = typing.get_type_hints(kind)
    faults = [
        Fault(
            owner, shown(key), "is not a known key",
            remedy=f"known are {', '.join(('type', *fields))}",
        )
        for key in given
        if key not in fields
    ]  # fmt: skip
    for key, field in fields.items():
        if key in given:
            faults += value_faults(whole_numbers(given[key]), kinds[key], owner, key)
        elif field.default is field.default_factory is dataclasses.MISSING:
            faults.append(Fault(owner, key, "is missing", remedy=f"add the key {key!r}"))
    if faults:
        return tuple(faults)
    try:
        found: Constraint = msgspec.convert(whole_numbers(given), kind, strict=True)
    except (msgspec.ValidationError, ValueError, TypeError) as fault:
        return (Fault(owner, "", str(fault)),)
    return found


def constraint_to_dict(constraint: Constraint) -> dict[str, Any]:
    """Return `constraint` as a JSON-ready object; parameters at their defaults are left out."""
    document: dict[str, Any] = {"type": constraint.type}
    for field in dataclasses.fields(constraint):  # type: ignore[arg-type]
        value = getattr(constraint, field.name)
        if field.default is dataclasses.MISSING or value != field.default:
            document[field.name] = msgspec.to_builtins(plain(value))
    return document


def _class_of(name: str) -> Any:
    """Return the class of a type, once it has been looked at whether it is one.

    Raises
    ------
    UsageError
        If its plug-in cannot be loaded, or is no constraint of that type.
    """
    kind = CONSTRAINTS.get(name)
    if not (
        isinstance(kind, type)
        and issubclass(kind, Constraint)
        and dataclasses.is_dataclass(kind)
        and getattr(kind, "type", None) == name
    ):
        raise UsageError(
            f"constraint {name!r} of a plug-in must be a dataclass derived from Constraint whose "
            f"'type' is {name!r}, got {shown(kind)}; repair or remove that package"
        )
    return kind


def _known() -> str:
    return ", ".join(CONSTRAINTS.names())


def constraint_faults(constraints: Any) -> list[Fault]:
    """Return the faults of what is given as constraints in Python, their parameters apart."""
    if not isinstance(constraints, tuple):
        return [Fault("instance", "constraints", "must be a tuple", shown(constraints))]
    rule = "must be a dataclass derived from Constraint, its 'type' an ASCII identifier"
    return [
        Fault("instance", f"constraints[{index}]", rule, shown(constraint))
        for index, constraint in enumerate(constraints)
        if not is_constraint(constraint)
    ]
