"""The pages of the documentation, and the code blocks in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
if not DOCS.is_dir():
    pytest.skip("needs the folder docs of a checkout", allow_module_level=True)
sys.path.append(str(DOCS / "_extensions"))

#: Guides that need a system which is not there when tests run.
NEED_A_SYSTEM = ("slurm", "ray", "kubernetes", "hpcsim")


def pages() -> list[Path]:
    """Return all pages that are written by hand."""
    return sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the fenced blocks of a page in one of the languages."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```(\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [code for language, code in found if language in languages]
