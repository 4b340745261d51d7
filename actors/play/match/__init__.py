"""Compares what actors were seen doing with what a scenario tells."""
