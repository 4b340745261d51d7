"""The HTTP service of a node or a runtime: health, readiness, metrics, and further pages."""
