"""Benchmarks of the package, and of its peers on the same instances; no part of the wheel."""
