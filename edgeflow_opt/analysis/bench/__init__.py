"""Experiments at scale: suites of cells, run by processes or on a cluster, resumed after a kill."""
