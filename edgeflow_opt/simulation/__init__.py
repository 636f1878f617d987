"""Events, the clock, and metrics: whole traces under online policies."""
