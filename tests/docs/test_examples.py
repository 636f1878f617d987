"""The examples in the documentation work."""

from __future__ import annotations

import re
import shlex
import sys
import types
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, NEED_A_SYSTEM, blocks, pages

PYTHON_PAGES = [
    page for page in pages() if blocks(page, "python") and page.stem not in NEED_A_SYSTEM
]


@pytest.mark.parametrize(
    "page", PYTHON_PAGES, ids=[str(page.relative_to(DOCS)) for page in PYTHON_PAGES]
)
def test_python_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The Python blocks of a page run one after the other, in one namespace and an empty folder."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("example_of_a_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for number, code in enumerate(blocks(page, "python"), 1):
        source = f"{page.name}, block {number}"
        # Not with the annotations as texts that this module asks for.
        exec(compile(code, source, "exec", dont_inherit=True), vars(module))


def _command_lines(code: str) -> list[str]:
    joined = code.replace("\\\n", " ")
    lines = [line.strip().removeprefix("$ ") for line in joined.splitlines()]
    return [
        re.split(r"\s[|>&]|\s#\s", line)[0].strip()
        for line in lines
        if re.match(r"edgeflow\s", line)
    ]


def test_command_lines_exist() -> None:
    """Every command line in the pages and in the README has a command and options that there are."""
    from command_line import commands, parameters

    known = dict(commands())
    lines = [
        (page.name, line)
        for page in (*pages(), DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md")
        for code in blocks(page, "sh", "console", "bash")
        for line in _command_lines(code)
    ]
    assert len(lines) >= 20
    for page, line in lines:
        words = shlex.split(line)[1:]
        assert words[0] in known, f"{page}: there is no command {words[0]!r}"
        options = {
            name
            for option in parameters(known[words[0]], options=True)
            for name in (*option.opts, *option.secondary_opts)
        }
        given = {word.partition("=")[0] for word in words[1:] if word.startswith("--")}
        assert given <= options, f"{page}: {words[0]} has no {given - options}"
