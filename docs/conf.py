"""Settings of the documentation: ``python -m sphinx -W --keep-going docs docs/_build``."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]

from edgeflow_opt import __version__  # noqa: E402

project = "edgeflow-opt"
author = "The edgeflow-opt authors"
copyright = author
version = release = __version__
language = "en-GB"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "generated",
    "mathml",
    "references",
]
# README.md is for people in the checkout; what begins with an underscore is no page.
exclude_patterns = ["_*", "README.md", "**/.*"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "amsmath"]
myst_heading_anchors = 3
# 'title: false' of a page's own settings is not needed; a missing anchor is an error by -W.

# Nothing is fetched while pages are built or read: formulas become MathML, fonts are the reader's.
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"edgeflow-opt {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}

# References to the outside would need the network; those into the package must all be good
# (see the extension 'references').
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!edgeflow_opt\b).*")]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 72
python_use_unqualified_type_names = True
add_module_names = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
viewcode_line_numbers = True

linkcheck_timeout = 20
linkcheck_retries = 2
# Examples of addresses that exist on the reader's machine only.
linkcheck_ignore = [r"http://(127\.0\.0\.1|localhost)\b.*"]
