"""The dashboard of a node: the state that it watches, and the paths that its page reads."""
