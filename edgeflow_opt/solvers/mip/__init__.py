"""MILP engines behind one protocol, and the rounding of rows to what each of them obeys."""
