"""Convergence of data objects: reporters, observers, delegation."""
