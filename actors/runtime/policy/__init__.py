"""Policy in a runtime: one call per message, and the refusals."""
