"""Reading junk gives one clear error, quickly; writing leaves a whole file or the old one."""

from __future__ import annotations

import gzip
import os
import stat
import tracemalloc
from pathlib import Path

import pytest

from edgeflow_opt.errors import InstanceError, UsageError
from edgeflow_opt.problem import problem_from_dict, read_problem, write_problem
from edgeflow_opt.problem.files import read_bytes, write_text
from edgeflow_opt.problem.parsing import parse_json
from tests.problem.examples import INSTANCE_TEXT, instance_document, rich_problem

START = INSTANCE_TEXT.strip().removesuffix("}").encode()

JUNK: dict[str, tuple[bytes, str]] = {
    "empty": (b"", r"is not JSON \(Expecting value, line 1, column 1\); give a JSON document"),
    "blank": (b" \n", r"is not JSON \(Expecting value, line 2, column 1\)"),
    "text": (b"hello", "is not JSON"),
    "csv": (b"id,gpus\n1,2\n", "is not JSON"),
    "zeros": (b"\0" * 100, "is not JSON"),
    "not UTF-8": (START + b', "x": "\xff\xfe"}', r"is not UTF-8 text \(byte \d+\); save it as"),
    "UTF-16": (INSTANCE_TEXT.encode("utf-16"), r"is not UTF-8 text \(byte 0\)"),
    "truncated": (INSTANCE_TEXT.encode()[:400], r"is not JSON \(.*line \d+, column \d+\)"),
    "two documents": (INSTANCE_TEXT.encode() * 2, r"is not JSON \(Extra data"),
    "single quotes": (b"{'format': 1}", "is not JSON"),
    "trailing comma": (START + b", }", "is not JSON"),
    "NaN": (START + b', "x": NaN}', "document: numbers must be finite, got NaN; give a number"),
    "Infinity": (START + b', "x": -Infinity}', "numbers must be finite, got -Infinity; give a"),
    "long integer": (START + b', "x": ' + b"1" * 5000 + b"}", "has a number that cannot be read"),
    "nested 100,000 deep": (b"[" * 100_000 + b"]" * 100_000, "is nested too deeply"),
    "nested objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "is nested too deeply"),
    "nested in a job": (
        START + b', "objective": ' + b"[" * 900 + b"]" * 900 + b"}",
        "nested too deeply|objective: must be a JSON object",
    ),
    "duplicate key": (START + b', "now": 0}', "an object, 'now': is given more than once; keep"),
    "duplicate in a job": (
        INSTANCE_TEXT.replace('"work": 1200', '"work": 1200, "work": 1').encode(),
        "object 'j1', 'work': is given more than once; keep one of them",
    ),
}


@pytest.mark.parametrize("name", JUNK)
def test_junk_is_refused(tmp_path: Path, name: str) -> None:
    """Whatever a file holds that is not a document, one readable error names the file."""
    data, message = JUNK[name]
    path = tmp_path / "junk.json"
    path.write_bytes(data)
    with pytest.raises(InstanceError, match=message) as caught:
        read_problem(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(caught.value.faults) == 1
    assert len(str(caught.value)) < 600


def test_duplicates_and_constants_are_reported_together() -> None:
    """All duplicate keys and all NaNs of a text are in one error."""
    text = b'{"a": 1, "a": 2, "b": {"c": NaN, "c": 1, "c": 2}, "d": Infinity}'
    with pytest.raises(InstanceError, match="4 faults") as caught:
        parse_json(text, "x", InstanceError)
    assert {fault.field or fault.value for fault in caught.value.faults} == {
        "'a'", "'c'", "NaN", "Infinity",
    }  # fmt: skip


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    """UTF-8 with a byte order mark, as Windows writes it, is read."""
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + INSTANCE_TEXT.encode())
    assert read_problem(path) == problem_from_dict(instance_document())


