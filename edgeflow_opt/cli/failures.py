"""What a failed command says and which exit code it gives: one readable error, no traceback."""

from __future__ import annotations

import errno
import os
import sys
import traceback

from edgeflow_opt.errors import EdgeflowError, is_ctrl_c

#: Exit codes; those of :class:`~edgeflow_opt.errors.EdgeflowError` are in its subclasses.
EXIT_SOLVED = 0
EXIT_INTERNAL = 1
EXIT_USAGE = 2
EXIT_INFEASIBLE = 3
EXIT_NO_SOLUTION = 4
EXIT_BAD_INPUT = 5
EXIT_CHECK_FAILED = 6
EXIT_INTERRUPTED = 130
#: The reader of stdout went away (128 + SIGPIPE, as of any other tool in a pipe).
EXIT_BROKEN_PIPE = 141

#: Whether the traceback of a failure is shown; set by ``--debug`` and ``EDGEFLOW_DEBUG``.
show_tracebacks = False


def lenient_streams() -> None:
    """Make stdout and stderr fit for use.

    What they cannot encode is shown by escapes instead of failing; where one is closed, what is
    written to it is lost.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def exit_code_of_status(status: str, limit: str | None) -> int:
    """Return the exit code of a solve that ended with `status` under `limit` (None = none)."""
    if limit == "interrupted":
        return EXIT_INTERRUPTED
    return {
        "optimal": EXIT_SOLVED,
        "feasible": EXIT_SOLVED,
        "infeasible": EXIT_INFEASIBLE,
        "no_solution": EXIT_NO_SOLUTION,
    }.get(status, EXIT_INTERNAL)


def exit_code_of(problem: BaseException) -> int:
    """Say on stderr what went wrong, and return the exit code for it."""
    if isinstance(problem, BrokenPipeError):
        _silence_stdout()
        return EXIT_BROKEN_PIPE
    if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
        _silence_stdout()
        say(
            f"Error: stdout cannot be written ({problem.strerror}); make room, or send it elsewhere"
        )
        return EXIT_INTERNAL
    if is_ctrl_c(problem):
        say("Interrupted.")
        return EXIT_INTERRUPTED
    if show_tracebacks:
        traceback.print_exception(problem, file=sys.stderr)
    if isinstance(problem, EdgeflowError):
        say(f"Error: {problem}")
        return problem.exit_code
    format_message = getattr(problem, "format_message", None)
    if format_message is not None:
        # A usage error of the command-line library; its classes have no public name.
        context = getattr(problem, "ctx", None)
        if format_message():
            say(f"Error: {format_message()}")
        if context is not None:
            say(f"Try '{context.command_path} --help'.")
        return EXIT_USAGE
    if isinstance(problem, MemoryError):
        say("Error: not enough memory; give a smaller input, fewer slots or fewer workers")
        return EXIT_INTERNAL
    text = " ".join(str(problem).split())
    how = "" if show_tracebacks else "; 'edgeflow --debug ...' or EDGEFLOW_DEBUG=1 shows where"
    say(f"Internal error: {type(problem).__name__}{': ' if text else ''}{text}{how}")
    return EXIT_INTERNAL


def say(message: str) -> None:
    """Write a message to stderr; characters that could steer a terminal are shown by escapes."""
    try:
        print("\n".join(printable(line) for line in message.split("\n")), file=sys.stderr)
    except OSError:
        return  # nobody listens


def printable(text: str) -> str:
    """Return `text` with everything that a terminal would obey or cannot show as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _silence_stdout() -> None:
    """Keep the interpreter from complaining, at exit, about what is left in stdout's buffer."""
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
    except (OSError, ValueError):
        return
