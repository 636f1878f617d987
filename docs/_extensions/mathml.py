"""Formulas as MathML, which browsers draw themselves: no script, no fonts, no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

#: Marks of what is set in typewriter letters, from the private use area: no formula has them.
_BEGIN, _END = "\ue000", "\ue001"


def mathml_of(tex: str, *, block: bool) -> str:
    """Return a formula as MathML.

    Raises
    ------
    MathError
        If the converter does not know a command.
    """
    tex = re.sub(
        r"\\texttt\{((?:[^{}\\]|\\.)*)\}",
        lambda found: r"\text{" + _BEGIN + found[1].replace("\\", "") + _END + "}",
        tex,
    )
    tex = re.sub(r"\\dots(?![a-zA-Z])", r"\\ldots", tex)
    if block and re.search(r"\\\\|&", tex) and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    made = tex2mathml(tex, as_block=block)
    made = made.replace(
        '<mtable class="ams-align">', '<mtable class="ams-align" displaystyle="true">'
    )
    return re.sub(f"<mtext>{_BEGIN}(.*?){_END}</mtext>", r'<mtext class="tt">\1</mtext>', made)


def _visit(translator: Any, node: nodes.Element, *, block: bool) -> None:
    try:
        made = mathml_of(node.astext(), block=block)
    except MathError as problem:
        logger.warning("formula %r: %s", node.astext(), problem, location=node)
        raise nodes.SkipNode from None
    # Scrolls by itself where it is wider than the page.
    translator.body.append(f'<div class="math">{made}</div>' if block else made)
    raise nodes.SkipNode


def _visit_inline(translator: Any, node: nodes.math) -> None:
    _visit(translator, node, block=False)


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    _visit(translator, node, block=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_visit_inline, None), block_renderers=(_visit_block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
