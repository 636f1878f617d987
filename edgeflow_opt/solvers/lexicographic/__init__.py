"""The lexicographic objective on MILP engines: starts, one level after the other, reports."""