def _large(kind: str) -> bytes:
    size = 50_000_000
    if kind == "random bytes":
        return os.urandom(1 << 20) * 48
    if kind == "one line of text":
        return b"x" * size
    if kind == "list of numbers":
        return b"[" + b"1," * (size // 2) + b"1]"
    if kind == "open brackets":
        return b"[" * size
    if kind == "long string":
        return b'"' + b"a" * size + b'"'
    return b"{" + b'"key":0,' * (size // 8) + b'"key":0}'


@pytest.mark.parametrize(
    "kind",
    ["random bytes", "one line of text", "list of numbers", "open brackets", "long string", "keys"],
)
def test_fifty_megabytes_of_junk_take_no_more_memory_than_the_file(
    tmp_path: Path, kind: str
) -> None:
    """A large file of something else is refused before a document is built from it."""
    path = tmp_path / "large.json"
    path.write_bytes(_large(kind))
    tracemalloc.start()
    try:
        with pytest.raises(InstanceError, match=r"large.json: document") as caught:
            read_problem(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 120_000_000
    assert len(str(caught.value)) < 600


def test_a_large_document_of_faults_is_counted(tmp_path: Path) -> None:
    """Of 300,000 unknown keys the message shows twenty."""
    path = tmp_path / "keys.json"
    keys = b",".join(b'"k%d":0' % i for i in range(300_000))
    path.write_bytes(START + b"," + keys + b"}")
    with pytest.raises(InstanceError, match="10000 faults") as caught:
        read_problem(path)
    assert len(str(caught.value)) < 5000


def test_missing_file(tmp_path: Path) -> None:
    """A file that is not there is told so."""
    with pytest.raises(InstanceError, match=r"no.json: file: does not exist; check the path"):
        read_problem(tmp_path / "no.json")


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    """A folder is told so."""
    with pytest.raises(InstanceError, match="file: is a folder; name a file"):
        read_problem(tmp_path)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without permission to read gives a clear error (tests may run as root)."""
    path = tmp_path / "secret.json"
    path.write_text("{}", encoding="utf-8")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InstanceError, match=r"file: cannot be read \(Permission denied\); check"):
        read_problem(path)


def test_name_that_no_file_can_have() -> None:
    """A NUL in a name is refused like any file that cannot be read."""
    with pytest.raises(InstanceError, match="file: cannot be read"):
        read_problem("a\0b")


PACKED = gzip.compress(INSTANCE_TEXT.encode() * 50)


@pytest.mark.parametrize(
    "data",
    [b"", INSTANCE_TEXT.encode(), PACKED[:200], PACKED[:-3], b"\x1f\x8b" + b"\0" * 50,
     PACKED[:100] + b"\xff\xff\xff" + PACKED[103:]],
    ids=["empty", "not packed", "truncated", "without end", "bad header", "damaged"],
)  # fmt: skip
def test_broken_gzip(tmp_path: Path, data: bytes) -> None:
    """Damaged compression is a clear error, not a traceback."""
    path = tmp_path / "i.json.gz"
    path.write_bytes(data)
    with pytest.raises(InstanceError, match=r"i.json.gz: (file: cannot be read|document: is not)"):
        read_problem(path)


def test_too_large_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files beyond the limit are refused, packed ones by their unpacked size."""
    monkeypatch.setattr("edgeflow_opt.problem.files.MAX_BYTES", 1000)
    (tmp_path / "a.json").write_bytes(b"1" * 1001)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b"1" * 100_000))
    (tmp_path / "c.json").write_bytes(b"1" * 1000)
    for name in ("a.json", "b.json.gz"):
        with pytest.raises(InstanceError, match="file: is larger than 1 GiB; split"):
            read_bytes(tmp_path / name, InstanceError)
    assert len(read_bytes(tmp_path / "c.json", InstanceError)) == 1000


def test_failed_writing_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is full, or the rename fails, the old file stays and no other is left."""
    path = tmp_path / "i.json"
    write_problem(rich_problem(), path)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("replace", "chmod", "fdopen"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(UsageError, match=r"output .*i.json.: cannot be written \(No space"):
                write_text(path, "new")
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["i.json"]


def test_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path: Path) -> None:
    """A fault within the writing itself leaves the old file too."""
    path = tmp_path / "i.json"
    write_text(path, "old")
    with pytest.raises(UsageError, match=r"cannot be written .*surrogates not allowed"):
        write_text(path, "new \ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["i.json"]


@pytest.mark.parametrize("name", ["no/such/folder/i.json", ".", "a\0b"])
def test_places_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    """A missing folder, a folder as name and an impossible name are usage errors."""
    with pytest.raises(UsageError, match=r"output .* cannot be written .* name a file in a folder"):
        write_text(tmp_path / name, "x")


def test_written_file_has_ordinary_permissions(tmp_path: Path) -> None:
    """The file can be read by whom the umask lets read it, though it began as a private one."""
    path = tmp_path / "i.json"
    old = os.umask(0o022)
    try:
        write_text(path, "x")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Writing to a symbolic link replaces what it points to."""
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """A pipe is written into instead of being replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
