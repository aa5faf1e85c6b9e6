"""The exact part of graph matching: what is left of a pattern in an event is pruned, then joined by backtracking."""
