"""Both ends of a runtime's session at its node."""
