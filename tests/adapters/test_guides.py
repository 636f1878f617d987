"""The examples of the guides of adapters, run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["adapters", "hpcsim", "kubernetes", "ray"])
def test_examples_print_what_the_guide_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each block runs after those before it, and prints the text shown below it."""
    if name == "ray":
        pytest.importorskip("ray", reason="needs the extra ray, which the tests do not bring")
    found = BLOCK.findall((GUIDES / f"{name}.md").read_text(encoding="utf-8"))
    assert found
    names: dict[str, object] = {"__name__": "guide"}
    for code, text in found:
        exec(compile(code, f"{name}.md", "exec"), names)
        assert capsys.readouterr().out == text
