"""The dashboard of a node: what it watches, and the paths that its page reads."""
