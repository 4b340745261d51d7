"""Convergence of data objects: reporters and observers."""
