"""Drawings and descriptions of the state machines, generated from their tables."""
