"""The mathematics for people with other tools; ``python -m models`` makes the generated files."""
