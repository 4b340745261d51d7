"""Judges of traces of any size, with PySpark."""
