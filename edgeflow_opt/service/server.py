"""The service as a process: it listens, logs lines of JSON, and stops gracefully."""

from __future__ import annotations

import json
import logging
import math
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from edgeflow_opt.analysis.extras import load
from edgeflow_opt.service.app import make_app
from edgeflow_opt.service.protocol import http_protocol

if TYPE_CHECKING:
    from edgeflow_opt.service.settings import ServiceSettings

#: Fields of a log record that are no matter of its message.
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonLines(logging.Formatter):
    """Log records as lines of JSON: time, level, logger, message, and what came along."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _PLAIN}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def run(settings: ServiceSettings) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way are answered first.

    This configures logging and signals of its process, so it is for programs, not for libraries.

    Raises
    ------
    UsageError
        If the extra ``serve`` is not installed, or the store cannot be used.
    """
    uvicorn = load("uvicorn", "serve", "the service")
    from edgeflow_opt.service.store import SessionStore
    from edgeflow_opt.solvers.kernels import compile_in_parallel

    app = make_app(settings)
    # Faults of the store are told before anything is loaded.
    SessionStore(settings.store).close()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("edgeflow_opt", "uvicorn.error"):
        log = logging.getLogger(name)
        log.handlers = [handler]
        log.setLevel(logging.INFO)
        log.propagate = False
    compile_in_parallel()
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=http_protocol(settings.body_timeout_s),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=math.ceil(settings.stop_s),
        timeout_keep_alive=10,
        limit_concurrency=1000,
        server_header=False,
    )

    class Server(uvicorn.Server):  # type: ignore[name-defined]
        def handle_exit(self, sig: int, frame: Any) -> None:
            # What is under way answers with the best it has.
            app.state.service.stop()
            super().handle_exit(sig, frame)

    for number in (signal.SIGTERM, signal.SIGINT):
        # The server raises the signal anew when it is done, which would end the process by it.
        signal.signal(number, lambda *_: None)
    Server(config).run()
