"""Reading and writing files: clear errors in, whole files or none out."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from pathlib import Path
from typing import BinaryIO

from edgeflow_opt.errors import Fault, InputError, UsageError

#: Larger inputs are refused before they are read into memory.
MAX_BYTES = 1 << 30

_PIECE_BYTES = 1 << 22


def read_bytes(path: str | Path, error: type[InputError]) -> bytes:
    """Return the content of a file, decompressed where its name ends in ``.gz``.

    Raises
    ------
    InputError
        Of the given class, if the file is missing, unreadable, larger than 1 GiB, or its
        compression is damaged.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise error((Fault("file", "", "is a folder", remedy="name a file"),), str(path))
        with path.open("rb") as plain:
            if path.suffix == ".gz":
                with gzip.open(plain) as packed:
                    data = _up_to_the_limit(packed)
            else:
                data = _up_to_the_limit(plain)
    except FileNotFoundError:
        fault = Fault("file", "", "does not exist", remedy="check the path")
        raise error((fault,), str(path)) from None
    except (OSError, EOFError, zlib.error, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        fault = Fault(
            "file", "", f"cannot be read ({why})",
            remedy="check its permissions, and that a name in .gz is that of a gzip file",
        )  # fmt: skip
        raise error((fault,), str(path)) from None
    if len(data) > MAX_BYTES:
        fault = Fault("file", "", "is larger than 1 GiB", remedy="split the instance")
        raise error((fault,), str(path))
    return data


def _up_to_the_limit(file: BinaryIO | gzip.GzipFile) -> bytes:
    """Return all of `file`, or a little more than the limit where there is more.

    Piece by piece, since a single ``read(limit)`` reserves the whole limit beforehand.
    """
    pieces: list[bytes] = []
    total = 0
    while total <= MAX_BYTES:
        piece = file.read(_PIECE_BYTES)
        if not piece:
            break
        pieces.append(piece)
        total += len(piece)
    return b"".join(pieces)


def write_text(path: str | Path, text: str) -> None:
    """Write a text as UTF-8, whole or not at all; see :func:`write_bytes`."""
    try:
        data = text.encode()
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"output '{path}': cannot be written ({problem}); drop the stray surrogate"
        ) from None
    write_bytes(path, data)


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all: to a temporary file beside it, then rename.

    Raises
    ------
    UsageError
        If the place cannot be written to.
    """
    path = Path(path)
    temporary = ""
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe (/dev/stdout) cannot be replaced by a rename.
            path.write_bytes(data)
            return
        # A link stays a link: what it points to is replaced.
        path = Path(os.path.realpath(path))
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
        temporary = ""
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise UsageError(
            f"output '{path}': cannot be written ({why}); "
            "name a file in a folder that exists and may be written to"
        ) from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
