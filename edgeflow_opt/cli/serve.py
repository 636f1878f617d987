"""``edgeflow serve``: the solver as a service over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from edgeflow_opt.cli.options import positive, whole
from edgeflow_opt.errors import UsageError


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; others need a token.")
    ] = "127.0.0.1",
    port: Annotated[int, whole("--port", "Port; 0 = any free one.", 0, 65535)] = 8000,
    store: Annotated[
        Path,
        typer.Option(metavar="FILE", help="SQLite file in which sessions outlive the service."),
    ] = Path("edgeflow-sessions.db"),
    in_memory: Annotated[
        bool, typer.Option("--in-memory", help="No file: sessions end with the service.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Tokens that let requests in, one a line; also EDGEFLOW_TOKENS, with commas.",
        ),
    ] = None,
    workers: Annotated[int, whole("--workers", "Solver processes.", 1, 1024)] = 2,
    memory_mib: Annotated[
        int, whole("--memory-mib", "Memory of a solver process beyond its libraries, MiB.", 64)
    ] = 2048,
    waiting: Annotated[
        int, whole("--waiting", "Requests that may wait for a process; more get 429.", 0)
    ] = 16,
    max_bytes: Annotated[int, whole("--max-bytes", "Largest body of a request.", 1)] = 16 << 20,
    max_jobs: Annotated[int, whole("--max-jobs", "Most jobs of an instance.", 1)] = 5000,
    max_slots: Annotated[int, whole("--max-slots", "Most slots of an instance.", 1)] = 2000,
    max_time_limit: Annotated[
        float, positive("--max-time-limit", "Longest time limit of a request.")
    ] = 60.0,
    max_sessions: Annotated[int, whole("--max-sessions", "Most sessions.", 1)] = 1000,
    max_store_mib: Annotated[
        int | None, whole("--max-store-mib", "Largest size of the store; default: no limit.", 1)
    ] = None,
) -> None:
    """Serve decisions to other schedulers over HTTP.

    POST /solve, /check, /bound and /explain take one instance; POST /sessions begins a session, whose
    /events and /decide follow a cluster as things happen. GET /openapi.json describes all of it.

    One line of JSON on stderr for each request. SIGTERM lets requests under way answer first.
    """
    from edgeflow_opt.service.server import run
    from edgeflow_opt.service.settings import ServiceSettings

    settings = ServiceSettings(
        host=host,
        port=port,
        tokens=_tokens(token_file),
        store=None if in_memory else store,
        workers=workers,
        memory_mib=memory_mib,
        waiting=waiting,
        max_bytes=max_bytes,
        max_jobs=max_jobs,
        max_slots=max_slots,
        max_time_limit_s=max_time_limit,
        max_sessions=max_sessions,
        max_store_mib=max_store_mib,
    )
    run(settings)


def _tokens(file: Path | None) -> tuple[str, ...]:
    texts = os.environ.get("EDGEFLOW_TOKENS", "").split(",")
    if file is not None:
        try:
            texts += file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as problem:
            raise UsageError(f"token file '{file}': cannot be read ({problem})") from None
    return tuple(text.strip() for text in texts if text.strip())
