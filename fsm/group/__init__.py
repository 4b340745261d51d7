"""Groups of nodes: several nodes serve one domain together over a shared store, the engine."""
