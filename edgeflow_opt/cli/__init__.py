"""The command line: one module per command, thin."""


def main() -> None:
    """Run the command ``edgeflow`` with the arguments of the process, and exit."""
    try:
        from edgeflow_opt.cli.application import app
    except KeyboardInterrupt:
        # Nothing has begun that could be lost; whoever pressed Ctrl-C wants no traceback.
        raise SystemExit(130) from None
    app(prog_name="edgeflow")
