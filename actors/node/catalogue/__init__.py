"""The catalogue of a domain of several nodes: read in a directory, shared, and served."""
