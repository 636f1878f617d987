"""The command line: one module per command, thin."""


def main() -> None:
    """Run the command ``edgeflow`` with the arguments of the process, and exit."""
    from edgeflow_opt.cli.application import app

    app(prog_name="edgeflow")
