"""Cooperation of a node with the other nodes of its domain, by a common store, the engine."""
