"""Checks of recorded traces of any size by the claims of the protocol, with PySpark."""
