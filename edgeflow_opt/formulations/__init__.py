"""The mathematics: from a problem to sparse rows and columns, neutral to solvers."""
