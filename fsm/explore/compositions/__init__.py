"""Compositions: places, channels, faults and properties."""
