"""Judges: what the traces of a run say about it, by PySpark at any size."""
