"""Instances of related problems that nobody here made, with values known from elsewhere."""
