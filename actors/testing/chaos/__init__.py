"""A network with faults: cuts, delays, loss, reordering, limited data rates."""
