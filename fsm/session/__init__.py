"""How a runtime stays connected to its node: both ends of a session."""
