"""HTTP listener of a node: health, readiness and metrics for its operator, and sessions."""
