"""How peers spell the protocol: the one way in, and its inverse."""
