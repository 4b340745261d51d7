"""Compositions that are explored: each has participants, channels, faults and properties."""
