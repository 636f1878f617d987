"""Cross-references of docstrings: each must name what exists, and leads to where it is described.

Docstrings name things as their module sees them, or by any of the modules that offer them. Here a
name is looked up as Python would do it; what has no description becomes plain text, and what does
not exist is a warning, and so an error of the build.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import inspect
import itertools
import re
import sys
from typing import Any

from api_pages import described, written_in
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

PACKAGE = "edgeflow_opt"
_ROLE = re.compile(
    r":(?P<role>class|func|meth|mod|attr|exc|data|obj):`(?P<short>~?)(?P<name>[\w.]+)`"
)

#: How signatures write the arrays of :mod:`edgeflow_opt.problem.arrays`, and their names there.
_ARRAYS = {
    f"~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[{kind}]]": name
    for kind, name in (
        ("~numpy.float64", "FloatArray"),
        ("~numpy.int64", "IntArray"),
        ("~numpy.bool", "BoolArray"),
        ("~numpy.bool_", "BoolArray"),
    )
}


def found(path: str) -> tuple[bool, Any]:
    """Whether a dotted path names something of the package, and what."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            fields = getattr(thing, "__dataclass_fields__", {})
            if hasattr(thing, part):
                thing = getattr(thing, part)
            elif part in fields:
                return True, None
            else:
                return False, None
        return True, thing
    return False, None


def _module_of(what: str, name: str, thing: Any) -> tuple[str, str]:
    """Return the module in which a thing is written, and the class that has it, if any."""
    if what == "module":
        return name, ""
    target = thing.fget if isinstance(thing, property) else thing
    module = getattr(target, "__module__", None) or ""
    owner = getattr(target, "__qualname__", "").split(".")
    if what in ("method", "property", "attribute") and len(owner) > 1:
        return module, owner[-2]
    return module, owner[-1] if inspect.isclass(target) else ""


def spell_out(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Write the full path of every name that a docstring refers to from where it stands."""
    module, owner = _module_of(what, name, thing)
    package = module.rpartition(".")[0]
    if what == "module" and hasattr(thing, "__path__"):
        package = module

    def full(match: re.Match[str]) -> str:
        target = match["name"]
        if target.startswith(PACKAGE) or not module:
            return match[0]
        tries = [f"{module}.{target}", f"{module}.{owner}.{target}" if owner else ""]
        if target.startswith("."):
            tries = [package + target]
        for path in filter(None, tries):
            if found(path)[0]:
                return f":{match['role']}:`~{path}`"
        first = target.partition(".")[0]
        if hasattr(builtins, first) or (first and importlib.util.find_spec(first)):
            return match[0]
        return f":{match['role']}:`~{module}.{target}`"  # which is not there, as will be said

    lines[:] = [_ROLE.sub(full, line) for line in lines]


def _canonical(path: str) -> str | None:
    """Return the path under which something is written, None where it has none of its own."""
    there, thing = found(path)
    if not there:
        return None
    if inspect.ismodule(thing):
        return str(thing.__name__)
    module, qualified = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if module and qualified:
        return f"{module}.{qualified}"
    owner, _, name = path.rpartition(".")
    return f"{written_in(owner, name)}.{name}" if name.isupper() and owner in sys.modules else path


def readable_signatures(
    app: Sphinx,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    arguments: str | None,
    returned: str,
) -> tuple[str, str] | None:
    """Show arrays by the names of their types, and defaults that a factory makes as ``...``.

    The constructor of a protocol is not shown: nobody calls it.
    """
    if getattr(thing, "_is_protocol", False):
        return "", returned
    if arguments is None:
        return None  # it has none: a module, a property
    for array, short in _ARRAYS.items():
        arguments = arguments.replace(array, short)
        returned = (returned or "").replace(array, short)
    return arguments.replace("<factory>", "..."), returned


def qualify_types(app: Sphinx, doctree: nodes.document) -> None:
    """Turn the names of types in signatures, which are as their modules see them, into full paths.

    Where several things have a name, the one written nearest to what has the signature is meant.
    """
    homes: dict[str, list[str]] = {}
    for path in described():
        homes.setdefault(path.rpartition(".")[2], []).append(path)
    for signature in doctree.findall(addnodes.desc_signature):
        if not signature.get("module"):
            continue
        own = _canonical(f"{signature['module']}.{signature['fullname']}") or ""
        for reference in signature.findall(addnodes.pending_xref):
            target = str(reference.get("reftarget", ""))
            near = homes.get(target, [])
            if near:
                reference["reftarget"] = max(
                    near, key=lambda path: (_common(own, _canonical(path) or path), -len(path))
                )
                reference["refspecific"] = False


def _common(one: str, other: str) -> int:
    """Return how many parts at the beginning of two paths are the same."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def lead_home(app: Sphinx, env: Any, node: nodes.Element, text: nodes.Element) -> Any:
    """Resolve a reference to something of the package that is described under another name."""
    if node.get("refdomain") != "py" or not node.get("reftarget"):
        return None
    target = str(node["reftarget"])
    if not target.startswith(PACKAGE):
        return None
    if not found(target)[0]:
        logger.warning("%s is not there: %r", node.get("reftype"), target, location=node)
        return text
    home = homes_by_canonical(env).get(_canonical(target) or target)
    if home is None:
        return text  # it exists, and nothing more is told of it
    return _link(app, env, node, text, home)


def homes_by_canonical(env: Any) -> dict[str, str]:
    """Return where each described thing is described, by the path under which it is written."""
    made: dict[str, str] | None = getattr(env, "homes_by_canonical", None)
    if made is None:
        made = {}
        for path, entry in env.domains["py"].objects.items():
            if not entry.aliased:
                made[_canonical(path) or path] = path
        env.homes_by_canonical = made
    return made


def _link(app: Sphinx, env: Any, node: nodes.Element, text: nodes.Element, path: str) -> Any:
    from sphinx.util.nodes import make_refnode

    entry = env.domains["py"].objects[path]
    return make_refnode(
        app.builder, node["refdoc"], entry.docname, entry.node_id, [text], title=path
    )


def forget(app: Sphinx, env: Any) -> None:
    """Forget where things were described when pages were last read."""
    env.homes_by_canonical = None


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect both to the build."""
    app.connect("autodoc-process-docstring", spell_out, priority=400)
    app.connect("env-updated", lambda app, env: forget(app, env))
    app.connect("autodoc-process-signature", readable_signatures)
    app.connect("doctree-read", qualify_types)
    app.connect("missing-reference", lead_home)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
