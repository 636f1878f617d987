"""``edgeflow serve``: what it refuses before it listens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.helpers import edgeflow


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "there is no token: set EDGEFLOW_TOKENS"),
        (["--port", "70000"], "must be a whole number from 0 to 65535"),
        (["--max-time-limit", "0"], "must be a finite number above 0"),
        (["--token-file", "/nowhere/tokens"], "token file '/nowhere/tokens': cannot be read"),
        (["--store", "/nowhere/sessions.db"], "store '/nowhere/sessions.db': cannot be used"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], words: str) -> None:
    """A wrong option is exit code 2 with rule and way out, and nothing listens."""
    done = edgeflow("serve", *arguments)
    assert done.code == 2
    assert words in done.err


def test_tokens_of_a_file_let_it_listen_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens of file and environment are put together, without blanks and empty lines."""
    seen = []
    monkeypatch.setenv("EDGEFLOW_TOKENS", "one, two")
    monkeypatch.setattr("edgeflow_opt.service.server.run", seen.append)
    (tmp_path / "tokens").write_text("three\n\n four \n")
    done = edgeflow("serve", "--host", "0.0.0.0", "--token-file", str(tmp_path / "tokens"))
    assert done.code == 0
    assert seen[0].tokens == ("one", "two", "three", "four")
    assert seen[0].store == Path("edgeflow-sessions.db")
    assert edgeflow("serve", "--in-memory").code == 0
    assert seen[1].store is None
