"""Group: the part of a node that works with the other nodes of its domain over an engine."""
