"""Compares what actors were seen doing with a scenario."""
