"""The reference of the Python interface: every public name of every public package, once."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import types
from typing import Any

from markup import plain, table

PACKAGE = "edgeflow_opt"


def _parts(package_name: str, *passed_over: str) -> tuple[str, ...]:
    """Return a package and its modules, but for those passed over: what the package offers itself."""
    package = importlib.import_module(f"{PACKAGE}.{package_name}")
    found = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    parts = (f"{package_name}.{name}" for name in found if name not in passed_over)
    return (package_name, *parts)


def _policies() -> tuple[str, ...]:
    """Return the modules of the built-in policies, in the order of their registry."""
    from edgeflow_opt.policies import POLICIES

    built_in = vars(POLICIES)["_built_in"].values()
    modules = (entry.partition(":")[0].removeprefix(f"{PACKAGE}.") for entry in built_in)
    return tuple(dict.fromkeys(modules))


#: Pages of the reference, and the packages and modules of ``edgeflow_opt`` that each describes.
PAGES: dict[str, tuple[str, ...]] = {
    "problem": ("problem", *_parts("problem.constraints", "base", "registry")),
    "solvers": (
        "solvers",
        "solvers.exchange",
        "solvers.pulp",
        "solvers.base",
        "solvers.auto",
        "solvers.greedy.options",
        "solvers.price.dual",
        "solvers.plan.solver",
    ),
    "policies": ("policies", *_policies()),
    "workloads": ("workloads",),
    "simulation": ("simulation", "simulation.placement", "simulation.analyser"),
    "clairvoyant": ("clairvoyant",),
    "analysis": (
        "analysis",
        "analysis.profiles",
        "analysis.statistics",
        "analysis.explain",
        "analysis.plots",
        "analysis.report",
        "analysis.bench",
    ),
    "service": ("service", "service.settings"),
    "adapters": _parts("adapters", "base"),
    "errors": ("errors", "registry", "versions"),
    "formulations": (
        "problem.arrays",
        "problem.runs",
        "formulations.plans",
        "formulations.sparse",
        "formulations.malleable",
        "formulations.moldable",
        "formulations.plan_master",
        "formulations.named",
        "formulations.names",
        "formulations.objectives",
        "formulations.carry_over",
    ),
}


def public_names(module_name: str) -> list[str]:
    """Return the public names of a package: what its ``__init__`` offers; of a module: its own."""
    module = importlib.import_module(f"{PACKAGE}.{module_name}")
    is_package = hasattr(module, "__path__")
    source = inspect.getsource(module)
    names = []
    for name, thing in vars(module).items():
        if name.startswith("_") or isinstance(thing, types.ModuleType):
            continue
        home = getattr(thing, "__module__", None) or ""
        if inspect.isclass(thing) or inspect.isfunction(thing):
            if home.startswith(PACKAGE) and (is_package or home == module.__name__):
                names.append(name)
        elif name.isupper() and (
            is_package or re.search(rf"^#:.*\n{name}\b", source, re.MULTILINE)
        ):
            names.append(name)
    # In the order in which a package offers them; a module in that of its lines.
    return sorted(names, key=lambda name: source.find(f" as {name}\n")) if is_package else names


def written_in(module_name: str, name: str) -> str:
    """Return the module in which a constant is written that a package offers: it has the comment."""
    source = inspect.getsource(importlib.import_module(module_name))
    offered = re.search(rf"^from (\S+) import {name} as {name}$", source, re.MULTILINE)
    return written_in(offered[1], name) if offered else module_name


@functools.cache
def places() -> dict[str, tuple[str, str]]:
    """Return page and module of each described thing, by the path under which it is described."""
    found: dict[str, tuple[str, str]] = {}
    seen: set[int] = set()
    top = importlib.import_module(PACKAGE)
    for page_name, modules in PAGES.items():
        for module_name in modules:
            module = importlib.import_module(f"{PACKAGE}.{module_name}")
            for name in public_names(module_name):
                thing = getattr(module, name)
                if id(thing) in seen:
                    continue
                seen.add(id(thing))
                if name in top.__all__ and getattr(top, name) is thing:
                    home = PACKAGE
                elif inspect.isclass(thing) or inspect.isfunction(thing):
                    home = module.__name__
                else:
                    home = written_in(module.__name__, name)
                found[f"{home}.{name}"] = (page_name, module_name)
    for name in top.__all__:
        # What the package offers and none of its parts does stands with the part that it is from.
        thing = getattr(top, name)
        if not name.startswith("_") and id(thing) not in seen:
            part = thing.__module__.split(".")[1]
            page_name = next((page for page, modules in PAGES.items() if part in modules), "")
            if not page_name:
                page_name, part = "errors", "errors"
            found[f"{PACKAGE}.{name}"] = (page_name, part)
    return found


def described() -> tuple[str, ...]:
    """Return the paths under which things are described."""
    return tuple(places())


def page(page_name: str) -> str:
    """Return a page of the reference."""
    text = ""
    for module_name in PAGES[page_name]:
        module = importlib.import_module(f"{PACKAGE}.{module_name}")
        if len(PAGES[page_name]) > 1:
            text += f"\n## {PACKAGE}.{module_name}\n"
        text += "\n```{eval-rst}\n"
        text += f".. automodule:: {module.__name__}\n   :no-members:\n\n"
        mine = [path for path, place in places().items() if place == (page_name, module_name)]
        # First what most programs need.
        for path in sorted(mine, key=lambda path: path.count(".") > 1):
            owner, _, name = path.rpartition(".")
            text += _directive(path, getattr(importlib.import_module(owner), name))
        text += "```\n"
    return text


def _directive(path: str, thing: Any) -> str:
    if inspect.isclass(thing):
        kind = "exception" if issubclass(thing, BaseException) else "class"
        options = "   :members:\n"
        if kind == "exception":
            options += "   :show-inheritance:\n"
        return f".. auto{kind}:: {path}\n{options}\n"
    if inspect.isfunction(thing):
        return f".. autofunction:: {path}\n\n"
    return f".. autodata:: {path}\n   :no-value:\n\n"


def index() -> str:
    """Return a table of the public face: every name of ``edgeflow_opt`` with its first sentence."""
    top = importlib.import_module(PACKAGE)
    rows = []
    for name in top.__all__:
        if name.startswith("__"):
            continue
        thing = getattr(top, name)
        lines = (inspect.getdoc(thing) or "").split("\n\n")
        role = "func" if inspect.isfunction(thing) else "class"
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            role = "exc"
        link = f"{{py:{role}}}`{name} <{PACKAGE}.{name}>`"
        text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", lines[0])
        rows.append((link, plain(text).replace("\\`\\`", "`")))
    return table(("name", "what it is"), rows)
