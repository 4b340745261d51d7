"""Exhaustive exploration of the real cores together, over channels that lose or repeat messages."""
