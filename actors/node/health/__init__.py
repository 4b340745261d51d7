"""Whether a message node can serve, and how much it holds."""
