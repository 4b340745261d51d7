"""A network for tests that injects faults: cuts, delays, loss, reordering, limited data rates."""
