"""Data objects that components of a runtime report."""
