"""Spellings of the protocol by peers: the normal form of a message, and the inverse."""
