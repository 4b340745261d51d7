"""Code and stubs from other domains: trust in their descriptors, and sandboxes for their stubs."""
