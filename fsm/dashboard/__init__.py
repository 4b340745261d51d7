"""Data for an operator's view of a running node."""
