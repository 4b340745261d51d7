"""The node's HTTP listener for its operator: health, readiness, metrics."""
