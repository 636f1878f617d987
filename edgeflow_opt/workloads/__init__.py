"""Readers of public traces, rate tables, generators, edge tides."""
