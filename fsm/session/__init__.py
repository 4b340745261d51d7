"""Session of a runtime at a message node: the runtime's stub, the node, login tokens, limits."""
