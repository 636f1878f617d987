"""``python -m edgeflow_opt`` is the command ``edgeflow``."""

from edgeflow_opt.cli import main

if __name__ == "__main__":
    main()
