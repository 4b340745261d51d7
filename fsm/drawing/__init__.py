"""Drawings and descriptions of machines, all from their tables."""
