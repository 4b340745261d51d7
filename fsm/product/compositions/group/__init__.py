"""Compositions of the nodes of one domain: what is composed, a node, an engine, a lease."""
