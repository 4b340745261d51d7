"""What a node or a runtime serves over HTTP: health, readiness, metrics, and further pages."""
