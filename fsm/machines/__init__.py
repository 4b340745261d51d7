"""State machines of the protocol: each file declares one or two tables."""
