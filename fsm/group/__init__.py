"""Group: the nodes that serve one domain over a shared engine."""
